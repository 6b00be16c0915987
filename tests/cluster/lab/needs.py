"""What the lab asks of a machine, and how it gets what can be had."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys

from tests.cluster.lab.build import go, missing
from tests.cluster.lab.places import PROGRAMS, LabError
from tests.cluster.lab.processes import run

_PATHS = f"{PROGRAMS}:/usr/lib/cni:/opt/cni/bin"
# A file that shows that a package of Debian is there.
_PACKAGES = {
    "runc": "runc",
    "bridge": "containernetworking-plugins",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "ip": "iproute2",
    "openssl": "openssl",
    "conntrack": "conntrack",
    "socat": "socat",
    "ethtool": "ethtool",
    "mount": "mount",
}


def lacks() -> str:
    """Say why this machine can have no lab, "" if it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"the lab is for Linux on x86_64, this is {platform.system()} on {platform.machine()}"
    if os.geteuid() != 0:
        return "only root can start a Kubernetes node here (or set PAIJUPYTER_TEST_KUBECONFIG)"
    if subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode:
        return "this machine allows no namespaces, which containers need (a container without privileges?)"
    if missing() and not go():
        return f"there is no Go, with which {', '.join(missing())} are built"
    if _absent() and not shutil.which("apt-get"):
        return f"this is no Debian, and these are absent: {', '.join(_absent())}"
    return ""


def install() -> None:
    """Install by apt what is absent.

    Raises:
        LabError: It cannot be installed.
    """
    packages = [_PACKAGES[file] for file in _absent()]
    if not packages:
        return
    print(f"installing {' '.join(packages)} …", file=sys.stderr, flush=True)
    get = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    run([*get, "update"], env=environment)
    run([*get, "install", "--no-install-recommends", *packages], env=environment)
    if _absent():
        raise LabError(f"After their installation these are still absent: {', '.join(_absent())}")


def _absent() -> list[str]:
    return [file for file in _PACKAGES if not shutil.which(file, path=_PATHS)]
