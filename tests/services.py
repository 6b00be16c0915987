"""Make what tests marked `services` need, outside of the tree, once (``make test-services``).

An S3 server (rclone, by Go), a Hadoop file system (by Maven), gnome-keyring (Debian's), a proxy for
JupyterHub and OpenPAI's SDK (npm's).
What cannot be made here is said, and its tests are skipped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cluster.lab import build

KEYRING = ("gnome-keyring", "dbus-daemon")
PROXY = "configurable-http-proxy@5"
SDK = "@microsoft/openpai-js-sdk@0.1.5"
_POM = Path(__file__).parent / "hadoop" / "pom.xml"
_MAVEN_SECONDS = 300.0
_JAVAS = range(11, 23)  # older ones know no --add-opens, newer ones no security manager
_BASE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paijupyter-tests"


def proxy() -> Path | None:
    """Return the program configurable-http-proxy, or None if it is not there."""
    there = shutil.which("configurable-http-proxy") or shutil.which(
        "configurable-http-proxy", path=str(_modules("hub") / ".bin")
    )
    return Path(there) if there else None


def rclone() -> Path | None:
    """Return the program rclone, or None if it is not there."""
    there = shutil.which("rclone") or shutil.which(build.program("rclone"))
    return Path(there) if there else None


def node() -> Path | None:
    """Return the program node, or None if it is not there."""
    there = shutil.which("node", path=_path())
    return Path(there) if there else None


def sdk() -> Path | None:
    """Return the folder of Node's modules that has OpenPAI's SDK, or None if it is not there."""
    modules = _modules("openpai")
    return modules if (modules / "@microsoft" / "openpai-js-sdk").is_dir() else None


def java() -> Path | None:
    """Return the program java, or None if there is none that Hadoop runs on."""
    there = shutil.which("java")
    if there is None:
        return None
    said = subprocess.run([there, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return Path(there) if found and int(found[1]) in _JAVAS else None


def hadoop() -> Path | None:
    """Return the folder of Hadoop's classes, or None if it is not there."""
    jars = _hadoop_jars()
    return jars if java() and jars.is_dir() else None


def main() -> int:
    """Make all of it; return 0 also if some cannot be made: its tests say so."""
    for name, is_there, make in (
        ("rclone", rclone, _make_rclone),
        ("hadoop", hadoop, _make_hadoop),
        ("gnome-keyring", lambda: shutil.which("gnome-keyring-daemon"), _make_keyring),
        ("configurable-http-proxy", proxy, lambda: _install(PROXY, "hub")),
        ("openpai-js-sdk", sdk, lambda: _install(SDK, "openpai")),
    ):
        if is_there():
            continue
        problem = _tried(make)
        print(f"{name}: {problem or 'installed'}", flush=True)
    return 0


def _tried(make: Callable[[], None]) -> str:
    try:
        make()
    except (OSError, subprocess.CalledProcessError, build.LabError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        return "cannot be made here: " + (said.decode(errors="replace").strip().splitlines() or ["?"])[-1]
    return ""


def _make_rclone() -> None:
    build.build(["rclone"])


def _make_hadoop() -> None:
    """Have Maven fetch Hadoop's classes, from wherever it is set up to fetch them."""
    if java() is None:
        raise FileNotFoundError("there is no Java from 11 to 22")
    jars = _hadoop_jars()
    draft = jars.with_name(f"{jars.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    words = ["mvn", "--quiet", "--batch-mode", f"--file={_POM}", "dependency:copy-dependencies"]
    try:
        made = subprocess.run(
            [*words, "-DincludeScope=runtime", f"-DoutputDirectory={draft}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_MAVEN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise OSError("Maven did not come to an end") from None
    if made.returncode:
        said = [line for line in made.stdout.decode(errors="replace").splitlines() if "ERROR" in line]
        raise OSError((said or ["Maven failed"])[0])
    draft.rename(jars)


def _hadoop_jars() -> Path:
    """Return the folder, another one for each state of the list."""
    return _BASE / f"hadoop-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]}"


def _make_keyring() -> None:
    get = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
    for words in (["update"], ["install", "--no-install-recommends", *KEYRING]):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([*get, *words], check=True, capture_output=True, env=environment)


def _install(package: str, name: str) -> None:
    folder = _modules(name).parent
    folder.mkdir(parents=True, exist_ok=True)
    words = [shutil.which("npm", path=_path()) or "npm", "install", "--silent", "--no-audit", "--no-fund"]
    environment = os.environ | {"PATH": _path()}
    subprocess.run([*words, package], check=True, capture_output=True, cwd=folder, env=environment)


def _path() -> str:
    """Return where programs are; where the machine has no Node, the environment of the tests has one."""
    return os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])


def _modules(name: str) -> Path:
    return _BASE / name / "node_modules"


if __name__ == "__main__":
    sys.exit(main())
