"""A field's value as the text in its widget, and back. Pure: neither widgets nor a document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.forms.rows import Row

Pair = tuple[str, str]
_STORAGES = "/storages"
_KINDS = {"/com.microsoft.pai.runtimeplugin": "plugin", "/prerequisites": "name"}  # and what names an item
_LISTS = (_STORAGES, "/data", *_KINDS)
_EXACT_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def shown(row: Row, value: Any) -> str:
    """Return the text that stands for a value; "" where nothing is set.

    Args:
        row: the field.
        value: its value in the document.
    """
    if value is None:
        return ""
    if row.widget == "lines":
        return value if isinstance(value, str) else "\n".join(map(_plain, value))
    if isinstance(value, bool) or not isinstance(value, int):
        return _plain(value)
    if row.widget == "memory":
        return f"{value // 1024}Gi" if value and value % 1024 == 0 else str(value)
    if row.widget == "duration":
        return _duration(value)
    return str(value)


def entered(row: Row, text: str) -> Any:
    """Return the value that was typed; None where nothing stands there.

    Args:
        row: the field.
        text: what stands in its widget.

    Raises:
        UsageProblem: it is no such value.
    """
    from paijupyter.protocol.quantities import parse_duration, parse_memory

    if row.widget == "lines":
        return _lines(row, text)
    cleaned = text.strip()
    if not cleaned:
        return None
    if row.widget == "memory":
        return parse_memory(cleaned)
    if row.widget == "duration":
        return parse_duration(cleaned)
    if row.widget == "number":
        return _number(row, cleaned)
    return cleaned


def pairs(path: str, value: Any) -> list[Pair]:
    """Return the rows of a table: name and text of each entry.

    Args:
        path: JSON Pointer of the table, whose end says of which kind it is.
        value: a mapping of names, or a list of objects with a name; anything else has no rows.
    """
    if isinstance(value, Mapping):
        return [(str(name), _plain(item)) for name, item in value.items()]
    if not isinstance(value, list):
        return []
    if (key := _named_by(path)) is not None:
        return [(str(item[key]), _rest(item, key)) for item in value if _is_shown(item, key)]
    said = _mount if path.endswith(_STORAGES) else _source
    return [(str(item["name"]), said(item)) for item in value if isinstance(item, Mapping) and "name" in item]


def from_pairs(path: str, rows: Sequence[Pair], before: Any = None) -> Any:
    """Return the value of a table's rows; None where it has none. Rows without a name are still being typed.

    Args:
        path: JSON Pointer of the table.
        rows: name and text of each.
        before: its value until now; what was not touched stays as it was written there.

    Raises:
        UsageProblem: a name or a value is wrong, or a name comes twice.
    """
    named = [(name.strip(), text) for name, text in rows if name.strip()]
    names = [name for name, _ in named]
    key = _named_by(path)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and key is None:
        raise UsageProblem(f"Name `{twice}` is given twice.", "Give each name once.")
    # What this table does not show stays, before the rest.
    hidden = [item for item in before or () if not _is_shown(item, key)] if key else []
    if not named:
        return hidden or None
    items = before.values() if isinstance(before, Mapping) else before or ()
    items = [item for item in items if _is_shown(item, key)] if key else items
    kept = dict(zip(pairs(path, before), items, strict=False))
    read = _reader(path)
    found = [kept[pair] if pair in kept else read(*pair) for pair in named]
    return [*hidden, *found] if path.endswith(_LISTS) else dict(zip(names, found, strict=True))


def _reader(path: str) -> Callable[[str, str], Any]:
    if (key := _named_by(path)) is not None:
        return lambda name, text: _of_kind(key, name, text)
    for end, read in ((_STORAGES, _storage), ("/data", _data_item), ("/ports", _count), ("/env", _variable)):
        if path.endswith(end):
            return read
    return _parameter


def _named_by(path: str) -> str | None:
    """Return the member that names an item, where a table shows items of several kinds; else None."""
    return next((key for end, key in _KINDS.items() if path.endswith(end)), None)


def _is_shown(item: Any, key: str) -> bool:
    """Say whether an item has a row: images have fields of their own."""
    return isinstance(item, Mapping) and key in item and item.get("type") != "dockerimage"


def _rest(item: Mapping[str, Any], key: str) -> str:
    return _plain({name: value for name, value in item.items() if name != key})


def _of_kind(key: str, name: str, text: str) -> dict[str, Any]:
    try:
        rest = json.loads(text or "{}")
    except ValueError:
        rest = None
    if not isinstance(rest, dict):
        raise UsageProblem(
            f"The rest of `{name}` must be an object as JSON.", 'For example {"parameters": {}}.'
        )
    return {key: name, **rest}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _duration(seconds: int) -> str:
    size, unit = next((each for each in _EXACT_UNITS if seconds and seconds % each[0] == 0), (1, "s"))
    return f"{seconds // size}{unit}"


def _lines(row: Row, text: str) -> Any:
    if not text.strip():
        return None
    if not row.is_list:
        return text
    lines = text.strip("\n").split("\n")
    if not row.pattern.endswith("/commands"):
        return [line.strip() for line in lines if line.strip()]
    # The protocol trims each command; a here-document or an indented block must stay whole.
    return lines if all(line and line == line.strip() for line in lines) else ["\n".join(lines)]


def _number(row: Row, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageProblem(f"{row.label} must be a whole number, not `{text[:40]}`.") from None


def _parameter(name: str, text: str) -> Any:
    from paijupyter.protocol.parameters import parse_parameter

    return parse_parameter(f"{name}={text}")[1]


def _variable(name: str, text: str) -> str:
    from paijupyter.protocol.parameters import parse_env

    return parse_env(f"{name}={text}")[1]


def _count(name: str, text: str) -> int:
    text = text.strip()
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageProblem(f"Port `{name}` needs how many: a whole number from 1 on.")
    return int(text)


def _storage(name: str, mount: str) -> dict[str, str]:
    mount = mount.strip()
    if mount and not mount.startswith("/"):
        raise UsageProblem(
            f"Storage `{name}` needs an absolute path, or none.", "Leave it empty for the usual one."
        )
    return {"name": name, "mountPath": mount} if mount else {"name": name}


def _data_item(name: str, text: str) -> dict[str, Any]:
    from paijupyter.protocol.data import parse_data

    return parse_data(f"{name}={text.strip()}").to_json()


def _mount(item: Mapping[str, Any]) -> str:
    return str(item.get("mountPath") or "")


def _source(item: Mapping[str, Any]) -> str:
    more = [f"{key}={item[key]}" for key in ("path", "sha256", "ref", "secret") if item.get(key)]
    return ",".join([str(item.get("uri") or ""), *more])
