"""Secret values: resolved once at submission, kept until the job is final, then gone.

They rest in one 0600 file per job in the runtime folder, and nowhere else: not in records, events, the index,
views, logs or errors. Records hold names and references.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paijupyter.errors import Conflict, Problem, UsageProblem
from paijupyter.jobs.files import replace_synced, to_json
from paijupyter.jobs.keyring import from_keyring
from paijupyter.protocol import parse_reference
from paijupyter.protocol.credentials import plain_credentials

_HIDDEN = "******"


class SecretStore:
    """The secrets files of this host.

    Args:
        folder: the private folder they lie in; made if absent.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, job: str, values: Mapping[str, str]) -> None:
        """Keep the values of a job; a job without secrets has no file."""
        if not values:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_synced(self._path(job), to_json(dict(values)))

    def get(self, job: str) -> dict[str, str] | None:
        """Return the values of a job, or None if they are not on this host."""
        try:
            values = json.loads(self._path(job).read_bytes())
        except (OSError, ValueError):
            return None
        return {str(name): str(value) for name, value in values.items()} if isinstance(values, dict) else None

    def remove(self, job: str) -> None:
        """Forget the values of a job."""
        self._path(job).unlink(missing_ok=True)

    def keep_only(self, jobs: Iterable[str]) -> None:
        """Forget the values of all other jobs, and half-written files."""
        kept = {self._path(job) for job in jobs}
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self.folder):
                path = Path(entry.path)
                if path not in kept:
                    path.unlink(missing_ok=True)

    def _path(self, job: str) -> Path:
        return self.folder / f"{job}.json"


class Given:
    """The secrets of one request: values from the surface, references for the rest.

    Raises:
        UsageProblem: if an entry is neither; nothing of it is repeated.
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._values: dict[str, str] = {}
        self.references: dict[str, str] = {}
        for name, entry in entries.items():
            fields = entry if isinstance(entry, Mapping) else {}
            value, reference = fields.get("value"), fields.get("reference")
            if value is not None and not isinstance(value, str):
                raise UsageProblem(f"Secret `{name}` must be a text.")
            if value is None and not isinstance(reference, str):
                raise UsageProblem(
                    f"Secret `{name}` has neither a value nor a reference.",
                    'Send {"value": "…"} or {"reference": "keyring:entry"}.',
                )
            self.references[name] = parse_reference(name, reference or "ask").text
            if value is not None:
                self._values[name] = value

    def __repr__(self) -> str:
        return f"Given({', '.join(sorted(self.references))})"

    def has_value(self, name: str) -> bool:
        """Say whether the surface has sent a value."""
        return name in self._values

    @property
    def unresolvable(self) -> list[str]:
        """Names whose reference only the surface could have resolved, and has not."""
        return [
            name
            for name, reference in self.references.items()
            if name not in self._values and not reference.startswith("keyring:")
        ]

    async def resolve(self, wanted: Iterable[str]) -> dict[str, str]:
        """Return the values of the wanted names, as far as they are given.

        Raises:
            Conflict: ``secrets-needed`` if the surface must send some of them.
            PaiJupyterError: if the keyring cannot be used or has no such entry.
        """
        names = set(wanted)
        missing = [name for name in self.unresolvable if name in names]
        if missing:
            raise secrets_needed(missing)
        found = {name: value for name, value in self._values.items() if name in names}
        for name, reference in self.references.items():
            if name in names and name not in found:
                found[name] = await from_keyring(name, reference.partition(":")[2])
        return found


def secrets_needed(names: Iterable[str]) -> Conflict:
    """Return the error that names secrets whose values have to come with the request."""
    listed = ", ".join(f"`{name}`" for name in names)
    return Conflict(
        "secrets-needed",
        f"Secrets {listed} have no value here.",
        "Submit again where you are asked for them, or refer to the keyring: NAME=keyring:entry.",
    )


def problems_of(document: Mapping[str, Any], given: Given) -> list[Problem]:
    """Compare the secrets of a document with those of its request. No value is repeated."""
    declared = document.get("secrets")
    named = declared if isinstance(declared, Mapping) else {}
    found = [
        Problem(
            "error",
            "secret-in-document",
            f"Secret `{name}` has its value in the document, where it would be stored.",
            f"/secrets/{name}",
            hint=f'Write `{name}: ""` there, and give the value with the submission.',
        )
        for name, value in named.items()
        if value not in ("", None, _HIDDEN)
    ]
    found += [
        Problem(
            "error",
            "secret-missing",
            f"Secret `{name}` has no value.",
            f"/secrets/{name}",
            hint=f"Give it with: --secret {name}=ask (or env:VARIABLE, keyring:entry).",
        )
        for name in named
        if name not in given.references
    ]
    found += [
        Problem(
            "warning",
            "secret-unused",
            f"Secret `{name}` is given, but the document does not name it.",
            "/secrets",
            hint=f'Add `{name}: ""` to `secrets`, or leave it out.',
        )
        for name in given.references
        if name not in named
    ]
    return [*found, *_written_out(document)]


def _written_out(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Warn of what looks like a credential in parameters and variables: those are public."""
    for path, values in _public(document):
        for name in values:
            if any(True for _ in plain_credentials({str(name): values[name]})):
                kind = "Parameter" if path == "/parameters" else "Environment variable"
                yield Problem(
                    "warning",
                    "credential-in-document",
                    f"{kind} `{name}` looks like a credential, and the document is stored and shown.",
                    f"{path}/{name}",
                    hint=f"Give it as a secret: --secret {name}=ask (or env:VARIABLE, keyring:entry).",
                )


def _public(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    extras = document.get("extras")
    ours = extras.get("paijupyter") if isinstance(extras, Mapping) else None
    ours = ours if isinstance(ours, Mapping) else {}
    roles = ours.get("roles")
    places = [("/parameters", document.get("parameters")), ("/extras/paijupyter/env", ours.get("env"))]
    for role, settings in roles.items() if isinstance(roles, Mapping) else ():
        env = settings.get("env") if isinstance(settings, Mapping) else None
        places.append((f"/extras/paijupyter/roles/{role}/env", env))
    for path, values in places:
        if isinstance(values, Mapping):
            yield path, values


def masked(text: str, values: Iterable[str]) -> str:
    """Return a text of a foreign program without secret values, for logs and errors."""
    for value in sorted(set(values), key=len, reverse=True):
        if value:
            text = text.replace(value, _HIDDEN)
    return text
