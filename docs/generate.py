"""Make the tables of options, fields and routes that reference pages include, from what the programs use."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterable, Mapping
from pathlib import Path

import conformance
import flows
import requirements

from paijupyter.backends.kubernetes.settings import SETTINGS
from paijupyter.backends.openpai.settings import SETTINGS as OPENPAI_SETTINGS
from paijupyter.client.options import VERBS, field_help
from paijupyter.client.parser import Option
from paijupyter.engine.routes import ROUTES
from paijupyter.protocol.fields import FIELDS, Field

_KINDS = {"openpai": "on OpenPAI", "kubernetes": "on Kubernetes"}


def write_reference(folder: Path) -> None:
    """Write the tables into a folder; an unchanged page keeps its time, so nothing is built again for it."""
    folder.mkdir(exist_ok=True)
    tests = Path(__file__).parents[1] / "tests"
    pages = {
        "options.md": _options(),
        "rest.md": _routes(),
        "document.md": _document(),
        "requirements.md": requirements.table(tests),
        "conformance.md": conformance.tables(tests / "conformance"),
        "flows.md": flows.page(tests),
        "kubernetes.md": _settings(SETTINGS),
        "openpai.md": _settings(OPENPAI_SETTINGS),
        "recorded.md": _recorded(tests / "openpai" / "exchanges.py"),
    }
    for name, text in pages.items():
        page = folder / name
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def _recorded(tables: Path) -> str:
    """Return the counts of recorded exchanges, from the tables that the tests use."""
    return str(runpy.run_path(str(tables))["table"]())


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([_row(*head), _row(*("---",) * len(head)), *(_row(*row) for row in rows)])


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _settings(settings: Mapping[str, str]) -> str:
    return _table(("setting", "what it is"), (_setting(*each) for each in settings.items())) + "\n"


def _setting(name: str, words: str) -> tuple[str, str]:
    return _code(name), _plain(words)


def _options() -> str:
    parts = []
    for verb in VERBS:
        names = ", ".join(f"`{alias}`" for alias in verb.aliases)
        parts.append(f"## {verb.name}\n\n{verb.summary}" + (f" Also: {names}." if names else ""))
        if verb.options:
            helps = field_help()
            rows = [
                _option(option, helps.get(option.name, "") if option.field else "") for option in verb.options
            ]
            parts.append(_table(("option", "what it does", "default"), rows))
    return "\n\n".join(parts) + "\n"


def _option(option: Option, field: str) -> tuple[str, str, str]:
    value = option.metavar if option.metavar and option.kind != "flag" else ""
    names = ", ".join(_code(f"{name} {value}".strip()) for name in (option.name, option.short) if name)
    notes = ["may be given several times"] if option.kind == "list" else []
    if len(option.surfaces) == 1:
        notes.append("in a notebook only" if option.surfaces == ("magic",) else "in a terminal only")
    if option.choices:
        notes.append("one of " + ", ".join(f"`{choice}`" for choice in option.choices))
    text = (field or option.help).rstrip(".") + (f" ({'; '.join(notes)})" if notes else "")
    return names, _plain(text), "required" if option.required else _plain(option.default)


def _plain(text: str) -> str:
    """Return prose in which Markdown reads references and globs as they are."""
    references = re.sub(r"`?(<%.*?%>)`?", r"`\1`", text)
    return "".join(
        part if part.startswith("`") else part.replace("*", "\\*").replace("<", "&lt;")
        for part in re.split(r"(`[^`]*`)", references)
    )


def _routes() -> str:
    rows = [
        (
            f"`{route.method}`",
            _code(route.path.removeprefix("/v1")),
            route.summary,
            _codes(route.answers, route.problems),
        )
        for route in ROUTES
    ]
    return _table(("method", "path", "what it does", "answers"), rows) + "\n"


def _codes(answers: Iterable[int], problems: Iterable[int]) -> str:
    return ", ".join(str(code) for code in (*answers, *problems))


def _document() -> str:
    return _table(("field", "what it is", "default"), (_field(field) for field in FIELDS)) + "\n"


def _field(field: Field) -> tuple[str, str, str]:
    unit = f" ({field.unit})" if field.unit else ""
    flag = f" Option `{field.flag}`." if field.flag else ""
    only = f" Only {' and '.join(_KINDS[each] for each in field.profiles)}." if field.profiles else ""
    default = "required" if field.required else ("" if field.default is None else str(field.default))
    return _code(field.path), _plain(f"{field.help}{unit}{flag}{only}"), _plain(default)
