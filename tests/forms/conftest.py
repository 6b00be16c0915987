"""A form in this process, with a real engine; widgets without a front end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client import options
from paijupyter.client.client import JobsClient
from paijupyter.client.job import Job
from paijupyter.client.sources import Origin

ipywidgets = pytest.importorskip("ipywidgets", reason="the extra `forms` is not installed")
pytest.importorskip("anywidget", reason="the extra `forms` is not installed")


@dataclass
class Opened:
    """A form and what it has submitted."""

    form: Any
    client: JobsClient
    jobs: list[Job] = field(default_factory=list)
    told: Callable[[str], None] = print

    def control(self, path: str) -> Any:
        """Return the control of a field."""
        cards = (each for card in self.form.roles.values() for each in card.controls)
        return next(each for each in (*self.form.controls.values(), *cards) if each.row.path == path)

    def type(self, path: str, text: str) -> None:
        """Type into a field, and wait until the plan is made."""
        self.control(path).input.value = text
        self.form.settle()

    @property
    def reason(self) -> str:
        """Why it cannot be submitted."""
        return str(self.form.submitting.reason.value)


@pytest.fixture(scope="module")
def engine_home() -> Iterator[Path]:
    """Give a module one engine: it starts once."""
    home = Path(tempfile.mkdtemp(prefix="pjf"))
    yield home
    for facts in home.glob("run/*/engine.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            os.kill(int(json.loads(facts.read_text())["pid"]), signal.SIGTERM)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def open_form(
    isolated_home: Path, engine_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Opened]]:
    """Return what opens a form with options, in a folder with a script."""
    monkeypatch.setenv("PAIJUPYTER_DATA_DIR", str(engine_home / "data"))
    monkeypatch.setenv("PAIJUPYTER_RUNTIME_DIR", str(engine_home / "run"))
    from paijupyter.forms import Form
    from paijupyter.forms.draft import Draft

    folder = isolated_home / "project"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text("print('trained', flush=True)\n")

    def open_it(*words: str, cell: str | None = None) -> Opened:
        client = JobsClient.connect()
        parsed: Namespace = options.parse_verb("form", words, "magic")
        draft = Draft(client, parsed, Origin("magic", folder), cell)
        opened = Opened(None, client)

        def submitted(found: Any, told: Callable[[str], None]) -> Job:
            opened.told = told
            opened.jobs.append(Job(found.view, client, found.problems))
            return opened.jobs[-1]

        opened.form = Form(draft, [str(each["name"]) for each in client.profiles()], submitted)
        return opened

    yield open_it
