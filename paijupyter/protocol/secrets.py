"""References to secrets: a name in the job, and where its value comes from. Never the value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paijupyter.errors import UsageProblem

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STORED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}")
_HINT = "Write NAME=keyring:entry, NAME=env:VARIABLE or NAME=ask; the value itself is never an option."
_WITH_TARGET = ("keyring", "env", "k8s")


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A secret of a job.

    Attributes:
        name: its name in the job: ``<% $secrets.NAME %>``, the environment variable, the file in the task.
        scheme: ``ask`` (the person types it), ``env`` (a variable where the person is), ``keyring``, ``k8s``.
        target: the variable or the entry; "" for ``ask``.
    """

    name: str
    scheme: str
    target: str = ""

    @property
    def text(self) -> str:
        """The reference as one word: ``keyring:hf``, ``env:HF_TOKEN``, ``ask``."""
        return f"{self.scheme}:{self.target}" if self.target else self.scheme

    def __str__(self) -> str:
        return f"{self.name}={self.text}"


def check_stored_name(name: str) -> str:
    """Return a name under which the keyring can keep a secret.

    Raises:
        UsageProblem: if it cannot; it is not repeated, since it may be the value.
    """
    if not _STORED.fullmatch(name):
        raise UsageProblem(
            "Secret names must be letters, digits and any of `_ . @ -`, at most 100.",
            "Write `paijob secret set NAME`; the value is asked for, and never an argument.",
        )
    return name


def parse_secret(text: str) -> SecretReference:
    """Return the reference of ``NAME=keyring:entry``, ``NAME=env:VARIABLE``, ``NAME=ask`` or ``NAME``.

    ``env:VARIABLE`` and ``keyring:ENTRY`` alone name the secret like its source.

    Raises:
        UsageProblem: if it is no reference. Nothing that stands on the right is repeated in the message:
            it may be the secret itself.
    """
    name, equals, reference = (part.strip() for part in text.partition("="))
    if not equals:
        scheme, colon, target = name.partition(":")
        if colon and scheme in _WITH_TARGET and _NAME.fullmatch(target):
            return SecretReference(target, scheme, target)
        reference = "ask"
    if not _NAME.fullmatch(name):
        raise UsageProblem("Secret names must be letters, digits and `_`, no digit first.", _HINT)
    return parse_reference(name, reference)


def parse_reference(name: str, reference: str) -> SecretReference:
    """Return the reference of a secret whose name is known.

    Raises:
        UsageProblem: if it has no known scheme; the text is not repeated.
    """
    scheme, colon, target = reference.strip().partition(":")
    if scheme == "ask" and not colon:
        return SecretReference(name, "ask")
    if scheme in _WITH_TARGET:
        target = target.strip() or name
        if scheme == "env" and not _NAME.fullmatch(target):
            raise UsageProblem(f"Secret `{name}` refers to something that names no variable.", _HINT)
        return SecretReference(name, scheme, target)
    raise UsageProblem(f"Secret `{name}` needs a reference, not a value.", _HINT)
