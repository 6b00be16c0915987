"""Where the lab lies and what its addresses are. A machine has one lab: its bridge and ports are fixed."""

from __future__ import annotations

import os
from pathlib import Path

CACHE = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
    / "paijupyter-tests"
    / "cluster"
)
"""What is made once: programs and images. Read when imported: tests have homes of their own."""

PROGRAMS = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
"""Where the system's programs are: a user's PATH may be without the administrator's."""

STATE = Path("/var/lib/paijupyter-lab")
"""All that a running lab writes; gone after a stop."""

SOURCES = Path(__file__).resolve().parents[1] / "go"
KUBECONFIG = STATE / "kubeconfig"

NODE = "kube-lab"
BRIDGE = "pjlab0"
GATEWAY = "10.77.0.1"
"""The bridge's address: the API server, DNS, registries and S3 listen on it, so that pods reach them."""
PODS = "10.77.0.0/16"
SERVICES = "10.78.0.0/16"
API_SERVICE = "10.78.0.1"
"""The address of ``kubernetes.default.svc``, which pods find in their environment."""

API_PORT = 16443
ETCD_PORT = 16379
ETCD_PEER_PORT = 16380
KUBELET_PORT = 16250
REGISTRY = f"{GATEWAY}:5000"
LOCKED_REGISTRY = f"{GATEWAY}:5001"
S3_PORT = 9000
JOBSET_PORT = 16500
"""The webhook's; metrics and health are the two after it."""
KUEUE_PORT = 16510
KUEUE_VISIBILITY_PORT = 16513

ARCHITECTURE = "amd64"
GPUS = 8
"""What the node says to have of ``nvidia.com/gpu``."""


class LabError(Exception):
    """The lab cannot be built, started or stopped; the message says why and what to look at."""
