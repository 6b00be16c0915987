"""The images of the lab, made once from this machine's distribution and kept by the registry in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.lab.build import build, folder, only_one, program
from tests.cluster.lab.node import PAUSE, ctr
from tests.cluster.lab.places import ARCHITECTURE, CACHE, REGISTRY, STATE, LabError
from tests.cluster.lab.processes import run
from tests.cluster.lab.registry import cached, making, push

_MINIMAL = "minbase"
_SETGID, _SETUID = 6, 7  # linux/capability.h
_VFS_CAP_REVISION_2, _VFS_CAP_EFFECTIVE = 0x02000000, 1


@dataclass(frozen=True)
class Image:
    """What an image is made of.

    Attributes:
        packages: Packages of the distribution, on top of its smallest system; none: only ``busybox``.
        wheels: Requirements that pip installs on top.
    """

    packages: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """The hash of the recipe: another recipe is another image."""
        return hashlib.sha256(f"1 {self}".encode()).hexdigest()[:10]


@dataclass(frozen=True)
class BuildKit(Image):
    """An image like ``moby/buildkit:rootless``: its programs, and a user with a range of ids.

    Attributes:
        programs: Of :data:`build.IN_IMAGES`, by the folder that they are built in.
    """

    programs: tuple[str, ...] = ("buildkit", "rootlesskit")

    @property
    def tag(self) -> str:
        """The hash of the recipe, and of what its programs are built from."""
        built = " ".join(folder(name).name for name in self.programs)
        return hashlib.sha256(f"1 {self} {built}".encode()).hexdigest()[:10]


_PYTHON = ("python3", "python3-pip", "python3-venv", "ca-certificates")
IMAGES = {
    "busybox": Image(),
    "python": Image(_PYTHON),
    "torch": Image((*_PYTHON, "python3-torch")),
    "jax": Image(_PYTHON, ("jax>=0.5,<1",)),
    "buildkit": BuildKit(("uidmap", "runc", "ca-certificates")),
}


def reference(name: str) -> str:
    """Return the name under which pods ask for an image."""
    return f"{REGISTRY}/{name}:{IMAGES[name].tag}"


def import_pause() -> None:
    """Give containerd the image without which no pod starts; it is in no registry."""
    if PAUSE in ctr("images", "ls", "-q").split():
        return
    with tempfile.TemporaryDirectory(dir=STATE) as made:
        rootfs = Path(made) / "root"
        rootfs.mkdir()
        shutil.copy(program("pause"), rootfs / "pause")
        _pack(rootfs, Path(made) / "layer.tar")
        archive = Path(made) / "pause.tar"
        _docker_archive(Path(made) / "layer.tar", archive)
        ctr("images", "import", archive)


def make(name: str) -> None:
    """Make an image unless the cache has it."""
    image = IMAGES[name]
    if cached(name, image.tag):
        return
    with only_one("images"):
        if cached(name, image.tag):
            return
        begin = time.monotonic()
        print(f"making the image {name} …", file=sys.stderr, flush=True)
        _make(name, image)
        print(f"made the image {name} in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def pull(name: str) -> None:
    """Have the node pull an image, so that no test waits for it."""
    if reference(name) not in ctr("images", "ls", "-q").split():
        ctr("images", "pull", "--plain-http", reference(name))


def _make(name: str, image: Image) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="image-") as made:
        rootfs, layer = Path(made) / "root", Path(made) / "layer.tar"
        if image.packages:
            _debootstrap(rootfs, image)
            if image.wheels:
                _install(rootfs, image.wheels)
            if isinstance(image, BuildKit):
                _add_buildkit(rootfs, image)
        else:
            _busybox(rootfs)
        _pack(rootfs, layer)
        with making() as registry:
            push(registry, name, image.tag, [layer], {})


def _debootstrap(rootfs: Path, image: Image) -> None:
    """Make a root file system of packages of this machine's distribution, from where it gets its own."""
    codename, mirror = _release()
    command = ["debootstrap", f"--variant={_MINIMAL}", f"--include={','.join(image.packages)}"]
    packages = CACHE / "debs"
    packages.mkdir(parents=True, exist_ok=True)
    run([*command, f"--cache-dir={packages}", codename, rootfs, mirror])
    # As in the images that people use: `python` is there, and pip may install.
    (rootfs / "usr/bin/python").symlink_to("python3")
    for marker in rootfs.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(rootfs / waste, ignore_errors=True)


def _install(rootfs: Path, wheels: tuple[str, ...]) -> None:
    """Add wheels for the image's own Python, whichever runs this."""
    version = next(rootfs.glob("usr/lib/python3.*")).name.removeprefix("python")
    target = rootfs / "usr/local/lib" / f"python{version}" / "dist-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--only-binary=:all:", f"--python-version={version}", f"--target={target}", *wheels])


def _add_buildkit(rootfs: Path, image: BuildKit) -> None:
    build(image.programs)
    for name in image.programs:
        for file in folder(name).iterdir():
            shutil.copy(file, rootfs / "usr/local/bin" / file.name)
    for file, line in (
        ("passwd", "user:x:1000:1000::/home/user:/bin/sh"),
        ("group", "user:x:1000:"),
        ("subuid", "user:100000:65536"),
        ("subgid", "user:100000:65536"),
    ):
        with (rootfs / "etc" / file).open("a") as stream:
            stream.write(line + "\n")
    for home in ("home/user/.local/tmp", "home/user/.local/share/buildkit", "run/user/1000"):
        (rootfs / home).mkdir(parents=True)
    for path in (rootfs / "home/user", *(rootfs / "home/user").rglob("*"), rootfs / "run/user/1000"):
        os.chown(path, 1000, 1000)
    # Set-uid root they write the maps as a root without CAP_SYS_ADMIN, which in a pod the kernel refuses;
    # with the capability as the file's they do it as the owner of the user namespace, who may.
    for file, capability in (("newuidmap", _SETUID), ("newgidmap", _SETGID)):
        (rootfs / "usr/bin" / file).chmod(0o755)
        value = struct.pack("<5I", _VFS_CAP_REVISION_2 | _VFS_CAP_EFFECTIVE, 1 << capability, 0, 0, 0)
        os.setxattr(rootfs / "usr/bin" / file, "security.capability", value)


def _busybox(rootfs: Path) -> None:
    """Make an image that has a shell and nothing else, no Python above all."""
    for name in ("bin", "tmp", "etc"):
        (rootfs / name).mkdir(parents=True)
    with tempfile.TemporaryDirectory() as fetched:
        run(["apt-get", "-qq", "download", "busybox-static"], cwd=fetched)
        run(["dpkg-deb", "-x", next(Path(fetched).glob("*.deb")), f"{fetched}/x"])
        found = next(Path(fetched, "x").glob("**/bin/busybox"))
        shutil.copy(found, rootfs / "bin" / "busybox")
    for applet in run([rootfs / "bin" / "busybox", "--list"]).split():
        if applet != "busybox":
            (rootfs / "bin" / applet).symlink_to("busybox")


def _release() -> tuple[str, str]:
    """Return the code name of this machine's distribution and where it gets its packages."""
    facts = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    codename = facts.get("VERSION_CODENAME", "").strip('"')
    for line in run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)"]
    ).splitlines():
        found, component, uri = line.split(" ", 2)
        if found == codename and component == "main":
            return codename, uri
    raise LabError(f"apt knows no source of packages for {codename or 'this distribution'}.")


def _pack(rootfs: Path, archive: Path) -> None:
    run(
        [
            "tar",
            "--numeric-owner",
            "--xattrs",
            "--xattrs-include=security.capability",
            "--exclude=./dev/*",
            "--exclude=./proc/*",
            "-C",
            rootfs,
            "-cf",
            archive,
            ".",
        ]
    )


def _docker_archive(layer: Path, archive: Path) -> None:
    """Write what ``docker save`` would: an image of one layer, to be imported without a registry."""
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    config = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        tar.add(layer, "layer.tar")
        for name, what in (("config.json", config), ("manifest.json", manifest)):
            path = layer.with_name(name)
            path.write_text(json.dumps(what))
            tar.add(path, name)
