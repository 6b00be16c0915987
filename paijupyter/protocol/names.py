"""Names of jobs, roles and tasks: made safe, made unique, taken apart."""

from __future__ import annotations

import os
import re
import unicodedata

SHORT_NAME_LENGTH = 100
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_SUFFIX = re.compile(r"(.+)-(?=[a-z]*[2-7])([a-z2-7]{6})")
_TASK_KEY = re.compile(r"(.+)-(\d+)")


def short_name(text: str) -> str:
    """Return a job name made of what the protocol allows: letters, digits, ``-`` and ``_``.

    Accents are dropped, everything else that is not allowed becomes one ``-``. A text with nothing in it
    becomes ``job``.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    name = re.sub(r"[^A-Za-z0-9_]+", "-", plain).strip("-_")
    return name[:SHORT_NAME_LENGTH].rstrip("-_") or "job"


def with_suffix(short: str) -> str:
    """Return a name that no other job has: the short name, ``-`` and six random base32 characters.

    The suffix always has a digit, so that :func:`split_suffix` does not take a word for one.
    """
    while True:
        suffix = "".join(_ALPHABET[byte % 32] for byte in os.urandom(6))
        if any(character.isdigit() for character in suffix):
            return f"{short}-{suffix}"


def split_suffix(full: str) -> tuple[str, str]:
    """Take a full name apart into the short name and its suffix, which is "" where there is none."""
    match = _SUFFIX.fullmatch(full)
    return (match[1], match[2]) if match else (full, "")


def converted(role: str) -> str:
    """Return the role name as OpenPAI's own framework knows it: lower case, only letters and digits."""
    return re.sub(r"[^a-z0-9]", "", role.lower())


def task_key(role: str, index: int) -> str:
    """Return the name of a task on every screen: ``worker-0``."""
    return f"{role}-{index}"


def split_task_key(key: str) -> tuple[str, int] | None:
    """Take ``worker-0`` apart into role and index; None where it is no task's name."""
    match = _TASK_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else None
