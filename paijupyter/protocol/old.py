"""Job documents of OpenPAI 0.13 and before, JSON with ``jobName``: made into one of today (O33)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from paijupyter.errors import Problem
from paijupyter.protocol.roles import DEFAULT_CPU, DEFAULT_MEMORY_MB
from paijupyter.protocol.writing import write

_IMAGE = "image"
_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_ROLE = re.compile(r"[^a-z0-9]+")
# key of a job → the variable that its tasks had it in.
_FOLDERS = {"dataDir": "PAI_DATA_DIR", "outputDir": "PAI_OUTPUT_DIR", "codeDir": "PAI_CODE_DIR"}
_JOB = {
    "jobName", "image", "virtualCluster", "retryCount", "taskRoles", "jobEnvs",
    "killAllOnCompletedTaskNumber", *_FOLDERS,
}  # fmt: skip
_TASK = {
    "name", "taskNumber", "cpuNumber", "memoryMB", "shmMB", "gpuNumber", "portList", "command",
    "minFailedTaskCount", "minSucceededTaskCount",
}  # fmt: skip


def modernised(text: str) -> tuple[str, list[Problem]]:
    """Return a document of the old format as one of today, and a list of what was changed.

    All other texts come back as they are, with an empty list. What has no place in a document of today is
    named and left out.
    """
    if '"jobName"' not in text:
        return text, []
    try:
        data = json.loads(text)
    except ValueError:
        return text, []
    roles = data.get("taskRoles") if isinstance(data, dict) else None
    if not isinstance(roles, list) or "protocolVersion" in data:
        return text, []
    conversion = _Conversion(data, list(filter(_is_object, roles)))
    return write(conversion.document()), conversion.changes


class _Conversion:
    def __init__(self, data: Mapping[str, Any], roles: list[dict[str, Any]]) -> None:
        self._data, self._roles = data, roles
        self.changes: list[Problem] = []
        self._note("", "Job document is of OpenPAI 0.13 or before; it was made into one of version 2.")

    def document(self) -> dict[str, Any]:
        """Return the values of the new document."""
        data = self._data
        document: dict[str, Any] = {"protocolVersion": 2, "name": self._name(), "type": "job"}
        if data.get("retryCount"):
            document["jobRetryCount"] = data["retryCount"]
        document["prerequisites"] = [
            {"name": _IMAGE, "type": "dockerimage", "uri": str(data.get("image", ""))}
        ]
        document["taskRoles"] = {}
        for index, role in enumerate(self._roles):
            name = self._role_name(index, role, document["taskRoles"])
            document["taskRoles"][name] = self._role(f"/taskRoles/{name}", role)
        if data.get("virtualCluster"):
            document["defaults"] = {"virtualCluster": data["virtualCluster"]}
        env = self._environment()
        if env:
            document["extras"] = {"paijupyter": {"version": 1, "env": env}}
        self._left_out("", data, _JOB)
        return document

    def _name(self) -> str:
        old = str(self._data.get("jobName", ""))
        name = _NAME.sub("-", old).strip("-") or "job"
        if name != old:
            self._note(
                "/name", f"`jobName` `{old}` became `{name}`: letters, digits, `_` and `-` make a name."
            )
        return name

    def _role_name(self, index: int, role: Mapping[str, Any], taken: Mapping[str, Any]) -> str:
        old = str(role.get("name", ""))
        name = _ROLE.sub("", old.lower()).lstrip("0123456789") or f"role{index}"
        if name in taken:
            name = f"{name}{index}"
        if name != old:
            self._note(f"/taskRoles/{name}", f"Task role `{old}` is now `{name}`, also in variables' names.")
        return name

    def _role(self, path: str, role: Mapping[str, Any]) -> dict[str, Any]:
        new: dict[str, Any] = {"instances": role.get("taskNumber", 1)}
        failed, succeeded = role.get("minFailedTaskCount"), role.get("minSucceededTaskCount")
        if self._data.get("killAllOnCompletedTaskNumber") and succeeded is None:
            succeeded = self._data["killAllOnCompletedTaskNumber"]
            self._note(path, "`killAllOnCompletedTaskNumber` became `minSucceededInstances` of each role.")
        if failed is not None or succeeded is not None:
            counts = {"minFailedInstances": failed, "minSucceededInstances": succeeded}
            new["completion"] = {key: count for key, count in counts.items() if count is not None}
        new["dockerImage"] = _IMAGE
        if role.get("shmMB"):
            new["extraContainerOptions"] = {"shmMB": role["shmMB"]}
        new["resourcePerInstance"] = {
            "cpu": role.get("cpuNumber", DEFAULT_CPU),
            "memoryMB": role.get("memoryMB", DEFAULT_MEMORY_MB),
            "gpu": role.get("gpuNumber", 0),
        }
        ports = role.get("portList")
        if isinstance(ports, list) and ports:
            new["resourcePerInstance"]["ports"] = self._ports(path, ports)
        new["commands"] = [str(role.get("command", ""))]
        self._left_out(path, role, _TASK)
        return new

    def _ports(self, path: str, ports: list[Any]) -> dict[str, Any]:
        found = {}
        for each in filter(_is_object, ports):
            label = re.sub(r"\W", "_", str(each.get("label", "port")))
            found[label] = each.get("portNumber", 1)
            if each.get("beginAt"):
                message = f"Port `{label}` began at {each['beginAt']}; ports are now given out freely."
                self._note(f"{path}/resourcePerInstance/ports/{label}", message)
        return found

    def _environment(self) -> dict[str, str]:
        given = self._data.get("jobEnvs")
        env = {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}
        for key, variable in _FOLDERS.items():
            if self._data.get(key):
                env[variable] = str(self._data[key])
                message = f"`{key}` is kept in {variable} only: nothing is copied from or to there any more."
                self._note(f"/extras/paijupyter/env/{variable}", message, "Name it as `data` or `outputs`.")
        return env

    def _left_out(self, path: str, old: Mapping[str, Any], known: set[str]) -> None:
        for key in old:
            if key not in known and old[key] not in (None, "", [], {}):
                message = f"`{key}` is left out: a document of today has no field for it."
                self.changes.append(Problem("warning", "old-protocol", message, path))

    def _note(self, path: str, message: str, hint: str = "") -> None:
        self.changes.append(Problem("hint", "old-protocol", message, path, hint=hint))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)
