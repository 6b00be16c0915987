"""The node: containerd, kubelet, DNS, and the GPUs that it says to have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cluster.lab.build import folder, program
from tests.cluster.lab.control import enter
from tests.cluster.lab.kubectl import kubectl, kubectl_json
from tests.cluster.lab.places import (
    GATEWAY,
    GPUS,
    KUBELET_PORT,
    LOCKED_REGISTRY,
    NODE,
    REGISTRY,
    STATE,
    LabError,
)
from tests.cluster.lab.processes import run, start, stop, wait

_CONTAINERD = STATE / "containerd"
SOCKET = _CONTAINERD / "containerd.sock"
PAUSE = "lab.local/pause:1"

_CONTAINERD_CONFIG = """\
version = 3
root = "{state}/containerd/root"
state = "{state}/containerd/run"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{state}/containerd/opt"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{plugins}"]
conf_dir = "{state}/cni/conf"

[plugins."io.containerd.cri.v1.images"]
discard_unpacked_layers = true

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "{state}/containerd/certs.d"
"""

_COREFILE = """\
.:53 {{
  bind {gateway}
  kubernetes cluster.local {{
    kubeconfig {kubeconfig}
    pods insecure
    ttl 1
  }}
  errors
}}
"""


def start_containerd() -> None:
    """Start containerd with its own root, so that another one on this machine is not touched."""
    for registry in (REGISTRY, LOCKED_REGISTRY):
        hosts = _CONTAINERD / "certs.d" / registry / "hosts.toml"
        hosts.parent.mkdir(parents=True, exist_ok=True)
        hosts.write_text(f'server = "http://{registry}"\n[host."http://{registry}"]\n')
    config = _CONTAINERD / "config.toml"
    config.write_text(
        _CONTAINERD_CONFIG.format(state=STATE, socket=SOCKET, plugins=_cni_plugins(), pause=PAUSE)
    )
    start(
        "containerd",
        [program("containerd"), "--config", config],
        lambda: ctr_answers(),
        # Its own shim first: with another version's it finds no tasks.
        environment={
            "PATH": f"{folder('containerd')}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        },
    )


def has_containerd() -> bool:
    """Say whether a containerd of the lab was ever started, whether it runs or not."""
    return (_CONTAINERD / "config.toml").exists()


def ctr(*arguments: str | Path) -> str:
    """Run containerd's own command line in the namespace of Kubernetes' images and containers."""
    return run([program("containerd", "ctr"), "--address", SOCKET, "-n", "k8s.io", *arguments])


def ctr_answers() -> bool:
    """Say whether containerd answers."""
    try:
        ctr("version")
    except LabError:
        return False
    return True


def start_dns() -> None:
    """Start CoreDNS on the bridge; it knows the cluster's names and no others."""
    corefile = STATE / "Corefile"
    corefile.write_text(_COREFILE.format(gateway=GATEWAY, kubeconfig=enter("admin")))
    start("coredns", [program("coredns"), "-conf", corefile], lambda: "CoreDNS-" in _log("coredns"))


def start_kubelet() -> None:
    """Start the kubelet (again, after :func:`stop_kubelet`), wait for a Ready node and give it its GPUs."""
    config = STATE / "kubelet.json"
    (STATE / "resolv.conf").write_text(f"nameserver {GATEWAY}\n")
    config.write_text(json.dumps(_kubelet_config(), indent=1))
    start(
        "kubelet",
        [
            program("kubernetes", "kubelet"),
            f"--config={config}",
            f"--kubeconfig={enter('node')}",
            f"--root-dir={STATE / 'kubelet'}",
            f"--cert-dir={STATE / 'kubelet' / 'pki'}",
            f"--hostname-override={NODE}",
        ],
        node_ready,
    )
    give("nvidia.com/gpu", GPUS)


def stop_kubelet(seconds: float = 15) -> None:
    """End the kubelet alone: pods run on and nobody reports them, as on a node that is lost."""
    stop("kubelet", seconds)


def node_ready() -> bool:
    """Say whether the node is Ready and its kubelet of now has said so."""
    try:
        node = kubectl_json("get", "node", NODE)
    except LabError:
        return False
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


def give(resource: str, count: int) -> None:
    """Make the node advertise an extended resource, without devices; a kubelet that starts takes it away."""
    path = f"/status/capacity/{resource.replace('/', '~1')}"

    def given() -> bool:
        status = kubectl_json("get", "node", NODE)["status"]
        if status["capacity"].get(resource) != str(count):
            patch = [{"op": "add", "path": path, "value": str(count)}]
            kubectl("patch", "node", NODE, "--subresource=status", "--type=json", "-p", json.dumps(patch))
        return bool(status["allocatable"].get(resource) == str(count))

    wait(given, 60, f"the node to advertise {count} {resource}", "kubelet")


def _kubelet_config() -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": KUBELET_PORT,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [GATEWAY],
        "clusterDomain": "cluster.local",
        "resolvConf": str(STATE / "resolv.conf"),
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "featureGates": {"ImageVolume": True},
        "maxPods": 500,
        "serializeImagePulls": False,
        "podLogsDir": str(STATE / "pod-logs"),
        "volumePluginDir": str(STATE / "kubelet" / "plugins-exec"),
        "makeIPTablesUtilChains": False,
        "nodeStatusUpdateFrequency": "4s",
        "nodeStatusReportFrequency": "4s",
        "nodeLeaseDurationSeconds": 16,
        "syncFrequency": "10s",
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
    }


def _cni_plugins() -> Path:
    for place in ("/usr/lib/cni", "/opt/cni/bin"):
        if shutil.which("bridge", path=place):
            return Path(place)
    raise LabError("There are no CNI plug-ins on this machine: apt-get install containernetworking-plugins")


def _log(name: str) -> str:
    return (STATE / "logs" / f"{name}.log").read_text(errors="replace")
