"""What a job has left, for people: its files listed, read, copied into a folder, or shown by TensorBoard."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from paijupyter.jobs.boards import Boards
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.outputs import list_outputs, output_file
from paijupyter.jobs.pulling import pulled


class JobOutputs:
    """Does what is asked with the outputs of jobs; each method raises NotFound if there is no such job.

    Args:
        catalog: where jobs are kept.

    Attributes:
        boards: shows files of events.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.boards = Boards(catalog)

    def list(self, ref: str) -> builtins.list[dict[str, Any]]:
        """Return the outputs, ``{path, size}`` each."""
        return list_outputs(self._folder(ref))

    def file(self, ref: str, path: str) -> Path:
        """Return where an output lies; nothing outside the job's outputs can be reached.

        Raises:
            NotFound: if there is no such output.
        """
        return output_file(self._folder(ref), path)

    def pull(
        self, ref: str, folder: Path, paths: Sequence[str] | None = None, replace: bool = False
    ) -> AsyncIterator[dict[str, Any]]:
        """Copy outputs into a folder; see :func:`.pulled`."""
        return pulled(self._folder(ref), folder, paths, replace)

    async def tensorboard(self, ref: str, python: str | None = None) -> dict[str, Any]:
        """Start TensorBoard on a job's outputs, or find it; see :meth:`.Boards.open`."""
        return await self.boards.open(ref, python)

    def _folder(self, ref: str) -> Path:
        return self._catalog.job(self._catalog.find(ref)).record.folder
