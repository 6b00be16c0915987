"""Secrets in the task: read, filled into the command, written below ``$PAI_SECRETS_DIR``."""

import json
import os
import re

from .failure import Failure
from .files import write_private
from .values import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Match, Optional

_TAG = re.compile(r"<%\s*&?\s*\$secrets\.([^\s%>]+)\s*%>")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


def read_secrets(path: "Optional[str]") -> "Dict[str, str]":
    """Return the secrets of the one 0600 file, by name; none without a path.

    Raises:
        Failure: ``secret`` if the file is gone, or a name or value cannot be used.
    """
    if not path:
        return {}
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read().decode("utf-8"))
    except FileNotFoundError:
        raise Failure("secret", "The secrets of this job are gone from this machine.") from None
    except (OSError, ValueError):
        raise Failure("secret", "The secrets of this job cannot be read.") from None
    for name, value in found.items():
        if not _NAME.match(name):
            raise Failure("secret", "The secret `%s` has a name that cannot be a file or a variable." % name)
        if "\0" in text_of(value):
            raise Failure("secret", "The secret `%s` holds a zero byte, which no variable can." % name)
    return {name: text_of(value) for name, value in found.items()}


def fill(command: str, secrets: "Dict[str, str]") -> str:
    """Replace every ``<% $secrets.NAME %>`` by its value, raw, in one pass: values are not looked into.

    Raises:
        Failure: ``secret`` if the command names one that the job does not have.
    """

    def value(match: "Match[str]") -> str:
        if match.group(1) not in secrets:
            raise Failure("secret", "The secret `%s` is used and the job does not have it." % match.group(1))
        return secrets[match.group(1)]

    return _TAG.sub(value, command)


def write_secrets(folder: str, secrets: "Dict[str, str]") -> None:
    """Write one 0600 file per secret into a new 0700 folder."""
    os.mkdir(folder, 0o700)
    for name, value in secrets.items():
        write_private(os.path.join(folder, name), value.encode("utf-8", "surrogateescape"))
