"""What a shell ran, with the front end's ids of the cells, for scripts of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paijupyter.notebook.session import Session


class Recorder:
    """Notes which cell each run was of, and whether it raised.

    Args:
        shell: the shell, whose runs before this are known by their source only.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._ids: dict[int, str] = {}
        self._failed: set[int] = set()
        shell.events.register("post_run_cell", self._note)

    def _note(self, result: Any) -> None:
        info, count = result.info, result.execution_count
        if info is None or not info.store_history or count is None:
            return
        cell_id = getattr(info, "cell_id", None)
        if isinstance(cell_id, str):
            self._ids[count] = cell_id
        if not result.success:
            self._failed.add(count)

    def session(self, cell_id: str | None) -> Session:
        """Return what the shell ran and has.

        Args:
            cell_id: id of the cell that runs now.
        """
        from paijupyter.notebook.session import Run, Session

        raw = self._shell.history_manager.input_hist_raw
        now = len(raw) - 1
        ids = {**self._ids, **({now: cell_id} if cell_id else {})}
        runs = [
            Run(count, str(source), ids.get(count), count in self._failed)
            for count, source in enumerate(raw)
            if count and source
        ]
        return Session(runs, self._shell.user_ns)
