"""What a run of the browser tests has left to be looked at: one page with all pictures, times and figures."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Mapping
from pathlib import Path

STYLE = """
body { font-family: sans-serif; margin: 1.5em; }
nav { columns: 4 16em; margin-bottom: 2em; }
figure { margin: 0 0 2.5em; }
img { max-width: 100%; border: 1px solid #999; }
td { padding-right: 2em; }
"""


def write_index(folder: Path, times: Mapping[str, float]) -> Path | None:
    """Write ``index.html`` over the pictures of a folder; None if there are none.

    Pictures that a test takes to be looked at come first, then the last picture of each test.

    Args:
        folder: where the pictures are.
        times: seconds that each flow of this run took, by its name.
    """
    pictures = sorted(folder.glob("*.png"), key=lambda each: (each.name.startswith("last-"), each.name))
    if not pictures:
        return None
    links = "\n".join(f'<div><a href="#{_safe(each.stem)}">{_safe(each.stem)}</a></div>' for each in pictures)
    figures = "\n".join(map(_figure, pictures))
    page = folder / "index.html"
    page.write_text(
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Browser tests</title>\n'
        f"<style>{STYLE}</style>\n<h1>What the browser tests saw</h1>\n{_measured(folder)}"
        f"<nav>\n{links}\n</nav>\n{figures}\n<h2>How long each took</h2>\n{_timed(times)}</html>\n"
    )
    return page


def _figure(picture: Path) -> str:
    taken = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(picture.stat().st_mtime))
    name = _safe(picture.stem)
    image = f'<img src="{_safe(picture.name)}" alt="{name}" loading="lazy">'
    return f'<figure id="{name}"><figcaption><b>{name}</b>, {taken}</figcaption>{image}</figure>'


def _timed(times: Mapping[str, float]) -> str:
    rows = [f"<tr><td>{_safe(name)}</td><td>{seconds:.1f} s</td></tr>" for name, seconds in times.items()]
    total = f"<tr><td>all</td><td>{sum(times.values()):.1f} s</td></tr>"
    return f"<table>{''.join(rows)}{total}</table>\n"


def _measured(folder: Path) -> str:
    file = folder / "figures.json"
    if not file.exists():
        return ""
    rows = [
        f"<tr><td>{_safe(what)}</td><td>{_safe(name)}</td><td>{_safe(str(value))}</td></tr>"
        for what, values in sorted(json.loads(file.read_text()).items())
        for name, value in values.items()
    ]
    return f"<table>{''.join(rows)}</table>\n"


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
