"""The lab is a Kubernetes: what tests of paijupyter rely on is true of it."""

from __future__ import annotations

import base64
import http.client
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.faults import Faults
from tests.cluster.lab import addons, images, lifecycle, registry
from tests.cluster.lab.leftovers import leftovers
from tests.cluster.lab.places import STATE
from tests.cluster.reach import Cluster

pytestmark = pytest.mark.cluster


def job(name: str, image: str, script: str, tasks: int = 1, **pod: Any) -> dict[str, Any]:
    """Return an Indexed Job that runs a shell script; ``pod`` are fields of its pods."""
    container = {"name": "main", "image": image, "command": ["sh", "-c", script]}
    container |= pod.pop("container", {})
    labels = {"job": name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "completions": tasks,
            "parallelism": tasks,
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "subdomain": name, "containers": [container]} | pod,
            },
        },
    }


def service(name: str) -> dict[str, Any]:
    """Return the headless Service of a Job's pods."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"job": name},
        "ports": [{"port": 1}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_the_node_is_ready_and_advertises_gpus(cluster: Cluster, lab: lifecycle.Facts) -> None:
    status = cluster.get("node", "kube-lab")["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]}["Ready"] == "True"
    assert status["allocatable"]["nvidia.com/gpu"] == "8"


def test_the_tasks_of_a_job_find_each_other_by_name(
    cluster: Cluster, namespace: str, image: Callable[[str], str], jobs_end: Callable[[str, str], str]
) -> None:
    """Two indexes and a headless Service: each resolves and reaches the other (P21)."""
    script = textwrap.dedent("""
        import os, socket, sys, time
        me = int(os.environ["JOB_COMPLETION_INDEX"])
        server = socket.create_server(("", 1234))
        name, end = f"pair-{1 - me}.pair", time.time() + 60
        while True:
            try:
                with socket.create_connection((name, 1234), timeout=5) as peer:
                    peer.sendall(b"hello from %d" % me)
                break
            except OSError:
                if time.time() > end:
                    raise
                time.sleep(0.2)
        print(server.accept()[0].recv(100).decode())
    """)
    pair = job("pair", image("python"), "", 2, container={"command": ["python", "-c", script]})
    cluster.apply(namespace, service("pair"), pair)
    assert jobs_end(namespace, "pair") == "Complete"
    said = {}
    for pod in cluster.get("pods", "-n", namespace)["items"]:
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        said[index] = cluster.kubectl("logs", pod["metadata"]["name"], "-n", namespace).strip()
    assert said == {"0": "hello from 1", "1": "hello from 0"}


def test_a_pod_reaches_the_api_server_as_its_service_account(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    image: Callable[[str], str],
    jobs_end: Callable[..., str],
) -> None:
    """The service's address leads to the API server, as in a usual cluster: for an engine inside one."""
    script = textwrap.dedent("""
        import json, os, ssl, urllib.request
        account = "/var/run/secrets/kubernetes.io/serviceaccount"
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        token = open(account + "/token").read()
        asked = urllib.request.Request(f"https://{host}:{port}/version")
        asked.add_header("Authorization", "Bearer " + token)
        trusted = ssl.create_default_context(cafile=account + "/ca.crt")
        print(json.load(urllib.request.urlopen(asked, context=trusted))["gitVersion"])
        print(open(account + "/namespace").read())
    """)
    cluster.apply(
        namespace, job("inside", image("python"), "", container={"command": ["python", "-c", script]})
    )
    assert jobs_end(namespace, "inside") == "Complete"
    assert cluster.kubectl("logs", "job/inside", "-n", namespace).split() == ["v1.34.4", namespace]


def test_more_gpus_than_the_node_has_are_unschedulable(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    image: Callable[[str], str],
    until: Callable[..., Any],
) -> None:
    asks = {"resources": {"limits": {"nvidia.com/gpu": "16"}}}
    cluster.apply(namespace, job("big", image("busybox"), "true", container=asks))

    def reason() -> str:
        pods = cluster.get("pods", "-n", namespace)["items"]
        conditions = [c for pod in pods for c in pod["status"].get("conditions", [])]
        return next((c["message"] for c in conditions if c.get("reason") == "Unschedulable"), "")

    assert "Insufficient nvidia.com/gpu" in str(until(reason, seconds=30, why="the scheduler's answer"))


def test_a_jobset_runs_roles_that_find_each_other(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    image: Callable[[str], str],
    until: Callable[..., Any],
) -> None:
    def role(name: str, tasks: int, script: str) -> dict[str, Any]:
        spec = job(name, image("python"), script, tasks)["spec"]
        del spec["template"]["spec"]["subdomain"]
        return {"name": name, "replicas": 1, "template": {"spec": spec}}

    finds = "until getent hosts js-ps-0-0.js; do sleep 1; done"
    roles = [role("ps", 1, "sleep 3600"), role("worker", 2, finds)]
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "js"},
        # A parameter server never ends by itself: the workers' end is the end.
        "spec": {
            "replicatedJobs": roles,
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["worker"]},
        },
    }
    cluster.apply(namespace, jobset)

    def end() -> str:
        status = cluster.get("jobset", "js", "-n", namespace).get("status", {})
        return next((c["reason"] for c in status.get("conditions", []) if c["status"] == "True"), "")

    assert until(end, seconds=90, why="the JobSet's end") == "AllJobsCompleted"


def test_a_job_waits_in_a_kueue_queue_and_knows_its_position(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    image: Callable[[str], str],
    until: Callable[..., Any],
) -> None:
    """Two GPUs of quota, two jobs of two: the second waits as first in the queue, then runs (O28)."""
    queue = {"kueue.x-k8s.io/queue-name": "queue"}
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "2"}
    flavors = [
        {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": namespace, "resources": [quota]}]}
    ]
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    whole = kueue | {"kind": "ClusterQueue", "metadata": {"name": namespace}}
    cluster.apply(
        namespace,
        kueue | {"kind": "ResourceFlavor", "metadata": {"name": namespace}},
        whole | {"spec": {"namespaceSelector": here, "resourceGroups": flavors}},
        kueue | {"kind": "LocalQueue", "metadata": {"name": "queue"}, "spec": {"clusterQueue": namespace}},
    )
    try:
        for name, script in (("first", "until [ -e /tmp/go ]; do sleep 0.2; done"), ("second", "true")):
            asks = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
            one = job(name, image("busybox"), script, container=asks)
            one["metadata"]["labels"] = queue
            one["spec"]["suspend"] = True
            cluster.apply(namespace, one)
            if name == "first":
                cluster.kubectl(
                    "wait", "pod", "-l", "job=first", "--for=create", "-n", namespace, "--timeout=60s"
                )
                cluster.kubectl("wait", "pod", "-l", "job=first", "--for=condition=Ready", "-n", namespace)

        def waits() -> str:
            loads = cluster.get("workloads.kueue.x-k8s.io", "-n", namespace)["items"]
            states = [c for load in loads for c in load.get("status", {}).get("conditions", [])]
            return next(
                (c["message"] for c in states if c["type"] == "QuotaReserved" and c["status"] == "False"), ""
            )

        said = str(until(waits, seconds=60, why="Kueue's answer"))
        assert "insufficient unused quota" in said and "2 more needed" in said

        path = f"/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/queue"
        pending = json.loads(cluster.kubectl("get", "--raw", f"{path}/pendingworkloads"))["items"]
        assert [one["positionInLocalQueue"] for one in pending] == [0]

        first = cluster.get("pods", "-l", "job=first", "-n", namespace)["items"][0]["metadata"]["name"]
        cluster.kubectl("exec", first, "-n", namespace, "--", "touch", "/tmp/go")
        cluster.kubectl(
            "wait", "job/second", "--for=condition=Complete", "-n", namespace, "--timeout=60s", seconds=70
        )
    finally:
        cluster.kubectl("delete", "jobs", "--all", "-n", namespace, "--wait=true")
        cluster.kubectl("delete", "localqueue/queue", "-n", namespace)
        cluster.kubectl("delete", f"clusterqueue/{namespace}", f"resourceflavor/{namespace}", "--wait=false")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_job_of_800_tasks_ends_on_fake_nodes(
    cluster: Cluster, namespace: str, lab: lifecycle.Facts, until: Callable[..., Any]
) -> None:
    addons.add_fake_nodes(100)
    try:
        fake = {
            "nodeSelector": {"type": "kwok"},
            "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
            "container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
        }
        cluster.apply(namespace, job("many", "none", "true", 800, **fake))
        until(
            lambda: cluster.get("job", "many", "-n", namespace)["status"].get("succeeded") == 800,
            seconds=200,
            why="800 tasks to end",
        )
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")
        addons.remove_fake_nodes()


def _docker_config(address: str, user: str, password: str) -> dict[str, Any]:
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    config = json.dumps({"auths": {address: {"username": user, "password": password, "auth": auth}}})
    data = {".dockerconfigjson": base64.b64encode(config.encode()).decode()}
    kind = "kubernetes.io/dockerconfigjson"
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}, "type": kind, "data": data}


@pytest.mark.parametrize(
    ("password", "said"),
    [(registry.PASSWORD, ""), ("wrong", "401 Unauthorized"), ("", "no basic auth credentials")],
    ids=["right", "wrong", "none"],
)
def test_a_registry_with_a_password_wants_the_right_one(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    until: Callable[..., Any],
    password: str,
    said: str,
) -> None:
    """Registry credentials as a dockerconfigjson Secret (P34)."""
    name = images.reference("busybox").replace(lab.registry, lab.locked_registry)
    pod: dict[str, Any] = {"container": {"imagePullPolicy": "Always"}}
    if password:
        cluster.apply(namespace, _docker_config(lab.locked_registry, registry.USER, password))
        pod["imagePullSecrets"] = [{"name": "pull"}]
    cluster.apply(namespace, job("locked", name, "true", **pod))

    def outcome() -> str:
        for found in cluster.get("pods", "-n", namespace)["items"]:
            if found["status"]["phase"] == "Succeeded":
                return "ran"
            for status in found["status"].get("containerStatuses", []):
                waiting = status["state"].get("waiting", {})
                if waiting.get("reason") == "ErrImagePull":
                    return str(waiting["message"])
        return ""

    answer = str(until(outcome, seconds=60, why="the pull"))
    assert said in answer and (answer == "ran") == (not said)


def test_an_image_volume_shows_an_images_files(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    image: Callable[[str], str],
    jobs_end: Callable[..., str],
) -> None:
    volume = {"volumes": [{"name": "files", "image": {"reference": image("busybox")}}]}
    mount = {"volumeMounts": [{"name": "files", "mountPath": "/files"}]}
    cluster.apply(
        namespace,
        job(
            "mounted", image("python"), "ls /files/bin/busybox && ! touch /files/x", container=mount, **volume
        ),
    )
    assert jobs_end(namespace, "mounted") == "Complete"


def test_pods_share_a_volume_of_the_node(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    image: Callable[[str], str],
    jobs_end: Callable[..., str],
) -> None:
    """A static hostPath volume and its claim stand in for a shared file system (P18)."""
    capacity = {"storage": "1Gi"}
    place = addons.SHARED / namespace
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": capacity,
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "hostPath": {"path": str(place), "type": "DirectoryOrCreate"},
            "claimRef": {"namespace": namespace, "name": "shared"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": namespace,
            "resources": {"requests": capacity},
        },
    }
    cluster.apply(namespace, volume, claim)
    try:
        mounted = {"volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}}]}
        mount = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
        script = (
            "touch /shared/$JOB_COMPLETION_INDEX; until [ -e /shared/0 -a -e /shared/1 ]; do sleep 0.2; done"
        )
        cluster.apply(namespace, job("sharing", image("busybox"), script, 2, container=mount, **mounted))
        assert jobs_end(namespace, "sharing") == "Complete"
        assert sorted(path.name for path in place.iterdir()) == ["0", "1"]
    finally:
        cluster.kubectl("delete", f"pv/{namespace}", "--wait=false")


def test_pods_reach_the_object_store(
    cluster: Cluster,
    namespace: str,
    lab: lifecycle.Facts,
    image: Callable[[str], str],
    jobs_end: Callable[..., str],
) -> None:
    """Anonymous reads are refused: what a task gets it gets by a signature."""
    script = f"wget -O - {lab.s3}/lab/x 2>&1 | grep 403"
    cluster.apply(namespace, job("store", image("busybox"), script))
    assert jobs_end(namespace, "store") == "Complete"


def test_a_restarted_api_server_knows_what_it_knew(
    cluster: Cluster,
    namespace: str,
    faults: Faults,
    image: Callable[[str], str],
    jobs_end: Callable[..., str],
) -> None:
    cluster.apply(namespace, job("before", image("busybox"), "sleep 3"))
    start = faults.stop_api_server()
    assert "refused" in cluster.kubectl("get", "nodes", check=False)
    start()
    assert jobs_end(namespace, "before") == "Complete"


@pytest.mark.slow
def test_a_node_whose_kubelet_ended_is_lost_and_comes_back(
    cluster: Cluster, namespace: str, faults: Faults, until: Callable[..., Any]
) -> None:
    def ready() -> str:
        conditions = cluster.get("node", "kube-lab")["status"]["conditions"]
        return str({c["type"]: c["status"] for c in conditions}["Ready"])

    start = faults.stop_kubelet()
    until(lambda: ready() == "Unknown", seconds=60, why="the node to be lost")
    start()
    assert ready() == "True"
    assert cluster.get("node", "kube-lab")["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_the_registries_have_the_images(lab: lifecycle.Facts) -> None:
    for address, answer in ((lab.registry, 200), (lab.locked_registry, 401)):
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request("GET", "/v2/python/tags/list")
        reply = connection.getresponse()
        said = reply.read()
        connection.close()
        assert reply.status == answer
        assert answer == 401 or images.IMAGES["python"].tag in json.loads(said)["tags"]


def test_state_is_in_one_folder(lab: lifecycle.Facts) -> None:
    assert Path(lab.kubeconfig).stat().st_mode & 0o077 == 0


def test_a_stop_would_see_what_there_is(lab: lifecycle.Facts) -> None:
    """``make cluster-stop`` names what it could not take away: so it must know all of it."""
    there = "\n".join(leftovers())
    for part in (
        "etcd",
        "kube-apiserver",
        "kubelet",
        "containerd",
        "coredns",
        "kueue",
        "kwok",
        "rclone",
        "jobset",
    ):
        assert f"/{part} " in there, part
    for thing in ("network bridge", "iptables rule", "line of /etc/hosts", f"folder {STATE}"):
        assert thing in there, thing


def test_a_limited_account_may_what_its_roles_say_and_no_more(
    cluster: Cluster, account_with: Callable[..., Path], limited: Path
) -> None:
    def may(kubeconfig: Path, verb: str, what: str, *more: str) -> bool:
        return (
            cluster.kubectl(f"--kubeconfig={kubeconfig}", "auth", "can-i", verb, what, *more, check=False)
            == "yes\n"
        )

    least = account_with("paijupyter")
    assert may(least, "create", "jobs") and may(least, "create", "secrets")
    assert not may(least, "create", "pods", "--subresource=exec")
    assert may(limited, "create", "pods", "--subresource=exec")
    for kubeconfig in (least, limited):
        assert not may(kubeconfig, "get", "secrets") and not may(kubeconfig, "list", "nodes")
        assert not may(kubeconfig, "create", "jobs", "-n", "default")
