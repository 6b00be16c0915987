"""Data sources of a job: where data comes from, and where a task finds it.

The rule of names: what lies at ``/foo/bar`` and is wanted at ``/pai_data/mydata`` is read as
``/pai_data/mydata/bar``. ``PAI_DATA_<NAME>`` is that folder on every backend, also where a backend has to
put it elsewhere, so ``$PAI_DATA_<NAME>/bar`` always leads to the data.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from paijupyter.errors import UsageProblem

NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$"
KIND_PATTERN = r"^[a-z][a-z0-9-]*$"
HINT = "Write NAME=URI, and where needed ,path=… ,sha256=… ,ref=… ,secret=… ,kind=… after it."
_KEYS = ("path", "sha256", "ref", "secret", "kind")
_NEXT_KEY = re.compile(rf",(?=(?:{'|'.join(_KEYS)})=)")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SCP = re.compile(r"[\w.-]+@[\w.-]+:(?!//)\S+")  # git@host:path
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_STORES = (
    *("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "oss2", "hdfs"),
    *("memory", "local", "ftp", "sftp", "dav", "hf"),
)
_KIND_OF_SCHEME = {
    "file": "file",
    "http": "http",
    "https": "http",
    "git": "git",
    "ssh": "git",
    "storage": "storage",
    "webhdfs": "webhdfs",
    "swebhdfs": "webhdfs",
    **dict.fromkeys(_STORES, "object"),
}
# Whose user name alone may be a token; elsewhere a name without a password is no secret.
_TOKEN_AS_USER = ("http", "https", "git+http", "git+https")


@dataclass(frozen=True, slots=True)
class DataSource:
    """One source of a job's data.

    Attributes:
        name: its name in the job.
        kind: ``file``, ``http``, ``git``, ``storage``, ``object``, ``webhdfs``, or one from another package.
        uri: where it is; never with a password in it.
        path: folder it is wanted in: absolute, or below the package folder; "" leaves it to the backend.
        sha256: checksum of the one file that it is, or "".
        ref: branch, tag or commit of a git repository, or "".
        secret: name of the job's secret that opens it, or "".
    """

    name: str
    kind: str
    uri: str
    path: str = ""
    sha256: str = ""
    ref: str = ""
    secret: str = ""

    @property
    def base(self) -> str:
        """Name under which the data lies in its folder: the last one of the URI."""
        return base_name(self)

    @property
    def variable(self) -> str:
        """Name of the variable that holds the folder."""
        return variable(self.name)

    def to_json(self) -> dict[str, str]:
        """Return the item of ``extras.paijupyter.data``, without what is empty."""
        return {key: value for key in self.__dataclass_fields__ if (value := getattr(self, key))}


def parse_data(text: str) -> DataSource:
    """Return the source of ``NAME=URI[,path=…][,sha256=…][,ref=…][,secret=…][,kind=…]``.

    Raises:
        UsageProblem: if it is none, or the URI holds a password; then the URI is not repeated.
    """
    name, equals, rest = text.partition("=")
    if not equals or not re.fullmatch(NAME_PATTERN, name):
        raise UsageProblem("Data names must be letters, digits, `_` and `-`, no digit first.", HINT)
    uri, *more = _NEXT_KEY.split(rest)
    given = dict(part.split("=", 1) for part in more)
    source = DataSource(name, given.pop("kind", "") or kind_of(uri), uri, **given)
    why = next(wrong(source), None)
    if why is not None:
        raise UsageProblem(f"Data `{name}` {why[1]}.", why[2])
    return source


def sources_of(data: Mapping[str, Any]) -> list[DataSource]:
    """Return the sources of a document's plain values; items that are none are left out."""
    extras = data.get("extras")
    ours = extras.get("paijupyter") if isinstance(extras, Mapping) else None
    items = ours.get("data") if isinstance(ours, Mapping) else None
    return [source for item in items if (source := source_of(item))] if isinstance(items, list) else []


def source_of(item: Any) -> DataSource | None:
    """Return the source of one item of ``extras.paijupyter.data``, or None if it has not that form."""
    if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
        return None
    texts = {
        key: item[key]
        for key in DataSource.__dataclass_fields__
        if isinstance(item.get(key), str) and item[key]
    }
    if not texts.get("uri") or not re.fullmatch(NAME_PATTERN, item["name"]):
        return None
    texts.setdefault("kind", kind_of(texts["uri"]))
    return DataSource(**texts)


def kind_of(uri: str) -> str:
    """Return the kind that a URI means by itself; an unknown scheme is a kind of that name."""
    if _SCP.fullmatch(uri):
        return "git"
    scheme = scheme_of(uri)
    if not scheme:
        return "file"
    if scheme.startswith("git+"):
        return "git"
    if scheme in ("http", "https", "file") and urlsplit(uri).path.rstrip("/").endswith(".git"):
        return "git"
    return _KIND_OF_SCHEME.get(scheme, scheme)


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI in lower case, or ""; a path has none."""
    match = _SCHEME.match(uri)
    return match[1].lower() if match else ""


def base_name(source: DataSource) -> str:
    """Return the name of what a URI leads to; the source's own name where the URI ends in none."""
    path = source.uri
    scheme = scheme_of(path)
    if scheme and not _SCP.fullmatch(path):
        path = path.partition(":")[2]
        if path.startswith("//"):  # what follows the host; without a path there is no name
            path = path[2:].partition("/")[2]
    if source.kind in ("http", "git") or scheme == "file":
        path = unquote(re.split(r"[?#]", path)[0])
    last = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    if source.kind == "git":
        last = last.rpartition(":")[2].removesuffix(".git")
    usable = last not in ("", ".", "..") and last.isprintable() and len(last.encode("utf-8", "replace")) < 256
    return last if usable else source.name


def variable(name: str) -> str:
    """Return the name of a source's variable: ``PAI_DATA_`` and the name in capitals."""
    return "PAI_DATA_" + re.sub("[^A-Z0-9_]", "_", name.upper())


def shown(uri: str) -> str:
    """Return a URI as it may stand in logs and plans: without user, query and fragment."""
    if not scheme_of(uri) or _SCP.fullmatch(uri):
        return uri
    head = re.split(r"[?#]", uri)[0]
    return re.sub(r"^([^:]+://)[^/@]*@", r"\1", head)


def wrong(source: DataSource) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with a source: the member, the end of a sentence, and what to do."""
    if not source.uri:
        yield "uri", "has no URI", HINT
    elif not source.uri.isprintable():
        yield "uri", "has a URI with characters that no URI has", "Write them as %XX."
    elif source.kind == "git" and source.uri.startswith("-"):
        yield "uri", "has a URI that git would take for an option", ""
    if has_password(source.uri):
        yield (
            "uri",
            "has a password or token in its URI, which would stand in records and logs",
            "Leave it out of the URI; give it by --secret NAME=ask and secret=NAME (http, git, object "
            "stores), or by the configuration of the store on this machine.",
        )
    if source.path:
        parts = source.path.removeprefix("/").rstrip("/").split("/")
        if not source.path.isprintable() or {"", ".", ".."} & set(parts):
            yield (
                "path",
                "has a path that names no folder",
                "Write /pai_data/x, or one below the package.",
            )
    if source.sha256 and not _SHA256.fullmatch(source.sha256):
        yield "sha256", "has a sha256 that is no 64 hexadecimal digits", "Take it from sha256sum."
    if source.sha256 and source.kind in ("git", "storage"):
        yield "sha256", f"is of kind {source.kind}, which has no checksum", _instead(source.kind)
    if source.ref and source.kind != "git":
        yield "ref", f"is of kind {source.kind}, which has no ref", "Only git repositories have one."
    if source.ref.startswith("-") or not source.ref.isprintable() or " " in source.ref:
        yield "ref", "has a ref that git would not take for one", "Name a branch, tag or commit."
    if source.secret and source.kind not in ("http", "git", "object"):
        yield (
            "secret",
            f"is of kind {source.kind}, which uses no secret of the job",
            "Use the configuration of the store on this machine.",
        )


def _instead(kind: str) -> str:
    return "Name a commit with ref=." if kind == "git" else "Copy it in with kind file for that."


def has_password(uri: str) -> bool:
    """Say whether a URI carries a password, or a user name that may be a token."""
    scheme = scheme_of(uri)
    if not scheme or _SCP.fullmatch(uri):
        return False
    rest = uri.partition(":")[2]
    if not rest.startswith("//"):
        return False
    user, at, _ = re.split(r"[/?#]", rest[2:])[0].rpartition("@")
    return bool(at) and (":" in user or scheme in _TOKEN_AS_USER)


def place_of(source: DataSource, work: str, own: str) -> str:
    """Return the folder in which a task on a shared machine finds a source.

    Args:
        source: the source.
        work: the package folder of the task.
        own: the folder that the task has for its data.
    """
    if source.path and not source.path.startswith("/"):
        return posixpath.join(work, source.path.rstrip("/"))
    return posixpath.join(own, source.name)
