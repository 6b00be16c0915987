"""PaddlePaddle: collective training, parameter servers, and the names of its first cloud."""

import os

from ..environment import library_folder
from .group import Group, is_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    Spec = Dict[str, Any]

# Found before an installed paijupyter, it makes way for it. Without one, it is all of it that a script needs.
_STAND_IN = """\
import importlib, os, sys

_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_own = sys.modules.pop(__name__)
_path, sys.path = sys.path, [each for each in sys.path if os.path.abspath(each or ".") != _here]
try:
    importlib.import_module(__name__)
except ImportError as error:
    if error.name != __name__:
        raise
    sys.modules[__name__] = _own
finally:
    sys.path = _path
"""
_PADDLE = "from pai_tasks.paddle import PaddleJob, dist_train\n"


def variables(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return ``PADDLE_…`` for this task, a trainer or a parameter server."""
    group = Group(spec, role)
    trainers = ",".join(group.endpoint(pair) for pair in group.workers)
    servers = ",".join(group.endpoint(pair) for pair in group.servers)
    found = {
        "PADDLE_TRAINERS_NUM": str(len(group.workers)),
        "PADDLE_TRAINER_ENDPOINTS": trainers,
        "PADDLE_CURRENT_ENDPOINT": group.endpoint(group.me),
        "PADDLE_PORT": group.port(group.me),
        "POD_IP": group.host(group.me),
        "TRAINERS": str(len(group.workers)),
        "PSERVERS": str(len(group.servers)),
        "PADDLE_JOB_NAME": str(spec["job"]["name"]),
        "PADDLE_INIT_NUM_GRADIENT_SERVERS": str(len(group.workers)),
        "RUNNING_ON_CLOUD": "YES",
    }
    if not int((role.get("resources") or {}).get("gpu") or 0):
        found["PADDLE_DISTRI_BACKEND"] = "gloo"
    if group.servers:
        found["PADDLE_PSERVERS_IP_PORT_LIST"] = servers
        found["PADDLE_INIT_PSERVERS"] = ",".join(group.host(pair) for pair in group.servers)
        found["TRAINING_ROLE"] = "PSERVER" if is_server(role) else "TRAINER"
    if is_server(role):
        found["PADDLE_PSERVER_ID"] = str(group.rank(group.servers))
    else:
        found["PADDLE_TRAINER_ID"] = found["PADDLE_INIT_TRAINER_ID"] = str(group.rank(group.workers))
    return found


def files(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    """Return a stand-in for ``paijupyter.paddle``, for images in which paijupyter is not installed."""
    folder = os.path.join(library_folder(spec), "paijupyter")
    return {os.path.join(folder, "__init__.py"): _STAND_IN, os.path.join(folder, "paddle.py"): _PADDLE}
