"""What the original server accepts although it is wrong, and what looks wrong to us."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paijupyter.protocol.findings import Findings, did_you_mean, dotted
from paijupyter.protocol.names import converted
from paijupyter.protocol.parameters import ENVIRONMENT_NAME
from paijupyter.protocol.references import items_of, member, roles_of
from paijupyter.protocol.rendering import command_items, render_role
from paijupyter.protocol.shapes import is_text, is_whole
from paijupyter.protocol.values import pointer

_LONGEST_ROLE = 63
_SMALL_MEMORY = 64
# A secret behind these reaches no argument of a process: an assignment, or a builtin of the shell.
_ASSIGNMENT = re.compile(r"(?:^|[;&|(]|\bexport|\bdeclare -x|\blocal|\benv)\s*[A-Za-z_][A-Za-z0-9_]*=[\"']?$")
_BUILTIN = re.compile(r"(?:^|[;&|(])\s*(?:echo|printf)\b[^;&|]*$")
_SECRET_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HEREDOC = re.compile(r"<<[-~]?\s*[\"']?(\w+)")


def check_traps(found: Findings) -> None:
    """Check roles, counts, commands and extras for what would not do what it says."""
    _role_names(found)
    for path, _, role in roles_of(found.document.data):
        _completion(found, path, role)
        _retries(found, path, role)
        _resources(found, path, role)
    _commands(found)
    _storages(found)
    _deployed_roles(found)
    _secrets(found)


def _role_names(found: Findings) -> None:
    known: dict[str, str] = {}
    for path, name, _ in roles_of(found.document.data):
        safe = converted(name)
        if not safe or len(name) > _LONGEST_ROLE:
            message = f"`{name}` is no name that a cluster takes: 1 to {_LONGEST_ROLE} letters and digits."
            found.trap("role-name", path, message, "Use lower-case letters and digits, a letter first.")
        elif safe in known:
            message = f"`{name}` and `{known[safe]}` are the same role to a cluster, which sees `{safe}`."
            found.trap("role-name", path, message, "Give one of them another name.")
        elif safe != name:
            message = f"`{name}` becomes `{safe}` in the names of some environment variables."
            found.trap("role-name", path, message, f"Name the role `{safe}`.")
        known.setdefault(safe, name)


def _completion(found: Findings, path: str, role: Mapping[str, Any]) -> None:
    failed = member(role, "completion", "minFailedInstances")
    if is_whole(failed) and failed < -1:
        where = f"{path}/completion/minFailedInstances"
        message = f"`{dotted(where)}` is {failed}; it must be -1 (never) or at least 1."
        found.trap("completion-count", where, message)
    instances = role.get("instances")
    for key in ("minSucceededInstances", "minFailedInstances"):
        count = member(role, "completion", key)
        if is_whole(count) and is_whole(instances) and count > instances:
            where = f"{path}/completion/{key}"
            message = f"`{dotted(where)}` is {count} and can never be reached by {instances} instances."
            found.warning("completion-count", where, message, "The job then ends when all tasks have ended.")


def _retries(found: Findings, path: str, role: Mapping[str, Any]) -> None:
    count = role.get("taskRetryCount")
    if not is_whole(count) or count == 0:
        return
    where = f"{path}/taskRetryCount"
    gang = member(found.document.data, "extras", "gangAllocation")
    if count > 0 and gang is not False:
        message = f"`{dotted(where)}` does nothing: a role's tasks are retried only without gang allocation."
        found.warning("retry-count", where, message, "Use `jobRetryCount`, which tries the whole job again.")
    elif count < -2 and gang is False:
        found.trap("retry-count", where, f"`{dotted(where)}` is {count}; it must be at least -2.")
    elif count < 0:
        found.warning("retry-count", where, f"`{dotted(where)}` is negative.", "Use a number of at least 0.")


def _resources(found: Findings, path: str, role: Mapping[str, Any]) -> None:
    resources = role.get("resourcePerInstance")
    if not isinstance(resources, dict):
        return
    path = f"{path}/resourcePerInstance"
    for key, least in (("cpu", 1), ("memoryMB", 1), ("gpu", 0)):
        value, where = resources.get(key), f"{path}/{key}"
        if is_whole(value) and value < 0:
            found.error("resource", where, f"`{dotted(where)}` is negative.", f"Use at least {least}.")
        elif is_whole(value) and value < least:
            found.warning("resource", where, f"`{dotted(where)}` is {value}.", f"Use at least {least}.")
    memory = resources.get("memoryMB")
    if is_whole(memory) and 0 < memory < _SMALL_MEMORY:
        where = f"{path}/memoryMB"
        message = f"`{dotted(where)}` is only {memory} MB."
        found.warning("small-memory", where, message, f"{memory} GiB would be {memory * 1024}.")
    shared = member(role, "extraContainerOptions", "shmMB")
    if is_whole(shared) and is_whole(memory) and 0 < memory < shared:
        where = path.replace("/resourcePerInstance", "/extraContainerOptions/shmMB")
        found.warning("shared-memory", where, f"`{dotted(where)}` is more than the role's memory.")
    ports = resources.get("ports")
    for label, count in ports.items() if isinstance(ports, dict) else ():
        where = pointer(f"{path}/ports", label)
        if is_whole(count) and count < 1:
            message = f"`{dotted(where)}` is {count}; it is how many ports the label gets, not a port number."
            found.add("error" if count < 0 else "warning", "port-count", where, message, "Use at least 1.")
        elif is_whole(count) and count > 100:
            message = f"`{dotted(where)}` asks for {count} ports; it is a count, not a port number."
            found.warning("port-count", where, message, "Use 1 for one port.")
    options = role.get("extraContainerOptions")
    for key in options if isinstance(options, dict) else ():
        if key not in ("shmMB", "infiniband"):
            where = pointer(path.replace("/resourcePerInstance", "/extraContainerOptions"), key)
            hint = did_you_mean(key, ("shmMB", "infiniband"))
            found.warning("unknown-key", where, f"`{dotted(where)}` is not a known option.", hint)


def _commands(found: Findings) -> None:
    document = found.document
    for path, name, role in roles_of(document.data):
        rendered = render_role(document, name)
        found.take(rendered.problems)
        commands = role.get("commands")
        if isinstance(commands, list) and commands and not rendered.text:
            found.warning("no-command", f"{path}/commands", f"`{dotted(path)}.commands` runs nothing.")
        inside_text = _heredoc_lines(rendered.text)
        for use in rendered.secrets:
            if "." in use.name and found.target == "paijupyter":
                message = (
                    f"Secret `{use.name}` is a part of another; only whole secrets can be filled in here."
                )
                found.add("error", "secret-part", use.path, message, "Make it a secret of its own.", use.line)
            if _is_argument(use.before) and use.before not in inside_text:
                message = (
                    f"Secret `{use.name}` stands on a command line, where `ps` on that machine shows it."
                )
                hint = f"Let the program read `${use.name}` or `$PAI_SECRETS_DIR/{use.name}`."
                found.add("warning", "secret-argument", use.path, message, hint, use.line)
        for item, text in command_items(document.data, name):
            _rewritten(found, item, text)


def _is_argument(before: str) -> bool:
    return (
        not _ASSIGNMENT.search(before) and not _BUILTIN.search(before) and not before.lstrip().startswith("#")
    )


def _heredoc_lines(text: str) -> set[str]:
    """Beginnings of lines that are the text of a heredoc: they reach a program's input, not its arguments."""
    inside: set[str] = set()
    end: str | None = None
    for line in text.split("\n"):
        if end is None:
            match = _HEREDOC.search(line)
            end = match[1] if match else None
        elif line.strip() == end:
            end = None
        else:
            inside.add(line.partition("<%")[0])
    return inside


def _rewritten(found: Findings, path: str, text: str) -> None:
    """Kubernetes rewrites ``$$`` and ``$(FC_…)`` in a command of OpenPAI; nothing does on our backends."""
    openpai = found.target == "openpai"
    if "$(FC_" in text:
        message = "Command has `$(FC_…)`, which only OpenPAI fills in."
        hint = "Write `$$(FC_…)` to keep it as it is." if openpai else "Use the PAI_… environment variables."
        found.warning("kubernetes-expansion", path, message, hint)
    if "$$" in text:
        message = "Command has `$$`, which OpenPAI turns into `$`."
        hint = "Write `$$$$` for the shell's own pid there." if openpai else "Here it stays as it is."
        found.add("warning" if openpai else "hint", "kubernetes-expansion", path, message, hint)


def _storages(found: Findings) -> None:
    gang = member(found.document.data, "extras", "gangAllocation")
    if gang is not None and not isinstance(gang, bool):
        message = "`extras.gangAllocation` must be true or false; anything else counts as true."
        found.warning("gang-allocation", "/extras/gangAllocation", message)
    for index, item in items_of(member(found.document.data, "extras", "storages")):
        if "name" not in item:
            message = f"`extras.storages[{index}]` has no `name`, so nothing is mounted."
            found.warning("storage-name", f"/extras/storages/{index}", message)


def _deployed_roles(found: Findings) -> None:
    roles = [name for _, name, _ in roles_of(found.document.data)]
    for index, item in items_of(found.document.data.get("deployments")):
        deployed = item.get("taskRoles")
        for name in deployed if isinstance(deployed, dict) else ():
            if name not in roles:
                where = pointer(f"/deployments/{index}/taskRoles", name)
                message = f"`{dotted(where)}` is no role of this job, so its commands never run."
                found.warning("unknown-role", where, message, did_you_mean(name, roles))


def _secrets(found: Findings) -> None:
    secrets = found.document.data.get("secrets")
    for name, value in secrets.items() if isinstance(secrets, dict) else ():
        where = pointer("/secrets", name)
        if not _SECRET_FILE.fullmatch(name):
            message = f"Secret name `{name}` can be neither a file nor a variable."
            found.error("secret-name", where, message, "Use letters, digits and `_`.")
        elif not ENVIRONMENT_NAME.fullmatch(name):
            message = f"Secret name `{name}` can be no environment variable; the task gets only the file."
            found.warning("secret-name", where, message, "Use letters, digits and `_`, no digit first.")
        if not is_text(value) and not isinstance(value, (dict, list)):
            message = f"`{dotted(where)}` is no text; OpenPAI would write it as Python does."
            found.warning("secret-type", where, message, "Put quotes around it.")
        elif is_text(value) and value:
            message = f"`{dotted(where)}` has a value in the document, where everyone who reads it sees it."
            found.warning(
                "secret-value", where, message, "Leave it empty and give a reference on submission."
            )
