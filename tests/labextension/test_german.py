"""The German catalogue: each text of the front end is in it, with the same places for values."""

from __future__ import annotations

import json
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from paijupyter.protocol.form import form_rows

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "labextension" / "src"
CATALOGUE = ROOT / "paijupyter" / "locale" / "de_DE" / "LC_MESSAGES" / "paijupyter.json"
# The texts of the table of fields come from the server and are looked up as they are.
LOOKED_UP = {"formtexts.ts"}
_CALL = re.compile(r"(?<=\.)(?:__|_n)\(")
_LITERAL = re.compile(
    r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\$]|\\.)*)`)\s*""", re.DOTALL
)
_PLACE = re.compile(r"%\d+")


def _argument(source: str, at: int) -> tuple[str | None, int]:
    """Return the text that begins at a place, in one literal or several that are added, and its end."""
    parts: list[str] = []
    while found := _LITERAL.match(source, at):
        raw = next(group for group in found.groups() if group is not None)
        parts.append(re.sub(r"\\(.)", r"\1", raw))
        at = found.end()
        if source[at] != "+":
            return "".join(parts), at
        at += 1
    return None, at


def calls(source: str) -> tuple[dict[str, str | None], list[str]]:
    """Return the texts of translator calls, each with its plural, and the calls whose text is none."""
    texts: dict[str, str | None] = {}
    unread: list[str] = []
    for call in _CALL.finditer(source):
        one, at = _argument(source, call.end())
        if one is None:
            unread.append(source[call.start() : call.start() + 60])
        elif source.startswith("_n(", call.start()):
            many, _ = _argument(source, at + 1)
            texts[one] = many
            if many is None:
                unread.append(source[call.start() : call.start() + 60])
        else:
            texts.setdefault(one, None)
    return texts, unread


def _of_sources() -> dict[str, str | None]:
    texts: dict[str, str | None] = {}
    for path in sorted(SOURCES.glob("*.ts")):
        found, unread = calls(path.read_text())
        assert not unread or path.name in LOOKED_UP, f"{path.name}: no literal text: {unread}"
        texts.update(found)
    return texts


def _of_tables() -> dict[str, str | None]:
    return dict.fromkeys({row[key] for row in form_rows() for key in ("label", "help", "unit")} - {""})


@pytest.fixture(scope="module")
def texts() -> dict[str, str | None]:
    """Return all texts that may be shown, each with its plural."""
    return {**_of_tables(), **_of_sources()}


@pytest.fixture(scope="module")
def catalogue() -> dict[str, list[str]]:
    """Return the catalogue without its head."""
    return {key: value for key, value in json.loads(CATALOGUE.read_text()).items() if key}


def test_reading_of_calls():
    source = """
      trans.__('a %1', x); trans.__("it's" + ' b'); trans._n('%1 job', '%1 jobs', 3);
      trans.__(name); this._trans.__(
        'over\\'s lines'
      ); other__('no');"""
    found, unread = calls(source)
    assert found == {"a %1": None, "it's b": None, "%1 job": "%1 jobs", "over's lines": None}
    assert [each[:8] for each in unread] == ["__(name)"]


def test_all_texts_are_there(texts, catalogue):
    missing = sorted(set(texts) - set(catalogue))
    assert not missing, json.dumps(missing, ensure_ascii=False, indent=1)


def test_nothing_is_left_over(texts, catalogue):
    assert sorted(set(catalogue) - set(texts)) == []


def test_values_have_their_places(texts, catalogue):
    wrong = {}
    for text, many in texts.items():
        said = catalogue.get(text, [])
        if len(said) != (1 if many is None else 2) or not all(said):
            wrong[text] = said
        for original, german in zip((text, many), said, strict=False):
            if sorted(_PLACE.findall(original or "")) != sorted(_PLACE.findall(german)):
                wrong[text] = said
    assert wrong == {}


def test_jupyterlab_finds_it():
    (found,) = [each for each in entry_points(group="jupyterlab.locale") if each.name == "paijupyter"]
    module = found.load()
    assert Path(module.__file__).parent / "locale" / "de_DE" == CATALOGUE.parents[1]
    head = json.loads(CATALOGUE.read_text())[""]
    assert head["domain"] == "paijupyter" and head["language"] == "de-DE"


def test_what_is_shown_goes_through_the_translator():
    """Texts between tags, and those that are read aloud or shown in a hint, are never literals."""
    literal = re.compile(r"""(?:title|placeholder|alt|'aria-label'):\s*['"][^'"]*[a-z]{2}""")
    # A literal as a child of h(): after the attributes, alone on its line or after `}, `.
    child = re.compile(r"""h\('[a-z0-9]+', \{[^{}]*\}, ['"]([^'"]*[A-Za-z]{2}[^'"]*)['"]""")
    found = [
        f"{path.name}: {each.group(0)}"
        for path in sorted(SOURCES.glob("*.ts"))
        for pattern in (literal, child)
        for each in pattern.finditer(path.read_text())
    ]
    assert found == []
