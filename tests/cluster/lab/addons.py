"""What runs beside Kubernetes, as processes of this machine: JobSet, Kueue, KWOK, an object store."""

from __future__ import annotations

import base64
import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.lab.build import folder, program
from tests.cluster.lab.control import answers, enter, make_authority, make_certificate
from tests.cluster.lab.kubectl import apply, kubectl, kubectl_json
from tests.cluster.lab.places import (
    GATEWAY,
    JOBSET_PORT,
    KUEUE_PORT,
    KUEUE_VISIBILITY_PORT,
    S3_PORT,
    STATE,
    LabError,
)
from tests.cluster.lab.processes import running, start, stop, wait

S3_USER, S3_SECRET = "lab", "lab-secret"  # of a store that only this machine reaches
BUCKETS = STATE / "s3"
SHARED = STATE / "shared"
"""What a ``hostPath`` volume of this node may show: a shared file system, as pods see one."""

_VISIBILITY = "kueue-visibility.kueue-system.svc"


def up() -> None:
    """Start those that do not run."""
    SHARED.mkdir(exist_ok=True)
    SHARED.chmod(0o1777)
    start_s3()
    start_jobset()
    start_kueue()
    start_kwok()


def start_s3() -> None:
    """Start an S3 server on the bridge; each folder of :data:`BUCKETS` is a bucket."""
    (BUCKETS / "lab").mkdir(parents=True, exist_ok=True)
    command = [program("rclone"), "serve", "s3", "--auth-key", f"{S3_USER},{S3_SECRET}"]
    command += [
        "--addr",
        f"{GATEWAY}:{S3_PORT}",
        "--vfs-cache-mode",
        "off",
        "--config",
        STATE / "rclone.conf",
    ]
    start("rclone", [*command, BUCKETS], lambda: _refuses(f"http://{GATEWAY}:{S3_PORT}/lab"))


def start_jobset() -> None:
    """Start the JobSet controller and lead its webhooks to it (again, after :func:`stop_jobset`)."""
    home = _home("jobset")
    config = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": "127.0.0.1", "port": JOBSET_PORT, "certDir": str(home)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{JOBSET_PORT + 1}"},
    }
    (home / "config.yaml").write_text(json.dumps(config))
    _apply_definitions("jobset", "jobsets.jobset.x-k8s.io")
    start(
        "jobset",
        [program("jobset"), f"--config={home / 'config.yaml'}", f"--kubeconfig={enter('admin')}"],
        lambda: answers(f"http://127.0.0.1:{JOBSET_PORT + 1}/readyz"),
    )
    # Without a selector no pod of the cluster could be made while the controller is down.
    selector = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
    _apply_webhooks("jobset", JOBSET_PORT, {"jobset.x-k8s.io": None, "": selector})


def stop_jobset() -> None:
    """End the JobSet controller: who makes a JobSet now reads that its webhook cannot be called."""
    stop("jobset")


def start_kueue() -> None:
    """Start Kueue with its queue positions (again, after :func:`stop_kueue`)."""
    home = _home("kueue")
    if not running("kueue"):
        _kueue_root(home)
    _apply_definitions("kueue", "workloads.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io")
    start(
        "kueue",
        # It looks for certificates at absolute paths, which are not ours to make: it gets a root of its own.
        ["chroot", home, "/kueue", "--config=/config.yaml", "--kubeconfig=/kubeconfig"],
        lambda: answers(f"http://127.0.0.1:{KUEUE_PORT + 1}/readyz"),
    )
    _apply_webhooks("kueue", KUEUE_PORT, {"batch": None, "jobset.x-k8s.io": None, "kueue.x-k8s.io": None})
    _publish_visibility(home)


def stop_kueue() -> None:
    """End Kueue: jobs with a queue's label cannot be made, those that wait go on waiting."""
    stop("kueue")


def start_kwok() -> None:
    """Start KWOK, which plays the kubelet of nodes with the label ``type=kwok``."""
    stages = [
        path
        for path in sorted(folder("kwok").rglob("stage/*/fast/*.yaml"))
        if "kustomization" not in path.name
    ]
    text = [yaml.safe_load(path.read_text()) for path in stages]
    for stage in text:
        if stage["metadata"]["name"] == "pod-complete":
            # A pod may say how long it runs; otherwise it ends at once.
            annotation = '.metadata.annotations["pod-complete.stage.kwok.x-k8s.io/delay"]'
            stage["spec"]["delay"] = {"durationFrom": {"expressionFrom": annotation}}
    (STATE / "kwok.yaml").write_text("\n---\n".join(json.dumps(stage) for stage in text))
    command = [program("kwok"), f"--kubeconfig={enter('admin')}", f"--config={STATE / 'kwok.yaml'}"]
    command += ["--manage-all-nodes=false", "--manage-nodes-with-label-selector=type=kwok"]
    address = "127.0.0.1:16520"
    start("kwok", [*command, f"--server-address={address}"], lambda: answers(f"http://{address}/healthz"))


def add_fake_nodes(count: int, gpus: int = 8) -> None:
    """Add nodes that KWOK plays; pods reach them only if they tolerate ``kwok.x-k8s.io/node``."""
    has = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"fake-{index:03}", "labels": {"type": "kwok"}},
            "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": has, "allocatable": has},
        }
        for index in range(count)
    ]
    apply(*nodes)

    def ready() -> bool:
        found = kubectl_json("get", "nodes", "-l", "type=kwok")["items"]
        states = [c for node in found for c in node["status"].get("conditions", []) if c["type"] == "Ready"]
        return sum(c["status"] == "True" for c in states) >= count

    wait(ready, 60, f"{count} fake nodes to be ready", "kwok")


def remove_fake_nodes() -> None:
    """Take the fake nodes away again."""
    kubectl("delete", "nodes", "-l", "type=kwok", "--wait=false")


def _home(name: str) -> Path:
    """Make the folder of a controller with a certificate of an authority of its own."""
    home = STATE / name
    if not (home / "tls.crt").exists():
        home.mkdir(exist_ok=True)
        make_authority(home)
        make_certificate(home, "tls", name, f"IP:127.0.0.1,DNS:{_VISIBILITY}")
    return home


def _kueue_root(home: Path) -> None:
    for place in ("etc/kueue/metrics/certs", "visibility", "webhook", "tmp"):
        (home / place).mkdir(parents=True, exist_ok=True)
        if place != "tmp":
            for file in ("tls.crt", "tls.key"):
                shutil.copy(home / file, home / place / file)
    shutil.copy(program("kueue"), home / "kueue")
    shutil.copy(enter("admin"), home / "kubeconfig")
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": "127.0.0.1", "port": KUEUE_PORT, "certDir": "/webhook"},
        "metrics": {"bindAddress": f"127.0.0.1:{KUEUE_PORT + 2}"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{KUEUE_PORT + 1}"},
        "visibilityServer": {"bindAddress": GATEWAY, "bindPort": KUEUE_VISIBILITY_PORT},
        "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]},
    }
    (home / "config.yaml").write_text(json.dumps(config))


def _publish_visibility(home: Path) -> None:
    """Let the API server ask Kueue, which is no pod, for queue positions: a Service without a selector."""
    space, name = "kueue-system", _VISIBILITY.partition(".")[0]
    group = "visibility.kueue.x-k8s.io"
    meta = {"namespace": space, "name": name}
    port = {"name": "https", "port": 443, "targetPort": KUEUE_VISIBILITY_PORT, "protocol": "TCP"}
    slice_port = {"name": "https", "port": KUEUE_VISIBILITY_PORT, "protocol": "TCP"}
    authority = base64.b64encode((home / "ca.crt").read_bytes()).decode()
    apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [port]}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": meta | {"labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [slice_port],
            "endpoints": [{"addresses": [GATEWAY], "conditions": {"ready": True}}],
        },
        *(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{version}.{group}"},
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "caBundle": authority,
                    "service": {"namespace": space, "name": name},
                },
            }
            for version in ("v1beta1", "v1beta2")
        ),
    )
    path = f"/apis/{group}/v1beta2"
    wait(lambda: _serves(path), 60, "Kueue's queue positions", "kueue")


def _serves(path: str) -> bool:
    try:
        kubectl("get", "--raw", path)
    except LabError:
        return False
    return True


def _apply_definitions(name: str, *resources: str) -> None:
    """Apply a controller's resource definitions and wait until the API server serves them."""
    kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", str(folder(name) / "config/components/crd/bases")
    )

    def established() -> bool:
        found = [kubectl_json("get", "crd", one).get("status", {}) for one in resources]
        states = [c for status in found for c in status.get("conditions") or [] if c["type"] == "Established"]
        return sum(c["status"] == "True" for c in states) == len(resources)

    wait(established, 60, f"the resource definitions of {name}", "kube-apiserver")


def _apply_webhooks(name: str, port: int, groups: dict[str, dict[str, Any] | None]) -> None:
    """Apply a controller's webhooks for some API groups, led to this machine instead of to a Service.

    Args:
        name: The controller's.
        port: Where it listens on loopback.
        groups: API group of what the webhook is asked for, and the object selector that it gets.
    """
    text = (folder(name) / "config/components/webhook/manifests.yaml").read_text()
    authority = base64.b64encode((STATE / name / "ca.crt").read_bytes()).decode()
    kept = []
    for configuration in filter(None, yaml.safe_load_all(text)):
        webhooks = []
        for webhook in configuration["webhooks"]:
            found = {group for rule in webhook["rules"] for group in rule["apiGroups"]}
            if not found <= set(groups):
                continue
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}
            selector = groups[next(iter(found))]
            webhooks.append(webhook | ({"objectSelector": selector} if selector else {}))
        configuration["metadata"]["name"] = f"{name}-{configuration['metadata']['name']}"
        kept.append(configuration | {"webhooks": webhooks})
    apply(*kept)


def _refuses(url: str) -> bool:
    """Say whether a server answers, if only that it wants a signature."""
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except urllib.error.HTTPError as answer:
        answer.close()
        return answer.code == 403
    except OSError:
        return False
    return True
