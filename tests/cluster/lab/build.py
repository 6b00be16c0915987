"""Build the lab's programs from Go modules, once: a folder of the cache for each line of :data:`PROGRAMS`.

A folder's name has the hash of all that goes into it: ``go.mod``, ``go.sum``, flags, what is copied.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.lab.places import CACHE, SOURCES, LabError
from tests.cluster.lab.processes import run

_KUBERNETES = "v1.34.4"
_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Program:
    """A Go module and what is taken from it.

    Attributes:
        packages: File name of each program and its package.
        flags: Flags of the linker.
        tags: Build tags.
        files: Paths inside ``module`` that the lab needs beside the programs: manifests.
        module: The module that ``files`` are in.
    """

    packages: dict[str, str]
    flags: str = "-s -w"
    tags: str = ""
    files: tuple[str, ...] = ()
    module: str = ""


PROGRAMS = {
    "pause": Program({"pause": "."}),
    "kubernetes": Program(
        {
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
        },
        # Without these its version does not parse.
        flags=f"-s -w -X {_VERSION}.gitVersion={_KUBERNETES}"
        f" -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=34"
        f" -X k8s.io/client-go/pkg/version.gitVersion={_KUBERNETES}",
    ),
    "etcd": Program({"etcd": "go.etcd.io/etcd/server/v3"}),
    "containerd": Program(
        {
            name: f"github.com/containerd/containerd/v2/cmd/{name}"
            for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        },
        tags="no_btrfs no_zfs",
    ),
    "coredns": Program({"coredns": "github.com/coredns/coredns"}),
    "registry": Program({"registry": "github.com/distribution/distribution/v3/cmd/registry"}),
    "jobset": Program(
        {"jobset": "sigs.k8s.io/jobset"},
        files=("config/components/crd/bases", "config/components/webhook/manifests.yaml"),
        module="sigs.k8s.io/jobset",
    ),
    "kueue": Program(
        {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
        files=("config/components/crd/bases", "config/components/webhook/manifests.yaml"),
        module="sigs.k8s.io/kueue",
    ),
    "kwok": Program(
        {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        files=("kustomize/stage/node/fast", "kustomize/stage/pod/fast"),
        module="sigs.k8s.io/kwok",
    ),
    "rclone": Program({"rclone": "github.com/rclone/rclone"}),
}
IN_IMAGES = {
    "buildkit": Program(
        {name: f"github.com/moby/buildkit/cmd/{name}" for name in ("buildkitd", "buildctl")},
        tags="no_btrfs no_zfs",
    ),
    "rootlesskit": Program({"rootlesskit": "github.com/rootless-containers/rootlesskit/v3/cmd/rootlesskit"}),
}
"""What the lab itself does not run: programs of its images, built once an image wants them."""
_ALL = PROGRAMS | IN_IMAGES


def folder(name: str) -> Path:
    """Return the folder of a program's files, whether it is built or not."""
    program = _ALL[name]
    key = hashlib.sha256(repr(program).encode())
    for source in sorted((SOURCES / name).iterdir()):
        key.update(source.read_bytes())
    return CACHE / "programs" / f"{name}-{key.hexdigest()[:12]}"


def program(name: str, file: str = "") -> Path:
    """Return the path of a built program."""
    return folder(name) / (file or name)


def missing(names: Iterable[str] = PROGRAMS) -> list[str]:
    """Return the names of what is not built yet."""
    return [name for name in names if not folder(name).exists()]


def go() -> str | None:
    """Return the Go tool of this machine, ``None`` where there is none."""
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")


def build(names: Iterable[str] = PROGRAMS) -> None:
    """Build what is missing and say what it took.

    Raises:
        LabError: There is no Go, or a build failed.
    """
    if not missing(names):
        return
    with only_one("build"):
        for name in missing(names):
            begin = time.monotonic()
            print(f"building {name} …", file=sys.stderr, flush=True)
            _build(name)
            print(f"built {name} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


@contextmanager
def only_one(what: str) -> Iterator[None]:
    """Hold a lock of this machine: who comes second waits and finds the work done."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(name: str) -> None:
    tool = go()
    if not tool:
        raise LabError("There is no Go on this machine: install it (go.dev) or put it into PATH.")
    wanted = _ALL[name]
    made = folder(name)
    making = made.with_name(f".{made.name}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
    command = [tool, "build", "-trimpath", "-ldflags", wanted.flags, "-tags", wanted.tags]
    for file, package in wanted.packages.items():
        done = subprocess.run(
            [*command, "-o", str(making / file), package],
            cwd=SOURCES / name,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            raise LabError(f"{package} cannot be built: {done.stderr.strip()[-2000:]}")
    if wanted.files:
        where = run(
            [tool, "list", "-m", "-f", "{{.Dir}}", wanted.module], cwd=SOURCES / name, env=environment
        )
        _copy(Path(where.strip()), making, wanted.files)
    making.rename(made)


def _copy(source: Path, target: Path, files: tuple[str, ...]) -> None:
    for file in files:
        if (source / file).is_dir():
            shutil.copytree(source / file, target / file)
        else:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / file, target / file)
    for path in [target, *target.rglob("*")]:
        # Go's module folder may not be written, and a copy keeps that.
        path.chmod(path.stat().st_mode | 0o200)
