"""``kubectl`` of the version that the lab runs, as the lab's administrator."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.lab.build import program
from tests.cluster.lab.places import KUBECONFIG
from tests.cluster.lab.processes import run


def kubectl(*arguments: str, given: str | None = None) -> str:
    """Run kubectl and return what it printed.

    Args:
        arguments: Its arguments.
        given: Text for its standard input, with ``-f -`` in the arguments.

    Raises:
        LabError: It failed; with what it said.
    """
    return run([program("kubernetes", "kubectl"), f"--kubeconfig={KUBECONFIG}", *arguments], input=given)


def kubectl_json(*arguments: str) -> Any:
    """Run kubectl and return the object that it prints."""
    return json.loads(kubectl(*arguments, "-o", "json"))


def apply(*objects: dict[str, Any], server_side: bool = False) -> None:
    """Apply objects, in the order given."""
    text = "\n---\n".join(json.dumps(one) for one in objects)
    kubectl("apply", *(["--server-side", "--force-conflicts"] if server_side else []), "-f", "-", given=text)
