"""Settings of a profile of kind ``openpai``: read once, all that is wrong with them in one error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paijupyter.backends import reading
from paijupyter.backends.base import Profile
from paijupyter.backends.delivery.stores import GitRemote, ObjectStore, git_remote, object_store
from paijupyter.backends.reading import Reader
from paijupyter.data.storages import Storage, storages_of
from paijupyter.errors import PaiJupyterError, Problem

WAYS = ("document", "storage", "object", "webhdfs", "git")
"""The ladder of ways by which a package reaches the tasks, in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class WebHdfs:
    """A Hadoop file system that this host and the tasks reach.

    Attributes:
        url: of its name node's HTTP port, for example ``http://namenode:50070``.
        path: folder for packages.
        user: as whom files are written and read there.
    """

    url: str
    path: str = "/paijupyter-packages"
    user: str = ""


@dataclass(frozen=True, slots=True)
class OpenPaiSettings:
    """What a profile says; the attributes are described in :data:`SETTINGS`."""

    name: str
    url: str
    rest_url: str = ""
    ca: str = ""
    user: str = ""
    virtual_cluster: str = ""
    image: str = ""
    images: tuple[str, ...] = ()
    poll_seconds: float = 10.0
    calls_per_minute: int = 0
    ways: tuple[str, ...] = WAYS
    storage: str = ""
    folder: str = "paijupyter"
    bucket: ObjectStore | None = None
    webhdfs: WebHdfs | None = None
    git: GitRemote | None = None
    storages: Mapping[str, Storage] = field(default_factory=dict)
    install: str = "never"
    index_url: str = ""
    python: str = ""
    log_limit_bytes: int = 2**33
    default_gpu: int = 0

    @property
    def shared(self) -> Storage | None:
        """The storage that this host and the tasks both have, for packages and outputs."""
        found = self.storages.get(self.storage) if self.storage else None
        return found if found is not None and not found.read_only else None

    def told(self) -> dict[str, Any]:
        """Return what ``spec.json`` is made from, by the keys of the profile."""
        return {"install": self.install, "indexUrl": self.index_url, "logLimitBytes": self.log_limit_bytes}


def _period(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError("must be a number of seconds above 0")
    return float(value)


def _webhdfs(value: Any) -> WebHdfs:
    table: Mapping[str, tuple[str, Reader]] = {
        "url": ("url", reading.address),
        "path": ("path", reading.path),
        "user": ("user", reading.text),
    }
    return WebHdfs(**reading.part(value, table, "url"))


_OWN: Mapping[str, tuple[str, Reader, str]] = {
    "url": ("url", reading.address, "address of the cluster's portal, for example https://pai.example"),
    "restUrl": ("rest_url", reading.address, "address of its REST server; default: <url>/rest-server"),
    "ca": ("ca", reading.text, "file with the certificate of the authority that signed the server's"),
    "user": ("user", reading.text, "user's name; default: whom the token belongs to (from version 1.6 on)"),
    "virtualCluster": (
        "virtual_cluster",
        reading.text,
        "virtual cluster of jobs that name none; default: default",
    ),
    "image": ("image", reading.text, "image of jobs that name none"),
    "images": (
        "images",
        reading.list_of(reading.text),
        "images that forms offer; default: those of OpenPAI's portal",
    ),
    "gpu": ("default_gpu", reading.whole, "GPUs of a task in forms; default: 0"),
    "pollSeconds": ("poll_seconds", _period, "seconds between two looks at all jobs; default: 10"),
    "callsPerMinute": (
        "calls_per_minute",
        reading.whole,
        "calls that this profile may make in a minute; default: 60, together with all others",
    ),
    "packageWays": (
        "ways",
        reading.list_of(reading.one_of(*WAYS)),
        f"ways by which packages travel, the first that fits is taken; default: {', '.join(WAYS)}",
    ),
    "storage": (
        "storage",
        reading.text,
        "name of the storage, one of `storages`, that keeps packages, checkpoints and outputs",
    ),
    "folder": ("folder", reading.folder, "folder of that storage; default: paijupyter"),
    "packageObject": (
        "bucket",
        object_store,
        "bucket for packages and outputs: {bucket, prefix, endpoint, endpointInCluster, region, awsProfile}",
    ),
    "packageWebHdfs": ("webhdfs", _webhdfs, "Hadoop file system for packages and outputs: {url, path, user}"),
    "packageGit": (
        "git",
        git_remote,
        "git repository that has the packages' files: {url, urlInCluster, folder, secret}; secret is "
        "keyring:NAME or env:NAME of a token, or of user:password",
    ),
    "install": (
        "install",
        reading.one_of("never", "if-missing", "always"),
        "whether requirements are installed: never (default: they are checked), if-missing or always",
    ),
    "indexUrl": ("index_url", reading.address, "package index that tasks install from"),
    "python": ("python", reading.path, "path of the interpreter in the images; default: what PATH has"),
    "logLimitBytes": ("log_limit_bytes", reading.whole, "size at which a task's log is cut off"),
}
SETTINGS: Mapping[str, str] = {
    **{key: words for key, (_, _, words) in _OWN.items()},
    "token": "where the token is: keyring:NAME or env:NAME; default: what `paijob login` kept",
    "storages": "the cluster's storages that this host has mounted too: {team: {path, mount, readOnly}}",
}
"""What a profile may set, each in words; others are named as unknown."""


def settings_of(profile: Profile) -> OpenPaiSettings:
    """Return the settings of a profile.

    Raises:
        PaiJupyterError: ``bad-setting``; its problems name everything that cannot be used.
    """
    table = {key: (field_name, reader) for key, (field_name, reader, _) in _OWN.items()}
    found, wrong = reading.read(table, profile.settings)
    if "url" not in found and not any(key == "url" for key, _ in wrong):
        wrong.append(("url", "must be there: the address of the cluster's portal"))
    storages: Mapping[str, Storage] = {}
    try:
        storages = storages_of(profile.settings)
    except PaiJupyterError as error:
        wrong.append(("storages", f"cannot be used: {error.message}".rstrip(".")))
    else:
        if found.get("storage") and found["storage"] not in storages:
            wrong.append(
                ("storage", "must be the name of one of `storages`, which says where this host has it")
            )
    if wrong:
        raise _bad(profile, wrong)
    if found["url"].endswith("/rest-server"):
        found["url"] = found["url"].removesuffix("/rest-server")
    return OpenPaiSettings(name=profile.name, storages=storages, **found)


def _bad(profile: Profile, wrong: list[tuple[str, str]]) -> PaiJupyterError:
    sentences = [f"Setting `{key}` of profile `{profile.name}` {why}." for key, why in wrong]
    hint = f"Correct it; where it stands says: paijob profile show {profile.name}"
    more = f" ({len(wrong) - 1} more)" if len(wrong) > 1 else ""
    problems = [Problem("error", "bad-setting", sentence, hint=hint) for sentence in sentences]
    return PaiJupyterError("bad-setting", sentences[0] + more, hint, 422, problems)
