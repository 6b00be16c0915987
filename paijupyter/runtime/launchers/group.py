"""The tasks that meet: those of the roles with the same launcher, numbered in document order."""

from ..tasks import all_tasks, key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

    Spec = Dict[str, Any]

_OWN_LABEL = "rendezvous"  # a port label that a document may declare for this purpose
_SERVERS = ("ps", "pserver", "pservers")


class Group:
    """A launcher's tasks, as (role, index) pairs: all of them, its workers and its parameter servers."""

    def __init__(self, spec: "Spec", role: "Spec") -> None:
        self._spec = spec
        members = [pair for pair in all_tasks(spec) if pair[0].get("launcher") == role.get("launcher")]
        self.servers = [pair for pair in members if is_server(pair[0])]
        self.workers = [pair for pair in members if not is_server(pair[0])]
        self.me = (role, spec["index"])

    def rank(self, among: "List[Tuple[Spec, int]]") -> int:
        """Return this task's number among others.

        Raises:
            ValueError: it is none of them.
        """
        return [key(*pair) for pair in among].index(key(*self.me))

    def host(self, pair: "Tuple[Spec, int]") -> str:
        """Return a task's address."""
        return str((self._spec.get("hosts") or {}).get(key(*pair), ""))

    def port(self, pair: "Tuple[Spec, int]") -> str:
        """Return the port to meet at: the first labelled ``rendezvous``, else the first http port.

        The latter is what OpenPAI lists in ``PAI_TASK_ROLE_<R>_HOST_LIST``.
        """
        ports = (self._spec.get("ports") or {}).get(key(*pair)) or {}
        found = ports.get(_OWN_LABEL) or ports.get("http") or [""]
        return str(found[0])

    def endpoint(self, pair: "Tuple[Spec, int]") -> str:
        """Return ``host:port`` of a task."""
        return "%s:%s" % (self.host(pair), self.port(pair))


def is_server(role: "Spec") -> bool:
    """Say whether a role serves parameters: by its name, or because it is marked as a service."""
    return bool(role.get("service")) or role["name"].lower() in _SERVERS
