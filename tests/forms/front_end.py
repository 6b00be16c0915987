"""A front end without a browser: it has the models of widgets, and says what a person does by messages."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.manager import KernelManager

SECONDS = 120.0


class FrontEnd:
    """A kernel, and the widgets as its front end knows them."""

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self.manager, self.client = manager, client
        self.messages: list[dict[str, Any]] = []
        self.models: dict[str, dict[str, Any]] = {}
        self.version: tuple[int, ...] = ()

    def execute(self, code: str) -> str:
        """Send a cell; return the id of its request."""
        return str(self.client.execute(code))

    def run(self, code: str) -> str:
        """Send a cell and wait for its end."""
        sent = self.execute(code)
        self.until(lambda: self.is_done(sent), f"the end of {code[:40]!r}")
        return sent

    def is_done(self, request: str) -> bool:
        """Say whether a request was carried out."""
        return any(
            each["msg_type"] == "status"
            and each["content"]["execution_state"] == "idle"
            and each["parent_header"].get("msg_id") == request
            for each in self.messages
        )

    def of(self, request: str, *kinds: str) -> list[dict[str, Any]]:
        """Return the contents of messages of some kinds that belong to a request."""
        mine = (each for each in self.messages if each["parent_header"].get("msg_id") == request)
        return [each["content"] for each in mine if each["msg_type"] in kinds]

    def until(self, condition: Callable[[], Any], why: str) -> Any:
        """Read messages until a condition holds."""
        end = time.monotonic() + SECONDS
        while not (found := condition()):
            try:
                self._take(self.client.get_iopub_msg(timeout=max(0.01, end - time.monotonic())))
            except queue.Empty:
                errors = [
                    each["content"] for each in self.messages if each["msg_type"] in ("error", "stream")
                ]
                raise AssertionError(f"waited {SECONDS:g} s for {why}: {str(errors)[:2000]}") from None
        return found

    def _take(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        content = message["content"]
        if message["msg_type"] == "comm_open":
            self.models[content["comm_id"]] = dict(content["data"].get("state") or {})
        elif message["msg_type"] == "comm_msg" and content["comm_id"] in self.models:
            self.models[content["comm_id"]].update(content["data"].get("state") or {})

    def model(self, **traits: Any) -> str:
        """Return the latest widget that has these values, waiting for it."""

        def found() -> str:
            fit = (key for key, state in self.models.items() if traits.items() <= state.items())
            return next(iter(reversed(list(fit))), "")

        return str(self.until(found, f"a widget with {traits}"))

    def set(self, key: str, value: Any, subshell: str | None = None) -> None:
        """Set the value of a widget, as typing does."""
        self._say(key, {"method": "update", "state": {"value": value}, "buffer_paths": []}, subshell)

    def send(self, key: str, content: Any, subshell: str | None = None) -> None:
        """Send a message of a widget's own."""
        self._say(key, {"method": "custom", "content": content}, subshell)

    def click(self, key: str, subshell: str | None = None) -> None:
        """Press a button."""
        self.send(key, {"event": "click"}, subshell)

    def _say(self, key: str, data: Any, subshell: str | None) -> None:
        message = self.client.session.msg("comm_msg", {"comm_id": key, "data": data})
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)

    def subshell(self) -> str | None:
        """Make a subshell, where the kernel has them; JupyterLab sends messages of widgets by one."""
        request = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(request)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            reply = self.client.get_control_msg(timeout=SECONDS)
            if reply["parent_header"].get("msg_id") == request["header"]["msg_id"]:
                return reply["content"].get("subshell_id")
        raise AssertionError("the kernel answers no request for a subshell")


@contextmanager
def front_end(folder: str, environment: dict[str, str]) -> Iterator[FrontEnd]:
    """Start a kernel with a front end."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=folder, env=environment)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        yield FrontEnd(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
