"""From the words of a command line to an exit code."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.cli import terminal
from paijupyter.client import options
from paijupyter.client.parser import HelpAsked
from paijupyter.client.sources import Origin, whole
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

SUCCESS, JOB_FAILED, USAGE, JOB_STOPPED, SERVER, INTERRUPTED, READER_LEFT = 0, 1, 2, 3, 4, 130, 141
_ENDS = {"succeeded": SUCCESS, "failed": JOB_FAILED, "stopped": JOB_STOPPED}


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out a command line and return its exit code.

    Args:
        argv: words after the program's name; by default those of this process.
    """
    terminal.be_lenient()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _answered(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    except KeyboardInterrupt:
        return INTERRUPTED


def _answered(words: list[str]) -> int:
    """Carry out a command line; what goes wrong is one line on stderr."""
    try:
        return _run(words)
    except HelpAsked as asked:
        terminal.say(asked.text.rstrip("\n"))
        return SUCCESS
    except PaiJupyterError as error:
        terminal.complain(str(error))
        return SERVER if error.status >= 500 or error.code == "timeout" else USAGE


def _run(words: list[str]) -> int:
    if not words:
        terminal.complain(options.overview("cli").rstrip("\n"))
        return USAGE
    if words[0] in ("-h", "--help", "help"):
        raise HelpAsked(options.overview("cli"))
    if words[0] in ("-V", "--version"):
        from paijupyter._version import __version__

        terminal.say(__version__)
        return SUCCESS
    parsed = options.parse_verb(words[0], words[1:], "cli")
    if parsed.verb == "plan" or (parsed.verb == "submit" and parsed.plan):
        return _plan(parsed)
    own = {"submit": _submit, "sweep": _sweep, "logs": _logs, "wait": _wait, "exec": _exec}
    return own.get(parsed.verb, _reply)(parsed)


def _client() -> JobsClient:
    from paijupyter.client.client import JobsClient

    return JobsClient.connect()


def _origin() -> Origin:
    # A task runs with the `python` that this command line would find; ours may be in an isolated environment.
    python = shutil.which("python") or shutil.which("python3") or sys.executable
    return Origin("cli", Path.cwd(), os.path.abspath(python))


def _plan(parsed: Namespace) -> int:
    from paijupyter.client import card, submission

    prepared = submission.prepare(parsed, _origin(), None, terminal.package_progress())
    plan = submission.plan(_client(), prepared)
    if parsed.json:
        _json(plan)
    else:
        terminal.say(card.plan_text(card.plan_facts(plan, prepared.left_out)))
    return SUCCESS if plan["ok"] else USAGE


def _submit(parsed: Namespace) -> int:
    from paijupyter.client import card, submission

    prepared = submission.prepare(parsed, _origin(), None, terminal.package_progress())
    client = _client()
    try:
        submitted = submission.submit(client, prepared, getpass.getpass)
    except submission.PlanRefused as refused:
        terminal.complain(card.plan_text(card.plan_facts(refused.plan, refused.left_out)))
        return USAGE
    for problem in submitted.problems:
        terminal.complain(card.problem_text(problem))
    return _submitted(client, submitted.view, parsed, created=submitted.created)


def _sweep(parsed: Namespace) -> int:
    from paijupyter.cli import sweep

    return sweep.sweep(_client(), parsed, _origin())


def _submitted(
    client: JobsClient, view: Mapping[str, Any], parsed: Namespace, *, created: bool = True
) -> int:
    if parsed.wait:
        terminal.complain(f"{view['name']} is submitted to {view.get('profile') or 'local'}")
        return _follow_to_end(client, view, parsed)
    if parsed.json:
        _json(view)
        return SUCCESS
    known = "" if created else "  (unfinished job of before; --again submits another)"
    terminal.say(f"{view['name']}  id {view['id']}{known}")
    terminal.say(f"runs on {view.get('profile') or 'local'}: {_roles(view)}")
    terminal.say(f"next: paijob logs {view['name']} -f")
    return SUCCESS


def _roles(view: Mapping[str, Any]) -> str:
    roles = view.get("roles") or {}
    return ", ".join(f"{name} ×{role.get('instances', 1)}" for name, role in roles.items())


def _follow_to_end(client: JobsClient, view: Mapping[str, Any], parsed: Namespace) -> int:
    """Show the log until the job has ended, then say how it ended, on stderr."""
    from paijupyter.client.follow import prefixed

    out = sys.stderr if parsed.json else sys.stdout
    try:
        for block in prefixed(client.logs(view["id"], follow=True), view):
            terminal.write_log(block, out)
        final = client.wait(view["id"])
    except KeyboardInterrupt:
        return _detached(view)
    if parsed.json:
        _json(final)
    return _ended(final)


def _detached(view: Mapping[str, Any]) -> int:
    terminal.complain(f"`{view['name']}` goes on. Stop it with: paijob stop {view['name']}")
    return INTERRUPTED


def _ended(view: Mapping[str, Any]) -> int:
    from paijupyter.client import card, words

    said = card.outcome(view)
    if view["state"] == "succeeded":
        said = f"succeeded after {words.elapsed(view.get('startedAt'), view.get('endedAt')) or '0 s'}"
    terminal.complain(said)
    if view.get("advice") and view["state"] == "failed":
        terminal.complain(f"→ {view['advice']}")
    return _ENDS[view["state"]]


def _logs(parsed: Namespace) -> int:
    from paijupyter.client import verbs
    from paijupyter.client.follow import prefixed

    client = _client()
    if parsed.group:
        from paijupyter.client import group_verbs

        for block in group_verbs.logs(client, parsed):
            terminal.write_log(block, sys.stdout)
        return SUCCESS
    view = verbs.find(client, parsed, _origin())
    tail = whole(parsed.tail, "--tail")
    for block in prefixed(client.logs(view["id"], parsed.task, follow=parsed.follow, tail=tail), view):
        terminal.write_log(block, sys.stdout)
    return SUCCESS


def _wait(parsed: Namespace) -> int:
    from paijupyter.client import verbs
    from paijupyter.protocol.quantities import parse_duration

    client = _client()
    timeout = parse_duration(parsed.timeout) if parsed.timeout else None
    if parsed.group:
        from paijupyter.cli import sweep

        return sweep.wait(client, client.groups.get(parsed.group), parsed.json, timeout)
    view = verbs.find(client, parsed, _origin())
    try:
        final = client.wait(view["id"], timeout=timeout)
    except KeyboardInterrupt:
        return _detached(view)
    if parsed.json:
        _json(final)
    return _ended(final)


def _exec(parsed: Namespace) -> int:
    """Show what a command in a task prints as it comes; its exit code is ours."""
    from paijupyter.client import entering, verbs

    client = _client()
    view = verbs.find(client, parsed, _origin())
    stdin = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    code = SERVER
    for stream, data in entering.run_command(client, view["id"], parsed.command, parsed.task, stdin):
        if stream == "exit":
            code = int(data)
        else:
            out = sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
            out.write(data)
            out.flush()
    return code


def _reply(parsed: Namespace) -> int:
    from paijupyter.client import verbs

    sets = parsed.verb == "login" or (parsed.verb == "secret" and parsed.action == "set")
    ask = terminal.piped if sets and not sys.stdin.isatty() else getpass.getpass
    reply = verbs.run(_client, parsed, _origin(), ask, terminal.package_progress("sending"))
    if reply.submitted and reply.view is not None:
        for problem in reply.problems:
            terminal.complain(f"· {problem}")
        return _submitted(_client(), reply.view, parsed)
    if getattr(parsed, "group", None) and getattr(parsed, "wait", False):
        from paijupyter.cli import sweep

        return sweep.wait(_client(), reply.data, parsed.json, None)
    if getattr(parsed, "json", False):
        _json(reply.data)
    elif parsed.verb == "export" and not parsed.to:
        sys.stdout.write(reply.text)  # Byte for byte: no line end of ours.
    elif parsed.verb == "list" and reply.data and not (parsed.group or parsed.groups):
        terminal.table(reply.data, reply.text)
    else:
        terminal.say(reply.text)
    return SUCCESS if reply.ok else SERVER


def _json(data: Any) -> None:
    terminal.say(json.dumps(data, indent=2, ensure_ascii=False))
