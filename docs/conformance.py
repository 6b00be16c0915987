"""The tables of conformance documents: what each shows, and where a backend does something else, and why."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

_PLACES = {
    "local": "local",
    "kubernetes": "Kubernetes",
    "openpai": "OpenPAI",
    "stand-in": "the stand-in for an OpenPAI server",
}


def tables(folder: Path) -> str:
    """Return a table for each theme, as Markdown."""
    parts = []
    for path in sorted(folder.glob("*/expected.yaml")):
        parts += [
            f"## {path.parent.name}",
            "",
            "| document | what it shows | where it differs |",
            "|---|---|---|",
        ]
        for name, expected in sorted(yaml.safe_load(path.read_text("utf-8")).items()):
            parts.append(f"| `{name}` | {_shows(path.parent / f'{name}.yaml')} | {_differs(expected)} |")
        parts.append("")
    return "\n".join(parts)


def _shows(document: Path) -> str:
    lines = document.read_text("utf-8").splitlines()
    comment = takewhile(lambda line: line.startswith("#"), lines)
    return " ".join(line.lstrip("# ") for line in comment).replace("|", "\\|").replace("<", "&lt;")


def _differs(expected: dict[str, Any]) -> str:
    said = []
    for place, there in (expected.get("differs") or {}).items():
        words = f"not run: {there['not']}" if "not" in there else there["because"]
        said.append(f"{_PLACES[place]}: {words}")
    return "; ".join(said) or "nowhere"
