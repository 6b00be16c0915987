"""What the lab needs of the network: a bridge, a rule for the API server's address, the node's name."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.cluster.lab.places import (
    API_PORT,
    API_SERVICE,
    BRIDGE,
    GATEWAY,
    NODE,
    PODS,
    PROGRAMS,
    STATE,
    LabError,
)
from tests.cluster.lab.processes import run

_HOSTS = Path("/etc/hosts")
_HOSTS_LINE = f"127.0.0.1 {NODE} # paijupyter-lab"
# Without kube-proxy nobody else leads pods from the service's address to the API server.
_RULE = [
    *("PREROUTING", "-i", BRIDGE, "-d", f"{API_SERVICE}/32", "-p", "tcp", "--dport", "443"),
    *(
        "-m",
        "comment",
        "--comment",
        "paijupyter-lab",
        "-j",
        "DNAT",
        "--to-destination",
        f"{GATEWAY}:{API_PORT}",
    ),
]


def up() -> None:
    """Make what is not there yet."""
    if not Path(f"/sys/class/net/{BRIDGE}").exists():
        taken = run(["ip", "-o", "-4", "route", "show", "root", PODS]).strip()
        if taken:
            raise LabError(f"The pods' addresses {PODS} are in use on this machine: {taken}")
        run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "address", "replace", f"{GATEWAY}/{PODS.rpartition('/')[2]}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    if _iptables("-C"):
        run(["iptables", "-w", "-t", "nat", "-A", *_RULE])
    lines = _HOSTS.read_text().splitlines()
    if _HOSTS_LINE not in lines:
        # In place: in a container this file is a mount, which nothing can be moved over.
        _HOSTS.write_text("\n".join([*lines, _HOSTS_LINE]) + "\n")
    _configure()


def down() -> None:
    """Take away what :func:`up` made."""
    while not _iptables("-D"):
        pass
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        run(["ip", "link", "delete", BRIDGE])
    lines = _HOSTS.read_text().splitlines()
    if _HOSTS_LINE in lines:
        _HOSTS.write_text("\n".join(line for line in lines if line != _HOSTS_LINE) + "\n")


def left() -> list[str]:
    """Name what is there of what :func:`up` made, a line each."""
    there = {
        f"network bridge {BRIDGE}": Path(f"/sys/class/net/{BRIDGE}").exists(),
        f"iptables rule for {API_SERVICE}": _iptables("-C") == 0,
        f"line of {_HOSTS}: {_HOSTS_LINE}": _HOSTS_LINE in _HOSTS.read_text().splitlines(),
    }
    return [name for name, is_there in there.items() if is_there]


def _iptables(action: str) -> int:
    program = shutil.which("iptables", path=PROGRAMS)
    if not program:
        return 1  # a machine without it has no rule of ours
    return subprocess.run([program, "-w", "-t", "nat", action, *_RULE], capture_output=True).returncode


def _configure() -> None:
    """Write the file from which containerd learns how pods are connected."""
    folder = STATE / "cni" / "conf"
    folder.mkdir(parents=True, exist_ok=True)
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "isDefaultGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": PODS}]],
            "dataDir": str(STATE / "cni" / "networks"),
        },
    }
    conf = {"cniVersion": "1.0.0", "name": "paijupyter-lab", "plugins": [bridge]}
    (folder / "10-lab.conflist").write_text(json.dumps(conf, indent=1))
