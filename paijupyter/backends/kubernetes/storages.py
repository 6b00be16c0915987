"""Storages of a profile on a cluster: named volumes that tasks get.

::

    storages:
      team: {pvc: team-claim, subPath: data, readOnly: true, default: true, path: /home/jovyan/team}
      raw: {nfs: {server: files.example, path: /export/raw}}
      ceph: {csi: {driver: cephfs.csi.ceph.com, volumeAttributes: {…}}, mount: /datasets}
      scratch: {hostPath: /var/scratch}    # only with `allowHostPath: true` in the same profile

``path`` says where the same files lie on this host, if they do: then `paijob data` works on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends import reading
from paijupyter.backends.reading import Reader
from paijupyter.data.storages import Storage

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
KINDS = ("pvc", "nfs", "csi", "hostPath")


@dataclass(frozen=True, slots=True)
class ClusterStorage:
    """A named volume.

    Attributes:
        kind: one of :data:`KINDS`.
        volume: its source, as in a pod's spec.
        sub_path: folder of the volume that is mounted; "" for all of it.
        storage: its other facts; its folder is None where this host cannot reach the files.
    """

    kind: str
    volume: Mapping[str, Any]
    sub_path: str
    storage: Storage

    @property
    def claim(self) -> str:
        """Name of its claim, or "" where it has none."""
        return str(self.volume["persistentVolumeClaim"]["claimName"]) if self.kind == "pvc" else ""


def read(values: Any, *, host_path: bool) -> tuple[dict[str, ClusterStorage], list[tuple[str, str]]]:
    """Return the storages of a profile, and for each that cannot be used its key and what it must be.

    Args:
        values: the profile's ``storages``.
        host_path: whether the profile allows folders of the nodes.
    """
    found: dict[str, ClusterStorage] = {}
    wrong: list[tuple[str, str]] = []
    if values is not None and not isinstance(values, Mapping):
        return {}, [("storages", "must be settings by name")]
    for key, fields in (values or {}).items():
        name = str(key)
        try:
            found[name] = _storage(name, fields, host_path)
        except ValueError as error:
            wrong.append((f"storages.{name}", str(error)))
    return found, wrong


_FIELDS: Mapping[str, tuple[str, Reader]] = {
    "readOnly": ("read_only", reading.switch),
    "mount": ("mount", reading.path),
    "default": ("default", reading.switch),
    "subPath": ("sub_path", reading.text),
    "path": ("path", reading.path),
}


def _storage(name: str, fields: Any, host_path: bool) -> ClusterStorage:
    if not _NAME.fullmatch(name):
        raise ValueError("must have a name of letters, digits, `.`, `_` and `-`")
    if not isinstance(fields, Mapping):
        raise ValueError("must be a mapping with one of " + ", ".join(KINDS))
    kinds = [kind for kind in KINDS if fields.get(kind) is not None]
    if len(kinds) != 1:
        raise ValueError(f"must have one of {', '.join(KINDS)}")
    unknown = sorted(set(fields) - {*KINDS, *_FIELDS})
    if unknown:
        raise ValueError(f"must not have `{unknown[0]}`, which is not known")
    found, wrong = reading.read(_FIELDS, fields)
    if wrong:
        raise ValueError(f"has a `{wrong[0][0]}` that {wrong[0][1]}")
    sub_path = str(found.get("sub_path") or "").strip("/")
    if ".." in sub_path.split("/"):
        raise ValueError("has a `subPath` that must not leave the volume")
    kind, read_only = kinds[0], bool(found.get("read_only"))
    if kind == "hostPath" and not host_path:
        raise ValueError("is a folder of the nodes, which the profile does not allow (`allowHostPath: true`)")
    folder = Path(found["path"]) if found.get("path") else None
    storage = Storage(name, folder, read_only, found.get("mount") or "", bool(found.get("default")))
    return ClusterStorage(kind, _volume(kind, fields[kind], read_only), sub_path, storage)


def _volume(kind: str, value: Any, read_only: bool) -> dict[str, Any]:
    protected = {"readOnly": True} if read_only else {}
    if kind == "pvc":
        return {"persistentVolumeClaim": {"claimName": reading.name(value), **protected}}
    if kind == "nfs":
        if not isinstance(value, Mapping) or not value.get("server") or set(value) - {"server", "path"}:
            raise ValueError("must have `nfs: {server: …, path: …}`")
        server, path = reading.text(value["server"]), reading.path(value.get("path") or "/")
        return {"nfs": {"server": server, "path": path, **protected}}
    if kind == "csi":
        if not isinstance(value, Mapping) or not value.get("driver"):
            raise ValueError("must have `csi: {driver: …, volumeAttributes: {…}}`")
        return {"csi": {**value, **protected}}
    return {"hostPath": {"path": reading.path(value), "type": "Directory"}}
