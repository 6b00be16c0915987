"""Faults of a cluster that only the lab can have."""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.lab import control, node


class Faults:
    """Parts of the lab that a test stops; what a test leaves stopped is started after it."""

    def __init__(self) -> None:
        self._mend: list[Callable[[], None]] = []

    def stop_api_server(self) -> Callable[[], None]:
        """Stop the API server; return what starts it again."""
        return self._stop(control.stop_api_server, control.start_api_server)

    def stop_kubelet(self) -> Callable[[], None]:
        """Stop the kubelet, as on a node that is lost; return what starts it again."""
        return self._stop(node.stop_kubelet, node.start_kubelet)

    def _stop(self, stop: Callable[[], None], start: Callable[[], None]) -> Callable[[], None]:
        self._mend.append(start)
        stop()
        return start

    def mend(self) -> None:
        """Start everything again."""
        while self._mend:
            self._mend.pop()()
