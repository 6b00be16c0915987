"""Kinds of data sources: the seam behind the entry point group ``paijupyter.data``, and the built-in ones.

A kind says in a plan what is wrong with a source, and who brings it: the *task* (http and git, which the
runtime knows), the *package* (files of the submitting side, which travel like the trainer package), the
*storage* that it lies in, or the *engine*: then :meth:`SourceKind.fetch` runs in a process of its own on the
engine's host, once per content, before the job is handed over, so that tasks need no library for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, cast, runtime_checkable
from urllib.parse import urlsplit

from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.data import DataSource

Where = Literal["task", "package", "storage", "engine"]
Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes in all, None where that is not known."""


class SourceKind(Protocol):
    """How one kind of source is brought.

    Attributes:
        where: who brings it.
    """

    where: ClassVar[Where]

    def __init__(self, source: DataSource) -> None:
        """Keep the source; open nothing yet."""

    def problems(self) -> Iterable[tuple[str, str]]:
        """Yield what can be said against it without asking its origin: end of a sentence, and a hint."""

    def stamp(self) -> str:
        """Ask the origin what tells this content from any later one, or return "" if it cannot say.

        Raises:
            PaiJupyterError: it does not exist, or cannot be reached.
        """

    def fetch(self, target: Path, progress: Progress) -> None:
        """Make the file or folder ``target``. An interrupted call may have left part of it there.

        Raises:
            PaiJupyterError: with the reason.
        """


@runtime_checkable
class Opened(Protocol):
    """A kind whose stores are set up in the profile, and opened by a secret."""

    def open_with(self, options: Mapping[str, Any], credentials: str) -> None:
        """Take what opens the store; called once, before everything else but ``problems``.

        Args:
            options: what the profile says of stores of the URI's scheme.
            credentials: the value of the secret, "" if there is none.

        Raises:
            PaiJupyterError: the value cannot be used; it is not repeated.
        """


class _Plain:
    """A kind that needs no code of its own on this side."""

    where: ClassVar[Where]

    def __init__(self, source: DataSource) -> None:
        self._source = source

    def problems(self) -> Iterable[tuple[str, str]]:
        """Yield nothing: the document's check has said it all."""
        return ()

    def stamp(self) -> str:
        """Know nothing here."""
        return ""

    def fetch(self, target: Path, progress: Progress) -> None:
        """Never fetch here."""
        raise NotImplementedError(f"data of kind {self._source.kind} is not fetched by the engine")


class FileKind(_Plain):
    """A file or folder of the submitting side; it travels like the trainer package."""

    where = "package"


class StorageKind(_Plain):
    """Something in a storage of the profile: ``storage://team/path``. It is read where it lies."""

    where = "storage"

    def problems(self) -> Iterable[tuple[str, str]]:
        """Yield what is wrong with the URI."""
        if not storage_of(self._source)[0]:
            yield "names no storage", "Write storage://NAME/path."


class HttpKind(_Plain):
    """A file behind an http or https URL; the task fetches it."""

    where = "task"

    def problems(self) -> Iterable[tuple[str, str]]:
        """Yield what is wrong with the URL."""
        try:
            parts = urlsplit(self._source.uri)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            yield "has no http or https URL", "Write https://HOST/PATH, or name another kind."


class GitKind(_Plain):
    """One commit of a git repository; the task fetches it."""

    where = "task"

    def problems(self) -> Iterable[tuple[str, str]]:
        """Yield what is wrong with the URI."""
        if "::" in self._source.uri.partition("/")[0]:
            yield (
                "has a URI by which git would run a command",
                "Write https://HOST/PATH.git or git@HOST:PATH.git.",
            )


def storage_of(source: DataSource) -> tuple[str, str]:
    """Return the storage that a ``storage://`` URI names, and the path in it."""
    name, _, path = source.uri.partition("://")[2].partition("/")
    return name, path.strip("/")


def source_kinds() -> dict[str, EntryPoint]:
    """Return the installed kinds and their entry points, not yet loaded."""
    return {point.name: point for point in entry_points(group="paijupyter.data")}


def load_kind(source: DataSource) -> SourceKind:
    """Make the kind of a source.

    Raises:
        PaiJupyterError: ``unknown-data-kind`` if no installed package has it, ``data-kind-broken`` if that
            package cannot be loaded.
    """
    kinds = source_kinds()
    if source.kind not in kinds:
        raise PaiJupyterError(
            "unknown-data-kind",
            f"Data `{source.name}` is of kind `{source.kind}`, which no installed package has.",
            f"Installed kinds: {', '.join(sorted(kinds)) or 'none'}.",
            422,
        )
    try:
        return cast("SourceKind", kinds[source.kind].load()(source))
    except Exception as error:  # whatever another package does wrong is told as its own
        raise PaiJupyterError(
            "data-kind-broken",
            f"Data `{source.name}`: the kind `{source.kind}` cannot be used: {type(error).__name__}: {error}",
            "Install the package that brings it anew.",
            422,
        ) from error
