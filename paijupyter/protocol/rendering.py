"""Commands with their references filled in, as the original server does it.

Tags are Mustache's between ``<%`` and ``%>``, in a single pass. What the original would leave in place or
drop is a problem here, with its line. ``$secrets`` tags stay: they are filled in where the task runs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from paijupyter.errors import InvalidDocument, Problem, Severity
from paijupyter.protocol.document import Document
from paijupyter.protocol.findings import did_you_mean
from paijupyter.protocol.javascript import text_of
from paijupyter.protocol.references import items_of, member, roles_of
from paijupyter.protocol.shapes import is_text
from paijupyter.protocol.values import pointer

# What JavaScript's trim() removes.
_BLANK = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_KINDS = tuple("#^/>{&=!")
_INDEX = re.compile(r"\[(\d+)\]")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag in a text: ``kind`` is "" for a reference, Mustache's sign for others, ``<`` when not closed."""

    start: int
    end: int
    kind: str
    name: str
    raw: str


def tags(text: str) -> Iterator[Tag]:
    """Yield the tags of a text in order; one that is not closed is the last."""
    start = text.find("<%")
    while start >= 0:
        close = text.find("%>", start + 2)
        if close < 0:
            yield Tag(start, len(text), "<", "", text[start : start + 60])
            return
        inner = text[start + 2 : close].strip(_BLANK)
        kind = inner[:1] if inner[:1] in _KINDS else ""
        name = inner[len(kind) :].strip(_BLANK)
        if kind == "{":
            name = name.removesuffix("}").strip(_BLANK)
        yield Tag(start, close + 2, kind, name, text[start : close + 2])
        start = text.find("<%", close + 2)


@dataclass(slots=True)
class Use:
    """A secret in a rendered command: its name, and the text of the line around it."""

    name: str
    before: str
    path: str
    line: int | None


@dataclass(slots=True)
class Rendered:
    """The command text of a role, what is wrong with it, and where it uses secrets."""

    text: str = ""
    problems: list[Problem] = field(default_factory=list)
    secrets: list[Use] = field(default_factory=list)


def render_commands(document: Document) -> dict[str, str]:
    """Return the command text of every role, ``$secrets`` tags left in it as ``<% $secrets.NAME %>``.

    Raises:
        InvalidDocument: if a reference stands for nothing or a tag is not closed, with all of them.
    """
    rendered = {name: render_role(document, name) for _, name, _ in roles_of(document.data)}
    errors = [item for role in rendered.values() for item in role.problems if item.severity == "error"]
    if errors:
        raise InvalidDocument(errors)
    return {name: role.text for name, role in rendered.items()}


def render_role(document: Document, role: str) -> Rendered:
    """Return the command text of one role with everything that is wrong with it."""
    return _Renderer(document, role).render()


def command_items(data: Mapping[str, Any], role: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of every command of a role in the order in which they run.

    Those of the active deployment stand around the role's own.
    """
    chosen = member(data, "defaults", "deployment")
    path, hooks = "", {}
    for index, item in items_of(data.get("deployments")):
        if is_text(chosen) and item.get("name") == chosen:
            path = pointer(f"/deployments/{index}/taskRoles", role)
            hooks = member(item, "taskRoles", role)
    own = pointer("/taskRoles", role)
    yield from _texts(f"{path}/preCommands", member(hooks, "preCommands"))
    yield from _texts(f"{own}/commands", member(data, "taskRoles", role, "commands"))
    yield from _texts(f"{path}/postCommands", member(hooks, "postCommands"))


def _texts(path: str, items: Any) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if is_text(item):
            yield f"{path}/{index}", item


class _Renderer:
    def __init__(self, document: Document, role: str) -> None:
        self.document = document
        self.data = document.data
        self.result = Rendered()
        self._items = list(command_items(self.data, role))
        self._context = self._make_context(role)
        secrets = self.data.get("secrets")
        self._secrets: dict[str, Any] = secrets if isinstance(secrets, dict) else {}
        self._out: list[str] = []
        self._line_so_far = ""
        self._seen: set[Problem] = set()
        self._starts = [0]
        for _, item in self._items:
            self._starts.append(self._starts[-1] + len(item.strip(_BLANK)) + 1)

    def _make_context(self, role: str) -> dict[str, Any]:
        parameters = self.data.get("parameters")
        context: dict[str, Any] = {"$parameters": parameters if isinstance(parameters, dict) else {}}
        for kind in ("script", "output", "data"):
            name = member(self.data, "taskRoles", role, kind)
            for _, item in items_of(self.data.get("prerequisites")):
                if item.get("type") == kind and is_text(name) and item.get("name") == name:
                    context[f"${kind}"] = item
        return context

    def render(self) -> Rendered:
        text = "\n".join(item.strip(_BLANK) for _, item in self._items)
        end = 0
        for tag in tags(text):
            self._emit(text[end : tag.start])
            end = tag.end
            if tag.kind == "<":
                self._problem(tag, "unclosed-reference", "Tag `<%` is never closed.", "End it with `%>`.")
            elif tag.kind == "!":
                end = self._comment(text, end)
            elif tag.kind:
                message = f"Tag `{_shown(tag.raw)}` would be dropped, not filled in."
                hint = "Write `<% name %>`; only this form is filled in."
                self._problem(tag, "reference-form", message, hint)
            else:
                self._reference(tag)
        self._emit(text[end:])
        self.result.text = "".join(self._out).strip(_BLANK)
        return self.result

    def _emit(self, text: str) -> None:
        self._out.append(text)
        _, newline, tail = text.rpartition("\n")
        self._line_so_far = tail if newline else self._line_so_far + tail

    def _comment(self, text: str, end: int) -> int:
        """Drop a comment; with it its line, when there is nothing else on it. Return where to go on."""
        newline = text.find("\n", end)
        if self._line_so_far.strip() or newline < 0 or text[end:newline].strip():
            return end
        return newline + 1

    def _reference(self, tag: Tag) -> None:
        path = _INDEX.sub(r".\1", tag.name)
        if path.split(".")[0] == "$secrets":
            self._secret(tag, path)
            return
        value = _lookup(self._context, path.split("."))
        if value is _MISSING or value is None:
            self._emit(f"<% {path} %>")
            hint = self._hint(path, value)
            self._problem(tag, "unresolved-reference", f"Reference `<% {path} %>` has no value.", hint)
            return
        if isinstance(value, Mapping) or (
            isinstance(value, list) and any(isinstance(i, Mapping) for i in value)
        ):
            message = f"Reference `<% {path} %>` is a mapping and becomes `{text_of(value)[:60]}`."
            self._problem(tag, "mapping-in-command", message, "Refer to one of its members.", "warning")
        self._insert(tag, text_of(value))

    def _insert(self, tag: Tag, text: str) -> None:
        """Put a value into the text. Tags in it are not filled in, except secrets: those come later."""
        end = 0
        for inner in tags(text):
            self._emit(text[end : inner.start])
            end = inner.end
            path = _INDEX.sub(r".\1", inner.name)
            if inner.kind in ("", "&", "{") and path.startswith("$secrets."):
                self._secret(tag, path)
                continue
            self._emit(text[inner.start : inner.end])
            message = f"Value of `<% {tag.name} %>` has a reference in it that stays as it is."
            hint = "References in values are not filled in."
            self._problem(tag, "nested-reference", message, hint, "warning")
        self._emit(text[end:])

    def _secret(self, tag: Tag, path: str) -> None:
        keys = path.split(".")[1:]
        known = _lookup(self._secrets, keys) is not _MISSING if keys else False
        if not known:
            hint = did_you_mean(".".join(keys), self._secrets) or "Add it to `secrets`."
            self._problem(tag, "unknown-secret", f"Secret of `<% {path} %>` is not in the document.", hint)
        item, line = self._place(tag)
        self.result.secrets.append(Use(".".join(keys), self._line_so_far, item, line))
        self._emit(f"<% {path} %>")

    def _hint(self, path: str, value: Any) -> str:
        root, _, rest = path.partition(".")
        if value is None:
            return "It is null; give it a value, or an empty text."
        if root == "$parameters" and rest:
            known = [key for key in self._context["$parameters"] if "." not in key]
            return did_you_mean(rest, known) or f"Add `{rest}` to `parameters`."
        if root in ("$script", "$output", "$data"):
            if root in self._context:
                return did_you_mean(rest, self._context[root])
            return f"The role names no `{root[1:]}`."
        return "References start with $parameters, $secrets, $data, $script or $output."

    def _problem(self, tag: Tag, code: str, message: str, hint: str, severity: Severity = "error") -> None:
        path, line = self._place(tag)
        problem = Problem(severity, code, message, path, line, hint=hint)
        if problem not in self._seen:
            self._seen.add(problem)
            self.result.problems.append(problem)

    def _place(self, tag: Tag) -> tuple[str, int | None]:
        """Path and line of the command item a tag starts in."""
        index = min(bisect_right(self._starts, tag.start), len(self._items)) - 1
        path, item = self._items[index]
        before = item.strip(_BLANK)[: tag.start - self._starts[index]].count(tag.raw)
        return path, self._line(path, tag.raw, before)

    def _line(self, path: str, raw: str, before: int) -> int | None:
        """Line of the tag that has so many equal ones before it in the same item.

        It is looked for in the source of the item, where folding may have broken it over lines.
        """
        place = self.document.place_of(path)
        if place is None:
            return None
        node = place.node.children[0] if place.node.kind == "alias" else place.node
        source = self.document.text[node.start : node.end]
        pattern = r"\s+".join(re.escape(part) for part in raw.split())
        for number, match in enumerate(re.finditer(pattern, source)):
            if number == before:
                return node.line + source.count("\n", 0, match.start())
        return node.line


def _lookup(context: Any, keys: list[str]) -> Any:
    value = context
    for key in keys:
        key = key.strip()
        if isinstance(value, Mapping):
            value = value.get(key, _MISSING)
        elif isinstance(value, list) and key == "length":
            value = len(value)
        elif isinstance(value, list) and key.isdigit() and len(key) < 10:
            value = value[int(key)] if int(key) < len(value) else _MISSING
        else:
            return _MISSING
    return value


def _shown(tag: str) -> str:
    tag = " ".join(tag.split())
    return tag if len(tag) <= 60 else tag[:57] + "..."
