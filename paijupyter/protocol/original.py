"""What matters only to the original server: the shape of the text, registry secrets, plugins, HiveD."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.protocol.findings import Findings, did_you_mean, dotted
from paijupyter.protocol.references import items_of, member, roles_of
from paijupyter.protocol.rendering import tags
from paijupyter.protocol.shapes import is_text
from paijupyter.protocol.values import pointer

LARGEST_BODY = 102_400
_PLUGINS = "com.microsoft.pai.runtimeplugin"
_PLUGIN_CONTEXTS = ("$parameters", "$secrets", "$script", "$output", "$data")
_PRIORITIES = ("prod", "test", "oppo")
_ESCAPED = re.compile(r"[&<>\"']")


def check_original(found: Findings) -> None:
    """Check what only OpenPAI reads; on our backends most of it is no error."""
    _registry_secrets(found)
    _plugins(found)
    _hived(found)
    if found.target == "openpai":
        _text(found)
        _virtual_cluster(found)
        _escaped_secrets(found)


def _text(found: Findings) -> None:
    size = len(found.document.text.encode("utf-8", "replace"))
    if size > LARGEST_BODY:
        message = f"Job document has {size} bytes; OpenPAI takes at most {LARGEST_BODY}."
        found.error("too-large", "", message, "Code and data belong into the trainer package.")
    tops = {path: place for path, place in found.document.places.items() if path.count("/") == 1}
    secrets = tops.get("/secrets")
    if secrets is None or secrets.key is None:
        return
    if secrets.key.style or secrets.key.column != 1:
        message = "`secrets` is quoted or indented, so OpenPAI does not mask it: all users could read it."
        found.error(
            "unmasked-secrets", "/secrets", message, "Write the key at the line's start, without quotes."
        )
        return
    for path, place in tops.items():
        if place.key is not None and place.key.style and place.key.start > secrets.key.start:
            message = f"`{path[1:]}` is a quoted key behind `secrets`; OpenPAI's mask would swallow it."
            found.error("masked-key", path, message, "Remove the quotes of the top-level keys.")


def _virtual_cluster(found: Findings) -> None:
    cluster = member(found.document.data, "defaults", "virtualCluster")
    if cluster is not None and (not is_text(cluster) or not cluster):
        message = "`defaults.virtualCluster` must be the name of a virtual cluster."
        found.error("virtual-cluster", "/defaults/virtualCluster", message)


def _registry_secrets(found: Findings) -> None:
    secrets = found.document.data.get("secrets")
    known = secrets if isinstance(secrets, dict) else {}
    for index, item in items_of(found.document.data.get("prerequisites")):
        auth = item.get("auth")
        for key, value in auth.items() if isinstance(auth, dict) else ():
            where = pointer(f"/prerequisites/{index}/auth", key)
            for tag in tags(value) if is_text(value) else ():
                name = tag.name.removeprefix("$secrets.")
                if tag.kind or name == tag.name or name.split(".")[0] not in known:
                    message = f"`{dotted(where)}` refers to `{tag.name}`, which is no secret of the document."
                    found.error("unknown-secret", where, message, did_you_mean(name, known))


def _plugins(found: Findings) -> None:
    extras = found.document.data.get("extras")
    if not isinstance(extras, dict) or _PLUGINS not in extras:
        return
    path = pointer("/extras", _PLUGINS)
    if not isinstance(extras[_PLUGINS], list):
        found.trap("plugins", path, f"`extras.{_PLUGINS}` must be a list of plugins.")
    roles = [name for _, name, _ in roles_of(found.document.data)]
    for index, item in items_of(extras[_PLUGINS]):
        where = f"{path}/{index}"
        if not is_text(item.get("plugin")):
            found.trap("plugins", where, f"`{_PLUGINS}[{index}]` names no `plugin`.")
        wanted = item.get("taskroles")
        for name in wanted if isinstance(wanted, list) else ():
            if name not in roles:
                message = f"`{_PLUGINS}[{index}].taskroles` names no role of this job: `{name}`."
                found.warning("unknown-role", f"{where}/taskroles", message, did_you_mean(str(name), roles))
        for place, text in _texts(f"{where}/parameters", item.get("parameters")):
            _plugin_references(found, place, text)


def _plugin_references(found: Findings, path: str, text: str) -> None:
    data = found.document.data
    for tag in tags(text):
        root, *keys = tag.name.split(".")
        if tag.kind or root not in _PLUGIN_CONTEXTS:
            continue
        if root in ("$parameters", "$secrets"):
            value = member(data, root[1:], *keys)
            if value is None:
                message = f"Reference `<% {tag.name} %>` of a plugin has no value; the task would not start."
                found.trap("unresolved-reference", path, message)
            elif not is_text(value) and root == "$parameters":
                message = f"Reference `<% {tag.name} %>` of a plugin is no text; the task would not start."
                found.trap("plugin-number", path, message, "Put quotes around the parameter's value.")


def _hived(found: Findings) -> None:
    hived = member(found.document.data, "extras", "hivedScheduler")
    if not isinstance(hived, dict):
        return
    path = "/extras/hivedScheduler"
    priority = hived.get("jobPriorityClass")
    if priority is not None and priority not in _PRIORITIES:
        message = f"`extras.hivedScheduler.jobPriorityClass` must be one of {', '.join(_PRIORITIES)}."
        found.trap("priority", f"{path}/jobPriorityClass", message)
    roles = [name for _, name, _ in roles_of(found.document.data)]
    wanted = hived.get("taskRoles")
    groups: dict[str, Any] = {}
    for name, role in wanted.items() if isinstance(wanted, dict) else ():
        where = pointer(f"{path}/taskRoles", name)
        if name not in roles:
            message = f"`{dotted(where)}` is no role of this job."
            found.trap("unknown-role", where, message, did_you_mean(name, roles))
        if not isinstance(role, dict):
            continue
        kind = (role.get("skuType"), role.get("pinnedCellId"))
        if None not in kind:
            message = f"`{dotted(where)}` has both `skuType` and `pinnedCellId`; only one is allowed."
            found.trap("hived", where, message)
        group = role.get("affinityGroupName")
        if is_text(group) and groups.setdefault(group, kind) != kind:
            message = (
                f"`{dotted(where)}` is in the affinity group `{group}` with another SKU than the group's."
            )
            found.trap("hived", where, message)


def _escaped_secrets(found: Findings) -> None:
    secrets = found.document.data.get("secrets")
    for name, value in secrets.items() if isinstance(secrets, dict) else ():
        if is_text(value) and _ESCAPED.search(value):
            message = f"Secret `{name}` has one of & < > \" ' in it, which OpenPAI turns into HTML."
            hint = f"Refer to it by a parameter with the value <%& $secrets.{name} %>."
            found.warning("escaped-secret", pointer("/secrets", name), message, hint)


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if is_text(value):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(pointer(path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(pointer(path, index), item)
