"""What one validator accepts and another refuses: corrected on reading, and said.

Old documents have null completion counts, a text for ``data.uri``, role names with ``-``; the published
schema lets ``instances`` and the resources out, which the server does not survive.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

from paijupyter.errors import Problem
from paijupyter.protocol.javascript import number_text
from paijupyter.protocol.names import converted
from paijupyter.protocol.roles import DEFAULT_CPU, DEFAULT_MEMORY_MB
from paijupyter.protocol.values import Place, keys_of, pointer

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OLD_KEY = re.compile(r"[A-Za-z0-9._~-]+")


def correct(
    raw: dict[str, Any], places: dict[str, Place]
) -> tuple[dict[str, Any], list[Problem], dict[str, Place]]:
    """Return corrected values, what was corrected, and the places by the corrected paths."""
    correction = _Correction(copy.deepcopy(raw), dict(places))
    correction.make()
    return correction.data, correction.found, correction.places


class _Correction:
    def __init__(self, data: dict[str, Any], places: dict[str, Place]) -> None:
        self.data = data
        self.places = places
        self.found: list[Problem] = []

    def make(self) -> None:
        self._prerequisites()
        self._role_names()
        for path, role in self._roles():
            self._instances(path, role)
            self._completion(path, role)
            self._resources(path, role)
        self._deployments()

    def _note(self, path: str, code: str, message: str) -> None:
        place = self.places.get(path) or self.places.get(path.rpartition("/")[0])
        line, column = (place.line, place.column) if place else (None, None)
        self.found.append(Problem("hint", code, message, path, line, column))

    def _roles(self) -> Iterator[tuple[str, dict[str, Any]]]:
        roles = self.data.get("taskRoles")
        for name, role in list(roles.items()) if isinstance(roles, dict) else ():
            if isinstance(role, dict):
                yield pointer("/taskRoles", name), role

    def _prerequisites(self) -> None:
        self._version("", self.data)
        items = self.data.get("prerequisites")
        for index, item in enumerate(items) if isinstance(items, list) else ():
            if isinstance(item, dict):
                path, name = f"/prerequisites/{index}", f"prerequisites[{index}]"
                self._version(path, item)
                if item.get("type") == "data":
                    self._data_item(path, name, item, index)

    def _version(self, path: str, item: dict[str, Any]) -> None:
        version = item.get("version")
        if isinstance(version, (int, float)) and not isinstance(version, bool):
            item["version"] = number_text(version)
            message = f"`version` is a number; it is read as the text `{item['version']}`."
            self._note(f"{path}/version", "version-number", message)

    def _data_item(self, path: str, name: str, item: dict[str, Any], index: int) -> None:
        if "name" not in item:
            _put_first(item, "name", f"data{index}")
            self._note(
                f"{path}/name", "name-missing", f"`{name}.name` is missing; it is read as `data{index}`."
            )
        uri = item.get("uri")
        if isinstance(uri, str):
            item["uri"] = [uri]
            message = f"`{name}.uri` of data must be a list; the one text became its item."
            self._note(f"{path}/uri", "uri-list", message)
        elif uri == []:
            del item["uri"]
            self._note(f"{path}/uri", "uri-list", f"`{name}.uri` is an empty list; it was left out.")

    def _role_names(self) -> None:
        roles = self.data.get("taskRoles")
        if not isinstance(roles, dict):
            return
        renamed = _renaming(roles, _role_name)
        for old, new in renamed.items():
            message = f"`taskRoles.{old}` is a name of an old protocol; it is read as `{new}`."
            self._note(pointer("/taskRoles", old), "role-name", message)
        if renamed:
            self._rename("/taskRoles", roles, renamed)
            for path, others in self._role_mappings():
                self._rename(path, others, renamed)
        for path, role in self._roles():
            resources = role.get("resourcePerInstance")
            ports = resources.get("ports") if isinstance(resources, dict) else None
            if isinstance(ports, dict):
                self._port_labels(f"{path}/resourcePerInstance/ports", ports)

    def _port_labels(self, path: str, ports: dict[str, Any]) -> None:
        renamed = _renaming(ports, _port_label)
        for old, new in renamed.items():
            message = f"`{_dotted(path)}.{old}` is a label of an old protocol; it is read as `{new}`."
            self._note(pointer(path, old), "port-label", message)
        self._rename(path, ports, renamed)

    def _role_mappings(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All other mappings whose keys are role names."""
        deployments = self.data.get("deployments")
        for index, item in enumerate(deployments) if isinstance(deployments, list) else ():
            if isinstance(item, dict) and isinstance(item.get("taskRoles"), dict):
                yield f"/deployments/{index}/taskRoles", item["taskRoles"]
        for keys in (("extras", "hivedScheduler", "taskRoles"), ("extras", "paijupyter", "roles")):
            found: Any = self.data
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            if isinstance(found, dict):
                yield "/" + "/".join(keys), found

    def _rename(self, path: str, mapping: dict[str, Any], renamed: dict[str, str]) -> None:
        if not renamed.keys() & mapping.keys():
            return
        start = f"{path}/"
        for known in [known for known in self.places if known.startswith(start)]:
            old, slash, rest = known[len(start) :].partition("/")
            (key,) = keys_of(f"/{old}")
            if key in renamed:
                self.places[pointer(path, renamed[key]) + slash + rest] = self.places.pop(known)
        items = [(renamed.get(key, key), value) for key, value in mapping.items()]
        mapping.clear()
        mapping.update(items)

    def _instances(self, path: str, role: dict[str, Any]) -> None:
        if "instances" not in role:
            _put_first(role, "instances", 1)
            message = f"`{_dotted(path)}.instances` is missing; it is read as 1."
            self._note(f"{path}/instances", "instances-missing", message)

    def _completion(self, path: str, role: dict[str, Any]) -> None:
        completion = role.get("completion")
        if not isinstance(completion, dict):
            return
        meaning = {"minFailedInstances": "1", "minSucceededInstances": "all instances"}
        for key, words in meaning.items():
            value = completion.get(key, 1)
            if value is None or (value == 0 and not isinstance(value, bool)):
                del completion[key]
                said = "null" if value is None else "0"
                message = (
                    f"`{_dotted(path)}.completion.{key}` is {said}, which means {words}; it was left out."
                )
                self._note(f"{path}/completion/{key}", "completion-count", message)
        if not completion:
            del role["completion"]

    def _resources(self, path: str, role: dict[str, Any]) -> None:
        resources = role.get("resourcePerInstance")
        if not isinstance(resources, dict):
            return
        for key, default in (("cpu", DEFAULT_CPU), ("memoryMB", DEFAULT_MEMORY_MB), ("gpu", 0)):
            if key not in resources:
                resources[key] = default
                message = f"`{_dotted(path)}.resourcePerInstance.{key}` is missing; it is read as {default}."
                self._note(f"{path}/resourcePerInstance/{key}", "resource-missing", message)
        if resources.get("ports", 0) in (None, {}):
            # OpenPAI takes null and refuses {}; both mean no ports.
            del resources["ports"]
            message = f"`{_dotted(path)}.resourcePerInstance.ports` is empty; it was left out."
            self._note(f"{path}/resourcePerInstance/ports", "empty-ports", message)

    def _deployments(self) -> None:
        items, roles = self.data.get("deployments"), self.data.get("taskRoles")
        for index, item in enumerate(items) if isinstance(items, list) else ():
            if isinstance(item, dict) and "taskRoles" not in item and isinstance(roles, dict) and roles:
                item["taskRoles"] = {next(iter(roles)): {}}
                message = f"`deployments[{index}].taskRoles` is missing; it does nothing."
                self._note(f"/deployments/{index}", "empty-deployment", message)


def _renaming(mapping: dict[str, Any], rename: Callable[[str], str]) -> dict[str, str]:
    """Old → new for keys that only the old protocol allowed; a name that is taken is left for the check."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for key in mapping:
        if not _KEY.fullmatch(key) and _OLD_KEY.fullmatch(key):
            new = rename(key)
            if new not in mapping and new not in taken:
                found[key] = new
                taken.add(new)
    return found


def _role_name(old: str) -> str:
    name = converted(old)
    return name if name[:1].isalpha() else f"role{name}"


def _port_label(old: str) -> str:
    label = re.sub(r"[^A-Za-z0-9_]", "_", old)
    return f"p{label}" if label[0].isdigit() else label


def _put_first(mapping: dict[str, Any], key: str, value: Any) -> None:
    items = list(mapping.items())
    mapping.clear()
    mapping[key] = value
    mapping.update(items)


def _dotted(path: str) -> str:
    return path.lstrip("/").replace("/", ".")
