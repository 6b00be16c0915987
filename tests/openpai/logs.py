"""The log server: files of a task that grow and rotate, addresses that expire, ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.openpai.answers import Answer

TOKEN_SECONDS = 120
_NAMES = ("runtime.log", "stdout", "all", "stderr", "barrier.log", "init.log")
TAIL_BYTES = 16_384
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_NOT_SATISFIABLE = (
    b"<html>\r\n<head><title>416 Requested Range Not Satisfiable</title></head>\r\n<body>\r\n"
    b"<center><h1>416 Requested Range Not Satisfiable</h1></center>\r\n<hr><center>nginx</center>\r\n"
    b"</body>\r\n</html>\r\n"
)


@dataclass
class LogFiles:
    """The logs of one attempt of a task, by the name that the list of logs has for them."""

    files: dict[str, bytearray] = field(
        default_factory=lambda: {
            name: bytearray()
            for name in ("runtime.log", "stdout", "all", "stderr", "barrier.log", "init.log")
        }
    )

    def add(self, text: bytes, name: str = "all") -> None:
        """Let a file grow; what is in `all` is in stdout too."""
        for each in ("all", "stdout") if name == "all" else (name,):
            self.files.setdefault(each, bytearray()).extend(text)

    def rotate(self) -> None:
        """Rotate the files of the user's command; one older file is kept of each."""
        for name in ("stdout", "all", "stderr"):
            self.files[f"{name}.1"] = self.files[name]
            self.files[name] = bytearray()


def file_of(name: str) -> str:
    """Return a log's name in its address."""
    return f"user-{name}" if name.split(".")[0] in ("stdout", "all", "stderr") else name


def read(content: bytearray, name: str, headers: Mapping[str, str], tail: bool) -> Answer:
    """Answer for a file, whole or in part, as the original's log server does."""
    size = len(content)
    shown = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f'attachment; filename="{name}.log"',
        "Accept-Ranges": "bytes",
        "Access-Control-Allow-Origin": "*",
        "ETag": f'"{size:x}"',
    }
    asked = f"bytes=-{TAIL_BYTES}" if tail else headers.get("Range")
    found = _RANGE.fullmatch(asked or "")
    if not found or found.groups() == ("", ""):
        return Answer(200, bytes(content), shown)
    first, last = found.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if start > end:
        return Answer(
            416,
            _NOT_SATISFIABLE,
            {**shown, "Content-Type": "text/html", "Content-Range": f"bytes */{size}"},
        )
    return Answer(
        206, bytes(content[start : end + 1]), {**shown, "Content-Range": f"bytes {start}-{end}/{size}"}
    )
