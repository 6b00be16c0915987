"""An engine with a small service: jobs are files below ``data/fake``, which tests write themselves.

``<id>.json`` is a job's view; ``<id>/<task>.log`` is a log, ended by ``<id>/<task>.end``; ``<id>/out/`` has
the outputs. Run as a script it is a drop-in for ``python -m paijupyter.engine``.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paijupyter.errors import Conflict, InvalidDocument, NotFound, PaiJupyterError, Problem, UsageProblem
from paijupyter.jobs.events import EventBus
from paijupyter.package.local_store import LocalStore

FINAL = {"succeeded", "failed", "stopped"}


class FakeSettings:
    """Satisfies ``paijupyter.engine.service.Settings`` as far as tests need it."""

    def profiles(self) -> dict[str, Any]:
        return {"profiles": [{"name": "local", "kind": "local"}]}

    async def add_profile(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": name, "settings": dict(settings)}

    async def secrets(self) -> list[str]:
        return ["KNOWN"]

    async def put_secret(self, name: str, value: str) -> None:
        if name != "KNOWN":
            raise NotFound("Secret", name)

    async def remove_secret(self, name: str) -> None:
        await self.put_secret(name, "")


class FakeEntrances:
    """Satisfies ``paijupyter.engine.service.Entrances`` as far as tests need it."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def forward(self, ref: str, task: str | None, port: int | str) -> dict[str, Any]:
        for each in self._service.ports(ref):
            if (each["task"], each["label"]) == (task, port):
                return {"task": task, "port": each["port"], "local": each.get("local", each["port"])}
        raise NotFound("Port", f"{task} {port}")

    async def exec(
        self, ref: str, task: str | None, command: Sequence[str], stdin: bytes
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Say what was asked; a program `nothing` is not there, which shows after the answer has begun."""
        self._service.get(ref)
        yield "stdout", " ".join(command).encode() + stdin
        if command[0] == "nothing":
            raise NotFound("Program", command[0])
        yield "exit", b"3"


class FakeOutputs:
    """Satisfies ``paijupyter.engine.service.Outputs``; it copies nothing and starts nothing."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    def list(self, ref: str) -> list[dict[str, Any]]:
        root = self._root(ref)
        found = sorted(path for path in root.rglob("*") if path.is_file())
        return [{"path": str(path.relative_to(root)), "size": path.stat().st_size} for path in found]

    def file(self, ref: str, path: str) -> Path:
        root = self._root(ref)
        found = (root / path).resolve()
        if root.resolve() not in found.parents or not found.is_file():
            raise NotFound("File", path)
        return found

    async def pull(
        self, ref: str, folder: Path, paths: Sequence[str] | None = None, replace: bool = False
    ) -> AsyncIterator[dict[str, Any]]:
        self._root(ref)
        yield {"folder": str(folder), "brought": len(paths or ()), "unchanged": 0, "size": 0}

    async def tensorboard(self, ref: str, python: str | None = None) -> dict[str, Any]:
        self._root(ref)
        return {"task": "outputs", "label": "tensorboard", "port": 1, "path": "", "python": python}

    def _root(self, ref: str) -> Path:
        return self._service.folder / str(self._service.get(ref)["id"]) / "out"


class FakeWholeLogs:
    """Satisfies ``paijupyter.engine.service.WholeLogs``."""

    async def search(
        self, ref: str, text: str, task: str | None = None, attempt: int | None = None, most: int = 1000
    ) -> dict[str, Any]:
        return {"lines": 0, "hits": [], "more": False}

    async def times(
        self, ref: str, places: Sequence[tuple[str, int]], attempt: int | None = None, most: int = 1000
    ) -> dict[str, Any]:
        found = [{"task": task, "offsets": [0], "times": [1000], "until": offset} for task, offset in places]
        return {"attempt": attempt or 0, "tasks": found}


class FakeService:
    """Satisfies ``paijupyter.engine.service.Service``."""

    def __init__(self, data: Path, runtime: Path) -> None:
        self.folder = data / "fake"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.events = EventBus(kept=100)
        self.packages = LocalStore(data)
        self._seen: dict[str, str] = {}
        self._count = itertools.count(len(list(self.folder.glob("*.json"))))
        self._poll: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if os.environ.get("FAKE_REFUSES"):
            raise PaiJupyterError("index-broken", "The index is broken.", "Rebuild it.", 500)
        self._look()
        self._poll = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
        self.events.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(0.01)
            self._look()

    def _look(self) -> None:
        found = {path.stem: path.read_text() for path in sorted(self.folder.glob("*.json"))}
        for name, text in found.items():
            if self._seen.get(name) != text:
                self.events.publish({"type": "job", "job": json.loads(text)})
        for name in self._seen.keys() - found.keys():
            self.events.publish({"type": "deleted", "id": name})
        self._seen = found

    @property
    def outputs(self) -> FakeOutputs:
        return FakeOutputs(self)

    @property
    def whole_logs(self) -> FakeWholeLogs:
        return FakeWholeLogs()

    @property
    def settings(self) -> FakeSettings:
        return FakeSettings()

    async def give_secrets(self, ref: str, secrets: Mapping[str, Any]) -> dict[str, Any]:
        return self.get(ref)

    async def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"ok": True, "problems": [], "context": request.get("context"), "secretNames": []}

    async def submit(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        text = request["document"]
        if text == "crash":
            raise RuntimeError("nobody foresaw this")
        if text == "bad":
            raise InvalidDocument([Problem("error", "unknown-key", "`x` is not a key.", "/x", 1)])
        for known in self._views():
            if request.get("requestId") and known.get("requestId") == request["requestId"]:
                return known, False
        number = next(self._count)
        view = _view(f"job{number}", text[:40], request)
        self._write(view)
        return view, True

    def list(
        self,
        *,
        state: str | None = None,
        profile: str | None = None,
        folder: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        group: str | None = None,
    ) -> dict[str, Any]:
        self._look()
        views = [view for view in self._views() if folder is None or view["context"].get("folder") == folder]
        return {"jobs": views[:limit], "next": None, "seq": self.events.seq}

    def get(self, ref: str, *, folder: str | None = None, kernel: str | None = None) -> dict[str, Any]:
        for view in self._views():
            if ref in (view["id"], view["name"]):
                return view
        raise NotFound("Job", ref)

    def tasks(
        self, ref: str, *, attempt: int | None = None, offset: int = 0, limit: int = 100
    ) -> dict[str, Any]:
        self.get(ref)
        task = {"key": "worker-0", "role": "worker", "index": 0, "state": "running"}
        return {"tasks": [task][offset : offset + limit], "total": 1}

    def ports(self, ref: str) -> list[dict[str, Any]]:
        view = self.get(ref)
        if view["state"] != "running":
            raise Conflict("not-running", f"Job `{ref}` does not run on this host.")
        return list(view.get("open") or ())

    @property
    def entrances(self) -> FakeEntrances:
        return FakeEntrances(self)

    async def stop(self, ref: str) -> dict[str, Any]:
        view = {**self.get(ref), "state": "stopped"}
        self._write(view)
        return view

    async def retry(self, ref: str, request_id: str | None = None) -> dict[str, Any]:
        return (await self.submit({"document": self.get(ref)["name"], "requestId": request_id}))[0]

    async def clone(
        self, ref: str, changes: Mapping[str, Any], request_id: str | None = None
    ) -> dict[str, Any]:
        self.get(ref)
        return (await self.submit({"document": changes.get("document", ref), "requestId": request_id}))[0]

    async def delete(self, ref: str) -> None:
        view = self.get(ref)
        if view["state"] not in FINAL:
            raise Conflict("not-final", f"Job `{ref}` has not ended.", "Stop it first.")
        (self.folder / f"{view['id']}.json").unlink()

    def export(self, ref: str, what: str) -> str:
        return f"# {what}\nname: {self.get(ref)['name']}\n"

    def log_size(self, ref: str, task: str, attempt: int | None = None) -> int:
        return self._log(ref, task).stat().st_size

    async def logs(
        self, ref: str, task: str, attempt: int | None = None, offset: int = 0, follow: bool = False
    ) -> AsyncIterator[bytes]:
        path = self._log(ref, task)
        with path.open("rb") as stream:
            stream.seek(offset)
            while True:
                ended = not follow or path.with_suffix(".end").exists()
                while chunk := stream.read(65536):
                    yield chunk
                if ended:
                    return
                await asyncio.sleep(0.01)

    async def merged_log(
        self,
        ref: str,
        cursor: str | None = None,
        follow: bool = False,
        tail: int | None = None,
        line: tuple[int, str, int] | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        try:
            at = json.loads(base64.urlsafe_b64decode(cursor)) if cursor else {}
        except ValueError:
            raise UsageProblem("The cursor is not one of ours.") from None
        root = self.folder / self.get(ref)["id"]
        while True:
            ended = True
            for path in sorted(root.glob("*.log")):
                ended = ended and (not follow or path.with_suffix(".end").exists())
                offset = at.get(path.stem, 0)
                data = path.read_bytes()[offset:]
                whole = data[: data.rfind(b"\n") + 1]
                if whole:
                    at[path.stem] = offset + len(whole)
                    frame = {"task": path.stem, "attempt": 0, "offset": offset, "text": whole.decode()}
                    yield {**frame, "cursor": base64.urlsafe_b64encode(json.dumps(at).encode()).decode()}
            if ended:
                return
            await asyncio.sleep(0.01)

    def unfinished(self) -> int:
        return sum(view["state"] not in FINAL for view in self._views())

    def _views(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.json"))]

    def _write(self, view: Mapping[str, Any]) -> None:
        fresh = self.folder / f"{view['id']}.new"
        fresh.write_text(json.dumps(view))
        fresh.replace(self.folder / f"{view['id']}.json")

    def _log(self, ref: str, task: str) -> Path:
        path = self.folder / self.get(ref)["id"] / f"{task}.log"
        if "/" in task or not path.exists():
            raise NotFound("Task", task)
        return path


def _view(ident: str, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": ident,
        "name": name,
        "shortName": name,
        "profile": request.get("profile") or "local",
        "kind": "local",
        "state": "running",
        "requestId": request.get("requestId"),
        "context": request.get("context") or {},
    }


if __name__ == "__main__":
    if "--detach" in sys.argv and os.fork() > 0:
        os._exit(0)
    version = os.environ.get("FAKE_VERSION")
    if version:
        from paijupyter.engine import process
        from paijupyter.engine.handlers import about

        about.__version__ = process.__version__ = version
    from paijupyter.engine.process import run

    sys.exit(run(FakeService))
