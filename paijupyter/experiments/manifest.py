"""A ``batch/v1`` Job manifest as a job document, and all that the document cannot carry (T1, T10 to T14).

What is understood is taken out of a copy of the manifest; whatever is left over at the end is what was lost.
"""

from __future__ import annotations

import copy
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.errors import InvalidDocument, PaiJupyterError, Problem, Severity
from paijupyter.protocol.document import parse_values
from paijupyter.protocol.names import short_name
from paijupyter.protocol.quantities import parse_memory
from paijupyter.protocol.values import Place, pointer
from paijupyter.protocol.writing import write

_VARIABLE = re.compile(r"\$(\$)?\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GPU = re.compile(r"[a-z0-9.-]+/(?:gpu|mig-.*)")
_POD = "/spec/template/spec"
# What means nothing outside of a cluster, or is what every task of ours gets anyway.
_MEANINGLESS = ("/apiVersion", "/kind", "/metadata/name", "/metadata/generateName", f"{_POD}/restartPolicy")


LOST = frozenset({"not-carried", "no-backoff-limit", "no-command"})
"""Codes of what matters only where a manifest is converted; a cluster gets it as it was written."""


def convert(text: str) -> tuple[str, list[Problem]]:
    """Return the job document of a manifest, and what was lost or looks wrong.

    The document holds the manifest too, for a cluster. A container without a command is an error of the list:
    a cluster starts what the image says, and only there it can run.

    Raises:
        InvalidDocument: if it is no Job that can be run: no container, a value that is none.
    """
    data, places, problems = parse_values(text)
    if problems:
        raise InvalidDocument(problems)
    conversion = _Conversion(data, places)
    document = conversion.document()
    if conversion.errors:
        raise InvalidDocument(conversion.problems)
    document["extras"]["paijupyter"]["kubernetes"] = {"manifest": data}
    return write(document), conversion.problems


class _Conversion:
    def __init__(self, data: Mapping[str, Any], places: Mapping[str, Place]) -> None:
        self.problems: list[Problem] = []
        self._left: dict[str, Any] = copy.deepcopy(dict(data))
        self._places = places

    @property
    def errors(self) -> bool:
        return any(each.severity == "error" and each.code not in LOST for each in self.problems)

    def document(self) -> dict[str, Any]:
        self._look_at_volumes()
        name = short_name(str(self._look("/metadata/name") or self._look("/metadata/generateName") or "job"))
        image = self._take(f"{_POD}/containers/0/image")
        if not isinstance(image, str):
            self._say(
                "error", "no-container", f"{_POD}/containers", "Manifest has no container with an image."
            )
        role: dict[str, Any] = {
            "instances": self._instances(),
            "dockerImage": "image",
            "resourcePerInstance": self._resources(),
            "commands": [self._command()],
        }
        shared = self._shared_memory()
        if shared:
            role["extraContainerOptions"] = {"shmMB": shared}
        ours: dict[str, Any] = {"version": 1}
        env = self._env()
        if env:
            ours["env"] = env
        limit = self._count("/spec/activeDeadlineSeconds")
        if limit:
            ours["timeLimit"] = limit
        document = {
            "protocolVersion": 2,
            "name": name,
            "type": "job",
            "jobRetryCount": self._retries(),
            "prerequisites": [
                {"protocolVersion": 2, "name": "image", "type": "dockerimage", "uri": str(image or "")}
            ],
            "taskRoles": {"main": role},
            "extras": {"paijupyter": ours},
        }
        self._look_at_the_rest()
        return document

    # -- what is carried --------------------------------------------------------------------------------

    def _instances(self) -> int:
        completions = self._count("/spec/completions") or 1
        self._take("/spec/completionMode")
        if completions > 1:
            # Tasks of a role run at the same time; a Job may run them a few at a time.
            parallel = self._look("/spec/parallelism")
            if parallel == completions:
                self._take("/spec/parallelism")
        elif self._look("/spec/parallelism") in (1, None):
            self._take("/spec/parallelism")
        return completions

    def _retries(self) -> int:
        if self._look("/spec/backoffLimit") is None:
            self._say(
                "hint",
                "no-backoff-limit",
                "/spec",
                "Manifest has no `backoffLimit`; Kubernetes would try six times more, here it is tried once.",
            )
            return 0
        return self._count("/spec/backoffLimit") or 0

    def _command(self) -> str:
        words = []
        for member in ("command", "args"):
            path = f"{_POD}/containers/0/{member}"
            found = self._take(path)
            if found is not None and not isinstance(found, list):
                self._say("error", "not-a-list", path, f"Member `{member}` of the container must be a list.")
                continue
            if member == "command" and not found:
                message = (
                    "Container has no `command`; what its image starts by itself is known to no document."
                )
                self._say("error", "no-command", f"{_POD}/containers/0", message, "Name it under `command:`.")
                words.append("exit 127  # what the image starts by itself:")
            words += [_word(str(each)) for each in found or ()]
        return " ".join(words)

    def _resources(self) -> dict[str, Any]:
        base = f"{_POD}/containers/0/resources"
        requests = self._take(f"{base}/requests") or {}
        limits = self._take(f"{base}/limits") or {}
        wanted = {**limits, **requests} if isinstance(limits, dict) and isinstance(requests, dict) else {}
        gpus = [name for name in wanted if _GPU.fullmatch(name)]
        for name in gpus:
            if name in requests and requests.get(name) != limits.get(name):
                message = f"Request of `{name}` must equal its limit."
                self._say("warning", "gpu-request", f"{base}/limits", message)
        for name in wanted:
            if name not in ("cpu", "memory", *gpus):
                self._lost(f"{base}/{'requests' if name in requests else 'limits'}/{name}", name)
        return {
            "cpu": max(1, math.ceil(self._amount(wanted.get("cpu"), base, "cpu") or 1)),
            "memoryMB": max(1, math.ceil(self._amount(wanted.get("memory"), base, "memory") or 1024)),
            "gpu": math.ceil(sum(self._amount(wanted[name], base, name) or 0 for name in gpus)),
        }

    def _amount(self, value: Any, base: str, name: str) -> float | None:
        """Read a quantity: cores of cpu, MiB of memory, pieces of anything else."""
        if value is None:
            return None
        text = str(value)
        try:
            if name == "memory":
                return float(parse_memory(text)) if not text.isdecimal() else int(text) / 2**20
            return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
        except (ValueError, PaiJupyterError):
            self._say("error", "bad-quantity", base, f"Quantity `{text}` of `{name}` cannot be read.")
            return None

    def _env(self) -> dict[str, str]:
        path = f"{_POD}/containers/0/env"
        found = {}
        variables = self._look(path)
        for index, each in enumerate(variables if isinstance(variables, list) else ()):
            name = each.get("name") if isinstance(each, dict) else None
            if isinstance(name, str) and _ENV_NAME.fullmatch(name) and "valueFrom" not in each:
                value = each.get("value")
                found[name] = "" if value is None else str(value)
            else:
                said = f"variable `{name}`, whose value comes from the cluster"
                self._lost(pointer(path, index), said, "Give it with --env, or as a secret.")
        self._take(path)
        return found

    def _shared_memory(self) -> int | None:
        """Return the size of a memory volume at ``/dev/shm``, in MiB."""
        mounts = self._look(f"{_POD}/containers/0/volumeMounts")
        volumes = self._look(f"{_POD}/volumes")
        for mount in mounts if isinstance(mounts, list) else ():
            if not isinstance(mount, dict) or mount.get("mountPath") != "/dev/shm":  # noqa: S108
                continue
            for volume in volumes if isinstance(volumes, list) else ():
                folder = volume.get("emptyDir") if isinstance(volume, dict) else None
                if volume.get("name") == mount.get("name") and isinstance(folder, dict):
                    size = folder.get("sizeLimit")
                    mount.clear()  # emptied, not removed: those after them keep their places
                    volume.clear()
                    amount = self._amount(size, f"{_POD}/volumes", "memory") if size else None
                    return math.ceil(amount) if amount else None
        return None

    # -- what looks wrong, and what is lost -------------------------------------------------------------

    def _look_at_volumes(self) -> None:
        """Lint of T13: in-tree cephfs, a volume that nobody mounts, a path that is not mounted."""
        volumes = self._look(f"{_POD}/volumes")
        containers = self._look(f"{_POD}/containers")
        mounts = [
            mount
            for container in (containers if isinstance(containers, list) else ())
            if isinstance(container, dict)
            for mount in container.get("volumeMounts") or ()
            if isinstance(mount, dict)
        ]
        mounted = {mount.get("name") for mount in mounts}
        for index, volume in enumerate(volumes if isinstance(volumes, list) else ()):
            path = f"{_POD}/volumes/{index}"
            name = volume.get("name") if isinstance(volume, dict) else None
            if isinstance(volume, dict) and "cephfs" in volume:
                message = (
                    f"Volume `{name}` is in-tree cephfs, which Kubernetes 1.31 removed: nothing is mounted."
                )
                hint = "Use a PersistentVolumeClaim or the CSI driver cephfs.csi.ceph.com."
                self._say("warning", "cephfs-removed", f"{path}/cephfs", message, hint)
            if name not in mounted:
                message = f"Volume `{name}` is declared and mounted nowhere."
                self._say("warning", "volume-not-mounted", path, message, "Mount it, or remove it.")
        self._look_at_paths([str(mount.get("mountPath") or "").rstrip("/") for mount in mounts])

    def _look_at_paths(self, mounted: list[str]) -> None:
        variables = self._look(f"{_POD}/containers/0/env")
        for index, each in enumerate(variables if isinstance(variables, list) else ()):
            value = each.get("value") if isinstance(each, dict) else None
            if not mounted or not isinstance(value, str) or not value.startswith("/"):
                continue
            if not any(value == path or value.startswith(f"{path}/") for path in mounted if path):
                message = (
                    f"Variable `{each.get('name')}` is the path `{value}`, and no volume is mounted there."
                )
                hint = f"Mounted: {', '.join(f'`{path}`' for path in mounted)}."
                self._say(
                    "warning", "path-not-mounted", f"{_POD}/containers/0/env/{index}/value", message, hint
                )

    def _look_at_the_rest(self) -> None:
        for path in _MEANINGLESS:
            self._take(path)
        self._take(f"{_POD}/containers/0/name")
        containers = self._look(f"{_POD}/containers")
        if isinstance(containers, list) and len(containers) > 1:
            for index, each in enumerate(containers[1:], 1):
                name = each.get("name") if isinstance(each, dict) else index
                self._lost(f"{_POD}/containers/{index}", f"container `{name}`", "A task runs the first one.")
            del containers[1:]
        for path, said in _leaves(self._left):
            self._lost(path, f"`{said}`")

    def _lost(self, path: str, what: str, hint: str = "") -> None:
        message = f"Manifest's {what} is not carried into the job document."
        self._say("warning", "not-carried", path, message, hint)

    def _say(self, severity: Severity, code: str, path: str, message: str, hint: str = "") -> None:
        near = path
        while near and near not in self._places:
            near = near.rpartition("/")[0]
        place = self._places.get(near)
        line = place.line if place else None
        self.problems.append(Problem(severity, code, message, path, line, hint=hint))

    # -- taking out -------------------------------------------------------------------------------------

    def _count(self, path: str) -> int | None:
        value = self._take(path)
        if value is None:
            return None
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            name = path.rpartition("/")[2]
            self._say("error", "not-a-number", path, f"Member `{name}` must be a whole number.")
            return None
        return number

    def _look(self, path: str) -> Any:
        return _member(self._left, path)

    def _take(self, path: str) -> Any:
        parent, _, last = path.rpartition("/")
        around = _member(self._left, parent)
        return around.pop(last, None) if isinstance(around, dict) else None


def _member(value: Any, path: str) -> Any:
    for key in path.split("/")[1:]:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _leaves(value: Any, path: str = "", said: str = "") -> Iterator[tuple[str, str]]:
    """Yield what is left of a manifest: the highest members that have nothing understood in them."""
    if isinstance(value, dict):
        for key, item in value.items():
            if item in ({}, []):
                continue  # all of it was understood
            is_way = isinstance(item, dict) and path in ("", "/spec", "/spec/template", "/metadata")
            is_list = isinstance(item, list) and all(isinstance(each, dict) for each in item)
            if is_way or is_list:
                yield from _leaves(item, pointer(path, key), f"{said}.{key}".lstrip("."))
            else:
                yield pointer(path, key), f"{said}.{key}".lstrip(".")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            name = item.get("name") if isinstance(item, dict) else None
            if said.endswith("containers"):
                yield from _leaves(item, pointer(path, index), "container")
            elif item:
                yield pointer(path, index), f"{said} {name or index}"


def _word(text: str) -> str:
    """Return a word of a container's command for a shell: ``$(NAME)`` is a variable, ``$$(NAME)`` is not."""
    parts, end = [], 0
    for match in _VARIABLE.finditer(text):
        before = text[end : match.start()]
        parts.append(shlex.quote(before) if before else "")
        parts.append(shlex.quote(f"$({match[2]})") if match[1] else f'"${{{match[2]}}}"')
        end = match.end()
    if not parts:
        return shlex.quote(text)
    rest = text[end:]
    return "".join([*parts, shlex.quote(rest) if rest else ""])
