"""A submission request, its shape checked."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.jobs.live import cell_key
from paijupyter.jobs.secrets import Given

MODES = ("normal", "again", "replace")


@dataclass(frozen=True, slots=True)
class Context:
    """Where a submission comes from.

    Attributes:
        python: interpreter of the submitting kernel.
        folder: folder of the notebook, or the working folder of the command line.
        notebook: path of the notebook.
        cell: ``{id, hash, number}``.
        surface: ``magic``, ``cli``, ``rest`` or ``form``.
        kernel: id of the submitting kernel, for ``last``.
        user: the name the job runs for.
    """

    python: str | None = None
    folder: str | None = None
    notebook: str | None = None
    cell: Mapping[str, Any] | None = None
    surface: str | None = None
    kernel: str | None = None
    user: str = ""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Context:
        """Check a context object; unknown members are ignored."""
        texts = {
            name: _text(data, name, "context.")
            for name in ("python", "folder", "notebook", "surface", "kernel", "user")
        }
        cell = data.get("cell")
        if cell is not None and not isinstance(cell, Mapping):
            raise UsageProblem("Request's `context.cell` must be an object with `id`, `hash` and `number`.")
        kept = {key: cell.get(key) for key in ("id", "hash", "number")} if cell else None
        user = texts.pop("user") or _user()
        return cls(**texts, cell=kept, user=user)

    @property
    def cell_key(self) -> str | None:
        """What tells this cell from all others, or None."""
        return cell_key(self.notebook, self.cell)

    def to_json(self) -> dict[str, Any]:
        """Return the members as a request carries them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True)
class Request:
    """One submission, or the question what it would do.

    Attributes:
        document: the source document.
        profile: name of a profile, or None for the default one.
        package: hash of the trainer package, or None.
        secrets: values and references; its repr shows names only.
        context: where it comes from.
        request_id: repeated by whoever did not get the answer; makes the submission idempotent.
        mode: ``normal``, ``again`` (though the cell's job is unfinished), ``replace`` (stop that one first).
        cloned_from: id of the job it repeats.
        data: hashes of the packages of data that travelled, by name.
        resume_from: the job with whose checkpoints it begins, or None.
        group: ``{id, name, key}`` of the experiment it is, or None.
        name: what it is called, to the letter; None: what its document says, without a suffix of ours.
    """

    document: str
    profile: str | None = None
    package: str | None = None
    secrets: Given = field(default_factory=lambda: Given({}))
    context: Context = field(default_factory=Context)
    request_id: str | None = None
    mode: str = "normal"
    cloned_from: str | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    resume_from: str | None = None
    group: Mapping[str, str] | None = None
    name: str | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any], cloned_from: str | None = None) -> Request:
        """Check a request object.

        Raises:
            UsageProblem: naming the member that has the wrong shape, never its value.
        """
        document = data.get("document")
        if not isinstance(document, str):
            raise UsageProblem("Request needs a `document`, the text of a job document.")
        mode = data.get("mode") or "normal"
        if mode not in MODES:
            raise UsageProblem(f"Request's `mode` must be one of {', '.join(MODES)}.")
        return cls(
            document=document,
            profile=_text(data, "profile") or None,
            package=_text(data, "package") or None,
            secrets=Given(_object(data, "secrets")),
            context=Context.of(_object(data, "context")),
            request_id=_text(data, "requestId") or None,
            mode=mode,
            cloned_from=cloned_from,
            data=_texts(_object(data, "data")),
            resume_from=_text(data, "resumeFrom") or None,
            name=_text(data, "name") or None,
        )


def _text(data: Mapping[str, Any], name: str, within: str = "") -> str | None:
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageProblem(f"Request's `{within}{name}` must be a text.")
    return value


def _texts(data: Mapping[str, Any]) -> dict[str, str]:
    if not all(isinstance(each, str) for each in data.values()):
        raise UsageProblem("Request's `data` must be an object of names and hashes.")
    return dict(data)


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise UsageProblem(f"Request's `{name}` must be an object.")
    return value or {}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that no name belongs to
        return str(os.getuid())
