"""What bash receives of a posted document's commands, after the server, Kubernetes and the runtime.

Written apart from ``paijupyter.protocol``, so that tests can hold one to the other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from paijupyter.protocol.javascript import text_of  # how JavaScript writes a value; held to measured values
from tests.openpai.answers import Refused

_TAG = re.compile(r"<%(.*?)%>", re.DOTALL)
_FRAMEWORK = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
Json = Mapping[str, Any]


def on_the_server(data: Json, role: str) -> str:
    """Return the entrypoint as the server stores it: parameters filled in, secrets not.

    Raises:
        Refused: 500 for a tag that is not closed.
    """
    settings = data["taskRoles"][role]
    lines = [*_around(data, role, "preCommands"), *settings["commands"], *_around(data, role, "postCommands")]
    text = "\n".join(line.strip() for line in lines)
    if "<%" in _TAG.sub("", text):
        raise Refused(500, None, f"Unclosed tag at {len(text)}")
    items = {(each["type"], each["name"]): each for each in data.get("prerequisites") or ()}
    context: dict[str, Any] = {"$parameters": data.get("parameters") or {}}
    for kind in ("script", "output", "data"):
        if kind in settings:
            context[f"${kind}"] = items[kind, settings[kind]]
    return _TAG.sub(lambda tag: _filled(tag[1], context), text).strip()


def by_kubernetes(text: str, variables: Mapping[str, str]) -> str:
    """Return a text after Kubernetes has expanded it as the value of a variable."""

    def expanded(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return _FRAMEWORK.sub(expanded, text)


def by_the_runtime(text: str, secrets: Json | None) -> str:
    """Return a text after the runtime has filled in the secrets: HTML-escaped unless the tag says `&`."""
    if secrets is None:
        return text

    def filled(tag: re.Match[str]) -> str:
        inner = tag[1].strip()
        value = _found(inner.lstrip("&").strip(), {"$secrets": secrets})
        shown = "" if value is None else str(value)
        return shown if inner.startswith("&") else html.escape(shown)

    return _TAG.sub(filled, text)


def _around(data: Json, role: str, key: str) -> list[str]:
    chosen = (data.get("defaults") or {}).get("deployment")
    for each in data.get("deployments") or ():
        if each["name"] == chosen:
            return list((each["taskRoles"].get(role) or {}).get(key) or ())
    return []


def _filled(inner: str, context: Json) -> str:
    inner = inner.strip()
    if inner[:1] in "&{!#/^>":
        return ""
    value = _found(inner, context)
    return f"<% {inner.replace('[', '.').replace(']', '')} %>" if value is None else text_of(value)


def _found(path: str, context: Json) -> Any:
    value: Any = context
    for step in re.sub(r"\[(\d+)\]", r".\1", path).split("."):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            return None
    return value
