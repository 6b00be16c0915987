"""The executed notebook on the disk: whole at any moment, without secrets and without widget state.

Each cell is turned into text once, when it has run; the file is written anew after each cell, but never for
more than a small part of the time: a notebook of thousands of cells is not written thousands of times.
"""

import json
import os
import re
import time

from ..files import write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List

    Cell = Dict[str, Any]

_PAUSE = 0.2  # seconds between two writes, at least
_SHARE = 20.0  # and at least so many times what the last one took
_WIDGETS = ("application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json")
# Tried at the beginning of lines only: elsewhere a long line without one would be read once per character.
_FRAMES = re.compile(r"(?m)^[^\n]*\r(?=[^\r\n])")
LONGEST_STREAM = 2000000  # characters of one stream of one cell


class Saver:
    """Keeps the text of all cells and writes the file.

    Args:
        path: the file.
        notebook: the notebook; its cells are those that are run.
        clean: hides secrets in a text.
    """

    def __init__(self, path: str, notebook: "Dict[str, Any]", clean: "Callable[[str], str]") -> None:
        self._path = path
        self._notebook = notebook
        self._clean = clean
        self._texts: "List[str]" = [self._text(cell) for cell in notebook["cells"]]
        self._written = float("-inf")
        self._took = 0.0
        self._owed = False

    def take(self, index: int) -> None:
        """Take a cell that has run, or was broken off."""
        self._texts[index] = self._text(self._notebook["cells"][index])
        self._owed = True

    @property
    def due(self) -> float:
        """Seconds until the file may be written again."""
        if not self._owed:
            return float("inf")
        return max(0.0, self._written + max(_PAUSE, _SHARE * self._took) - time.monotonic())

    def save(self) -> None:
        """Write the file if it is time to."""
        if self.due <= 0:
            self.write()

    def settle(self) -> None:
        """Write the file if a cell is not in it yet."""
        if self._owed:
            self.write()

    def write(self, durable: bool = False) -> None:
        """Write the file now; a reader sees the old or the new one."""
        begin = time.monotonic()
        data = self._data()
        if durable:
            write_atomic(self._path, data)
        else:  # a crash of the machine ends the job as well; only a crash of ours must leave a whole file
            draft = "%s.%d" % (self._path, os.getpid())
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.write(data)
            os.rename(draft, self._path)
        self._owed = False
        self._written = time.monotonic()
        self._took = self._written - begin

    def _data(self) -> bytes:
        rest = {key: value for key, value in self._notebook.items() if key != "cells"}
        metadata = dict(rest.get("metadata") or {})
        metadata.pop("widgets", None)
        rest["metadata"] = _cleaned(metadata, self._clean)
        # The metadata come first: whoever packages the folder sees at once whose notebook this is.
        head = json.dumps(rest, indent=1, sort_keys=True, ensure_ascii=False).rstrip("}\n")
        text = '%s,\n "cells": [\n%s\n ]\n}\n' % (head, ",\n".join(self._texts))
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate, which JSON can hold as an escape
            return text.encode("utf-8", "backslashreplace")

    def _text(self, cell: "Cell") -> str:
        shown = dict(cell)
        shown["source"] = _lines(shown.get("source") or "")
        if "outputs" in shown:
            shown["outputs"] = [each for each in map(_output, shown["outputs"]) if each]
        shown = _cleaned(shown, self._clean)
        text = json.dumps(_split(shown), indent=1, sort_keys=True, ensure_ascii=False)
        return "  " + text.replace("\n", "\n  ")


def _output(output: "Dict[str, Any]") -> "Dict[str, Any]":
    """Return an output as it is kept: no widget, whose state is gone; a progress bar as its last frame."""
    kept = dict(output)
    kept.pop("transient", None)
    if "data" in kept:
        kept["data"] = {kind: value for kind, value in kept["data"].items() if kind not in _WIDGETS}
        if not kept["data"]:
            return {}
    if kept.get("output_type") == "stream":
        kept["text"] = shortened(_FRAMES.sub("", kept.get("text") or ""))
    return kept


def shortened(text: str) -> str:
    """Return a stream that is too long without its middle; the log has all of it."""
    if len(text) <= LONGEST_STREAM:
        return text
    half = LONGEST_STREAM // 2
    left_out = len(text) - 2 * half
    return "%s\n… %d characters are left out here; the job's log has them …\n%s" % (
        text[:half],
        left_out,
        text[-half:],
    )


def _lines(text: str) -> str:
    return text if isinstance(text, str) else "".join(text)


def _split(cell: "Dict[str, Any]") -> "Dict[str, Any]":
    """Return a cell with its texts as lists of lines, as notebooks are written everywhere."""
    found = dict(cell)
    found["source"] = found["source"].splitlines(True)
    if "outputs" in found:
        found["outputs"] = [_split_output(each) for each in found["outputs"]]
    return found


def _split_output(output: "Dict[str, Any]") -> "Dict[str, Any]":
    found = dict(output)
    if isinstance(found.get("text"), str):
        found["text"] = found["text"].splitlines(True)
    if "data" in found:
        found["data"] = {
            kind: value.splitlines(True) if isinstance(value, str) and _is_text(kind) else value
            for kind, value in found["data"].items()
        }
    return found


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in ("image/svg+xml", "application/javascript")


def _cleaned(value: "Any", clean: "Callable[[str], str]") -> "Any":
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _cleaned(item, clean) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, clean) for item in value]
    return value
