"""Storages of a profile: named folders that tasks get, set up by an administrator (O16) or by the user.

::

    storages:
      team: {path: /srv/team, readOnly: true, mount: /mnt/team, default: true}

Nothing outside a storage's folder can be reached through it, whatever a path or a link in it says.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.errors import NotFound, PaiJupyterError

UPLOAD = re.compile(r"\.[^/]+\.[0-9a-f]{64}\.upload")
"""Name of a file that is on its way into a storage; such files are not listed."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_KNOWN = ("path", "readOnly", "mount", "default")


@dataclass(frozen=True, slots=True)
class Storage:
    """A named folder.

    Attributes:
        name: its name.
        folder: where its files lie on this host; None if they cannot be reached from here.
        read_only: whether nobody writes into it through us.
        mount: where tasks have it on a backend that mounts.
        default: whether jobs that name no storage get it (P37).
    """

    name: str
    folder: Path | None
    read_only: bool = False
    mount: str = ""
    default: bool = False

    @property
    def mount_path(self) -> str:
        """Where tasks have it unless a job says otherwise: OpenPAI's rule."""
        return self.mount or f"/mnt/{self.name}"

    def to_json(self) -> dict[str, Any]:
        """Return what screens list."""
        return {
            "name": self.name,
            "path": str(self.folder) if self.folder else None,
            "readOnly": self.read_only,
            "mount": self.mount_path,
            "default": self.default,
            "usable": bool(self.folder and self.folder.is_dir()),
        }


def storages_of(settings: Mapping[str, Any]) -> dict[str, Storage]:
    """Return the storages of a profile's settings by name.

    Raises:
        PaiJupyterError: ``bad-storage`` naming what is wrong.
    """
    named = settings.get("storages") or {}
    if not isinstance(named, Mapping):
        raise _bad("`storages` is no mapping of names to settings")
    return {str(name): _storage(str(name), fields) for name, fields in named.items()}


def _storage(name: str, fields: Any) -> Storage:
    if isinstance(fields, str):
        fields = {"path": fields}
    if not _NAME.fullmatch(name):
        raise _bad(f"`{name}` is no name: letters, digits, `.`, `_` and `-`")
    if not isinstance(fields, Mapping) or not isinstance(fields.get("path"), str):
        raise _bad(f"storage `{name}` has no `path`")
    unknown = [key for key in fields if key not in _KNOWN]
    if unknown:
        raise _bad(f"storage `{name}` has the unknown setting `{unknown[0]}`")
    mount = fields.get("mount") or ""
    if not isinstance(mount, str) or (mount and not mount.startswith("/")):
        raise _bad(f"`mount` of storage `{name}` is no absolute path")
    folder = Path(fields["path"]).expanduser()
    if not folder.is_absolute():
        raise _bad(f"`path` of storage `{name}` is not absolute")
    return Storage(name, folder, bool(fields.get("readOnly")), mount, bool(fields.get("default")))


def _bad(why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "bad-storage", f"Profile's storages cannot be used: {why}.", "Correct the profile.", 422
    )


def inside(storage: Storage, path: str) -> Path:
    """Return the place of a path in a storage; it need not exist.

    Raises:
        PaiJupyterError: ``invalid-path`` if it would leave the storage, ``storage-unusable``.
    """
    root = _root(storage)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path:
        raise _leaves(storage, path)
    place = root.joinpath(*parts)
    try:
        # The place itself may be a link that is to be removed or replaced; what leads to it may not lead out.
        parent = place.parent.resolve() if parts else root
    except (OSError, RuntimeError):
        raise _leaves(storage, path) from None
    if parent != root and root not in parent.parents:
        raise _leaves(storage, path)
    return place


def existing(storage: Storage, path: str) -> Path:
    """Return the file or folder of a path, links followed.

    Raises:
        NotFound: there is none, or it lies outside.
    """
    place = inside(storage, path)
    root = _root(storage)
    try:
        real = place.resolve(strict=True)
    except (OSError, RuntimeError):
        raise _absent(storage, path) from None
    if real != root and root not in real.parents:
        raise _absent(storage, path)
    return real


def listed(storage: Storage, path: str) -> list[dict[str, Any]]:
    """Return ``{name, path, folder, size, modified}`` of a file, or of all that lies directly in a folder.

    Raises:
        NotFound: there is no such path.
    """
    place = existing(storage, path)
    prefix = "/".join(part for part in path.split("/") if part not in ("", "."))
    if not place.is_dir():
        return [_entry(place, place.name, prefix)]
    found = []
    for name in sorted(os.listdir(place)):
        if not UPLOAD.fullmatch(name):
            found.append(_entry(place / name, name, f"{prefix}/{name}" if prefix else name))
    return found


def removed(storage: Storage, path: str, *, recursive: bool) -> None:
    """Remove a file, a link, or with ``recursive`` a folder and all in it; never what a link leads to.

    Raises:
        NotFound: there is nothing.
        PaiJupyterError: ``read-only``, ``is-folder`` or ``invalid-path``.
    """
    writable(storage)
    place = inside(storage, path)
    if place == _root(storage):
        raise PaiJupyterError(
            "invalid-path", f"Storage `{storage.name}` itself cannot be removed.", "Name something in it."
        )
    if not os.path.lexists(place):
        raise _absent(storage, path)
    if not place.is_dir() or place.is_symlink():
        place.unlink()
    elif recursive:
        shutil.rmtree(place)
    else:
        try:
            place.rmdir()
        except OSError:
            raise PaiJupyterError(
                "is-folder",
                f"`{storage.name}:{path}` is a folder with something in it.",
                "Add --recursive.",
                409,
            ) from None


def writable(storage: Storage) -> None:
    """Do nothing if the storage may be written to.

    Raises:
        PaiJupyterError: ``read-only``.
    """
    if storage.read_only:
        raise PaiJupyterError(
            "read-only",
            f"Storage `{storage.name}` is read-only.",
            "Choose another, or change the profile.",
            403,
        )


def used_by(document: Mapping[str, Any], there: Mapping[str, Storage]) -> Iterator[tuple[str, str]]:
    """Yield name and mount path of the storages a job gets: of ``extras.storages``, else the default ones.

    A name that is not there is yielded too.
    """
    extras = document.get("extras")
    named = extras.get("storages") if isinstance(extras, Mapping) else None
    items = [item for item in named if isinstance(item, Mapping)] if isinstance(named, list) else []
    if not items:
        yield from ((each.name, each.mount_path) for each in there.values() if each.default)
    for item in items:
        name = str(item.get("name") or "")
        default = there[name].mount_path if name in there else f"/mnt/{name}"
        yield name, str(item.get("mountPath") or default)


def _root(storage: Storage) -> Path:
    if storage.folder is None or not storage.folder.is_dir():
        where = storage.folder or "anywhere"
        raise PaiJupyterError(
            "storage-unusable",
            f"Storage `{storage.name}` is not there: no folder at `{where}` on this machine.",
            "Mount it, or correct `path` in the profile.",
            409,
        )
    return storage.folder.resolve()


def _entry(place: Path, name: str, path: str) -> dict[str, Any]:
    found = place.lstat()
    return {
        "name": name,
        "path": path,
        "folder": stat.S_ISDIR(found.st_mode),
        "size": found.st_size,
        "modified": found.st_mtime,
    }


def _leaves(storage: Storage, path: str) -> PaiJupyterError:
    return PaiJupyterError(
        "invalid-path",
        f"Path `{path}` would leave the storage `{storage.name}`.",
        "Name a path in it, without `..`.",
    )


def _absent(storage: Storage, path: str) -> NotFound:
    return NotFound("Path", f"{storage.name}:{path}", f"See what there is with: data ls {storage.name}:")
