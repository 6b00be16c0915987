"""Start and stop the lab as a whole, and what it tells who uses it."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster.lab import addons, control, images, needs, network, node, registry
from tests.cluster.lab.build import PROGRAMS, build, folder, only_one
from tests.cluster.lab.kubectl import kubectl
from tests.cluster.lab.leftovers import leftovers, mounts
from tests.cluster.lab.places import (
    BRIDGE,
    GATEWAY,
    KUBECONFIG,
    LOCKED_REGISTRY,
    REGISTRY,
    S3_PORT,
    STATE,
    LabError,
)
from tests.cluster.lab.processes import running, stop, wait

_FACTS = STATE / "lab.json"
_EARLY = ("busybox", "python")
# Who depends on others ends before them.
_PROCESSES = (
    *("kwok", "kueue", "jobset", "rclone", "kubelet", "coredns", "kube-scheduler", "kube-controller-manager"),
    *("kube-apiserver", "etcd", "registry-making", "registry-locked", "registry"),
)
# Folders that kubelet and containerd make wherever they keep the rest, the inner ones first.
_FIXED = (
    *("/var/log/containers", "/var/lib/cni/results", "/var/lib/cni", "/var/lib/kubelet/device-plugins"),
    *("/var/lib/kubelet", "/run/containerd/s", "/run/containerd/runc", "/run/containerd"),
)


@dataclass(frozen=True)
class Facts:
    """What who uses the lab needs to know.

    Attributes:
        kubeconfig: File that lets in as administrator.
        images: Name in :data:`images.IMAGES` and the reference that pods ask for.
        gateway: Address of this machine that pods reach.
        registry: Host and port of the open registry, plain HTTP.
        locked_registry: The same images behind a user and a password.
        s3: Address of the object store.
        key: What it was built of.
    """

    kubeconfig: str
    images: dict[str, str]
    gateway: str
    registry: str
    locked_registry: str
    s3: str
    key: str


def facts() -> Facts | None:
    """Return the facts of a lab that runs, ``None`` where none does."""
    try:
        found = Facts(**json.loads(_FACTS.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return found if running("etcd") else None


def start() -> Facts:
    """Build what is missing and start what does not run; a lab that runs is left as it is.

    Raises:
        LabError: The machine cannot, or a part did not start.
    """
    lacking = needs.lacks()
    if lacking:
        raise LabError(f"The lab cannot run here: {lacking}.")
    with only_one("lab"):
        begin = time.monotonic()
        needs.install()
        build()
        for name in _EARLY:
            images.make(name)
        old = facts()
        if old and old.key != _key():
            print("a lab of other versions runs: it is replaced", file=sys.stderr, flush=True)
            _stop()
        STATE.mkdir(parents=True, exist_ok=True)
        _start()
        _publish()
        print(f"the lab runs ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
        found = facts()
        assert found
        return found


def add_image(name: str) -> str:
    """Make one more image, have the node pull it, and return its reference."""
    images.make(name)
    with only_one("lab"):
        registry.serve_cached()
        images.pull(name)
        _publish()
    return images.reference(name)


def stop_all() -> None:
    """Stop the lab and take away all that it made on this machine, except the cache.

    Raises:
        LabError: Something is still there, and what.
    """
    with only_one("lab"):
        _stop()
        left = leftovers()
        if left:
            raise LabError("The lab is stopped, but this is left of it:\n  " + "\n  ".join(left))


def _start() -> None:
    network.up()
    registry.up()
    node.start_containerd()
    images.import_pause()
    for name in _EARLY:
        images.pull(name)
    control.up()
    node.start_dns()
    node.start_kubelet()
    addons.up()


def _publish() -> None:
    there = {
        name: images.reference(name)
        for name, image in images.IMAGES.items()
        if registry.cached(name, image.tag)
    }
    found = Facts(
        kubeconfig=str(KUBECONFIG),
        images=there,
        gateway=GATEWAY,
        registry=REGISTRY,
        locked_registry=LOCKED_REGISTRY,
        s3=f"http://{GATEWAY}:{S3_PORT}",
        key=_key(),
    )
    draft = _FACTS.with_suffix(".new")
    draft.write_text(json.dumps(asdict(found), indent=1))
    draft.rename(_FACTS)


def _key() -> str:
    return hashlib.sha256(" ".join(folder(name).name for name in PROGRAMS).encode()).hexdigest()[:12]


def _stop() -> None:
    _FACTS.unlink(missing_ok=True)
    if control.api_ready() and running("kubelet"):
        _delete_pods()
    for name in _PROCESSES:
        stop(name)
    if node.has_containerd():
        # One that died has left its containers behind: only it ends them, so it is started for that.
        with contextlib.suppress(LabError):
            node.start_containerd()
            _end_containers()
        stop("containerd")
    _unmount()
    still = mounts()
    if still:  # nothing is deleted below what is mounted: it may be anybody's
        raise LabError(f"These cannot be unmounted, so {STATE} stays: {', '.join(still)}")
    if STATE.exists() or Path(f"/sys/class/net/{BRIDGE}").exists():
        network.down()
    _remove_cgroups()
    _sweep()
    shutil.rmtree(STATE, ignore_errors=True)
    if STATE.exists():
        shutil.rmtree(STATE)


def _delete_pods() -> None:
    """Let the kubelet take its pods down in order; what it does not manage is ended by force afterwards."""
    with contextlib.suppress(LabError):
        kubectl("delete", "jobs", "--all", "--all-namespaces", "--wait=false", "--cascade=foreground")
        kubectl("delete", "pods", "--all", "--all-namespaces", "--grace-period=1", "--wait=false")
        wait(lambda: not kubectl("get", "pods", "--all-namespaces", "-o", "name").strip(), 20, "pods to go")


def _end_containers() -> None:
    for container in node.ctr("containers", "ls", "-q").split():
        for command in (["tasks", "rm", "-f", container], ["containers", "rm", container]):
            with contextlib.suppress(LabError):
                node.ctr(*command)


def _sweep() -> None:
    """Remove what kubelet and containerd leave at fixed places, unless it is somebody else's."""
    for link in Path("/var/log/containers").glob("*"):
        if str(os.readlink(link)).startswith(f"{STATE}/"):
            link.unlink()
    for place in _FIXED:
        with contextlib.suppress(OSError):
            os.rmdir(place)


def _unmount() -> None:
    """Unmount what is left below the state folder, the deepest first."""
    libc = ctypes.CDLL(None, use_errno=True)
    detach = 2  # MNT_DETACH: busy ones too
    for place in mounts():
        libc.umount2(os.fsencode(place), detach)


def _remove_cgroups() -> None:
    """Remove the empty groups that the kubelet leaves, in each hierarchy."""
    for top in Path("/sys/fs/cgroup").glob("**/kubepods"):
        for group, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(group)
