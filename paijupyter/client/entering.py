"""Going into running tasks: ``exec`` and ``forward``, for all surfaces."""

from __future__ import annotations

import base64
import getpass
import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paijupyter.client.streams import objects
from paijupyter.client.transport import quoted
from paijupyter.client.verbs import Reply
from paijupyter.errors import UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

_LARGEST_INPUT = 16 * 1024 * 1024


def run_command(
    client: JobsClient, ref: str, command: Sequence[str], task: str | None = None, stdin: bytes = b""
) -> Iterator[tuple[str, bytes]]:
    """Run a command in a task: yield ``stdout`` and ``stderr`` pieces, last ``exit`` and its code.

    Raises:
        UsageProblem: no command, or too much input.
        PaiJupyterError: the job does not run, or its place cannot do that.
    """
    if command[:1] == ["--"]:  # as kubectl and docker are used
        command = command[1:]
    if not command:
        raise UsageProblem("Argument `command` is missing.", "Write it after the job: exec last nvidia-smi")
    if len(stdin) > _LARGEST_INPUT:
        raise UsageProblem(f"Input is larger than {_LARGEST_INPUT} bytes.", "Put it into the package.")
    body: dict[str, Any] = {"command": list(command)}
    if task:
        body["task"] = task
    if stdin:
        body["stdin"] = base64.b64encode(stdin).decode("ascii")
    path, content = quoted("jobs", ref, "exec"), json.dumps(body).encode()
    with client.open("POST", path, body=content, headers={"Content-Type": "application/json"}) as answer:
        for frame in objects(answer):
            if "exit" in frame:
                yield "exit", str(frame["exit"]).encode()
            else:
                yield frame["stream"], base64.b64decode(frame["data"])


def forward(client: JobsClient, ref: str, port: str, task: str | None = None) -> Mapping[str, Any]:
    """Have the engine's host listen for a port of a task: ``{task, port, local}``."""
    body: dict[str, Any] = {"port": int(port) if port.isdigit() else port}
    if task:
        body["task"] = task
    return dict(client.ask("POST", quoted("jobs", ref, "forward"), body=body))


def adopt(client: JobsClient, options: Namespace) -> Reply:
    """Take over this user's unfinished jobs that another host submitted."""
    body = {"user": getpass.getuser(), **({"profile": options.profile} if options.profile else {})}
    found = dict(client.ask("POST", "/v1/adopt", body=body))
    names = [str(view["name"]) for view in found["jobs"]]
    text = f"taken over from {found['profile']}: {', '.join(names)}" if names else "no job to take over"
    return Reply(text, found)


def carry_out(client: JobsClient, options: Namespace, ref: str) -> Reply:
    """Carry out either verb and answer once; a terminal shows the output of ``exec`` as it comes."""
    if options.verb == "forward":
        found = forward(client, ref, options.port, options.task)
        text = f"127.0.0.1:{found['local']} is port {found['port']} of {found['task']} until the job ends"
        return Reply(text, found)
    said: dict[str, bytes] = {"stdout": b"", "stderr": b"", "exit": b""}
    for stream, data in run_command(client, ref, options.command, options.task):
        said[stream] += data
    text = (said["stdout"] + said["stderr"]).decode("utf-8", "replace").rstrip("\n")
    code = int(said["exit"] or 1)
    return Reply(
        text if code == 0 else f"{text}\n(exit code {code})".lstrip("\n"), {"exit": code}, ok=code == 0
    )
