"""The same job once more, exactly; and what cannot be the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.boot import boot_zipapp
from paijupyter.errors import Conflict
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.provenance import environment_of, images_of, versions
from paijupyter.package import LocalStore
from paijupyter.protocol import read
from paijupyter.protocol.data import sources_of

_PATIENCE = 20.0  # seconds
_NAMED = 6  # packages that are named
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
Row = dict[str, str]


def check_possible(live: LiveJob, store: LocalStore) -> None:
    """Refuse a repetition that would be another job.

    Raises:
        Conflict: ``package-missing`` or ``interpreter-gone``.
    """
    facts = live.record.facts
    sha256 = facts.get("packageSha256")
    if sha256 and sha256 not in store:
        raise Conflict(
            "package-missing",
            f"Package {sha256[:12]} of `{facts['name']}` is no longer stored.",
            "Submit its folder again; `diff` shows then what has changed.",
        )
    python = facts.get("python")
    if facts.get("kind") == "local" and python and not os.access(python, os.X_OK):
        raise Conflict(
            "interpreter-gone",
            f"Interpreter `{python}` of `{facts['name']}` is no longer there.",
            "Make its environment again, or run the same code with another one: clone.",
        )


def differences(live: LiveJob, data: Path) -> list[Row]:
    """Return ``{what, message}`` of everything that may not be as it was.

    It asks the interpreter, so it belongs off the loop.

    Args:
        live: the job.
        data: the data folder.
    """
    return [
        *_environment(live, data),
        *_images(live),
        *_data(live),
        *_secrets(live.record.facts),
        *_versions(live.record.facts),
    ]


def _environment(live: LiveJob, data: Path) -> Iterator[Row]:
    recorded, facts = environment_of(live), live.record.facts
    if recorded is None:
        yield _row(
            "environment", "What was installed is not recorded, so nothing can tell whether it is the same."
        )
        return
    if facts.get("kind") != "local":
        return
    now = _installed(str(recorded.get("executable") or facts.get("python") or ""), data)
    if now is None:
        yield _row("environment", "Its environment is gone; requirements are installed anew.")
        return
    if now["python"] != recorded.get("python"):
        yield _row("environment", f"Python is {now['python']} and was {recorded.get('python')}.")
    changed = _changes(recorded["packages"], now["packages"])
    if changed:
        more = f", and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        yield _row("environment", f"Installed since or changed: {', '.join(changed[:_NAMED])}{more}.")


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    found = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before != after:
            found.append(
                f"{name} {after} (new)" if before is None else f"{name} {before} (gone)" if after is None
                else f"{name} {after} (was {before})"
            )  # fmt: skip
    return found


def _installed(python: str, data: Path) -> dict[str, Any] | None:
    """Return the lock of an interpreter as it is now, None if it cannot be asked."""
    with tempfile.TemporaryDirectory(prefix="pai-") as folder:
        target = Path(folder, "environment.json")
        command = [python, str(boot_zipapp(data)), "freeze", str(target)]
        try:
            subprocess.run(command, check=True, timeout=_PATIENCE, capture_output=True, cwd=folder)
            found = json.loads(target.read_bytes())
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
    return found if isinstance(found, dict) else None


def _images(live: LiveJob) -> Iterator[Row]:
    if live.record.facts.get("kind") == "local":
        return
    for image in dict.fromkeys(images_of(live.record.source).values()):
        if image and not _DIGEST.search(image):
            yield _row(
                "image", f"`{image}` is a tag, which may have moved; `…@sha256:…` names one image for ever."
            )


def _data(live: LiveJob) -> Iterator[Row]:
    travelled = live.record.facts.get("dataPackages") or {}
    for source in sources_of(read(live.record.source).data):
        if source.name in travelled or source.sha256:
            continue
        pinned = source.kind == "git" and re.fullmatch(r"[0-9a-f]{40}", source.ref or "")
        if not pinned:
            yield _row("data", f"Data `{source.name}` has no checksum and may have changed.")


def _secrets(facts: Mapping[str, Any]) -> Iterator[Row]:
    for name, reference in (facts.get("secretRefs") or {}).items():
        yield _row("secrets", f"Secret `{name}` is resolved anew ({str(reference).partition(':')[0]}).")


def _versions(facts: Mapping[str, Any]) -> Iterator[Row]:
    was, now = facts.get("versions") or {}, versions()
    for name in ("paijupyter", "system"):
        if was.get(name) and was[name] != now[name]:
            yield _row("versions", f"{name} is {now[name]} and was {was[name]}.")


def _row(what: str, message: str) -> Row:
    return {"what": what, "message": message}
