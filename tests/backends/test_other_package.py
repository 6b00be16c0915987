"""P30: a backend that another package brings, found by its entry point, passes the same contract."""

from __future__ import annotations

from contract import BackendContract

from paijupyter.backends.base import Backend, Job


class TestContract(BackendContract):
    kind = "shed"

    def lose(self, backend: Backend, job: Job) -> None:
        backend._shed.lose(job.id)  # type: ignore[attr-defined]


def test_comes_from_another_distribution() -> None:
    from importlib.metadata import entry_points

    (point,) = entry_points(group="paijupyter.backends", name="shed")
    assert point.dist is not None
    assert point.dist.name == "other-backend"
