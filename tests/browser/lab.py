"""A real JupyterLab with the real engine, and a page of a real browser on it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.documents import document
from tests.home import end_engines, places, until

SCREENSHOTS = Path(__file__).parent / "screenshots"
HERE = Path(sys.executable)
TOKEN = "a-token-for-tests"  # not a secret: the server lives as long as a test
SECONDS = 60.0
PATIENCE = 150_000  # milliseconds for a page to load on a machine that has much else to do

SAVED = """async workspace => {
  const { serviceManager, shell } = window.jupyterapp;
  const open = [...shell.widgets('main')].map(each => each.context?.path).filter(path => path);
  if (!open.length) return true;
  const before = window.paiSaved;
  const saved = (window.paiSaved = JSON.stringify(await serviceManager.workspaces.fetch(workspace)));
  return saved === before && open.every(path => saved.includes(`:${path}"`));
}"""


def browser_path() -> str | None:
    """Return the browser of this machine, if it has one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextlib.contextmanager
def started_browser() -> Iterator[Any]:
    """Start the browser of this machine; a test is skipped where there is none."""
    reason = "playwright is not installed: make test-browser"
    sync_api = pytest.importorskip("playwright.sync_api", reason=reason)
    program = browser_path()
    if program is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        try:
            yield browser
        finally:
            browser.close()


class Server:
    """A JupyterLab with a home of its own; the engine below it ends with the home.

    Args:
        home: a folder with a short path.
        environment: variables of the process; its own are added.
        python: the interpreter whose JupyterLab it is.
    """

    def __init__(self, home: Path, environment: Mapping[str, str], python: Path = HERE) -> None:
        self.home = home
        self._python = python
        path = f"{python.parent}{os.pathsep}{environment['PATH']}"
        self._environment = {**environment, **_settled(home), "PATH": path}
        self.root = home / "work"
        self.root.mkdir()
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}/user/x"
        self.process: Any = None
        _write_settings(home)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it; it may be one that was stopped."""
        with (self.home / "lab.log").open("ab") as log:
            self.process = process = subprocess.Popen(
                [str(self._python), *_arguments(self._port, self.root)],
                cwd=self.root, env=self._environment, stdout=log, stderr=log,
            )  # fmt: skip
        until(lambda: _answers(self.url, process), seconds=150, why="JupyterLab to answer")
        return process

    def stop(self) -> None:
        """Stop it; kernels end with it, the engine does not."""
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            # JupyterLab alone does so too: all is shut down by then, and the interpreter is in its last
            # garbage collection, which takes long on a loaded machine.
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def started_server(page_config: Mapping[str, Any] | None = None) -> Iterator[Server]:
    """Start a JupyterLab with a new home; both are gone afterwards.

    Args:
        page_config: what the page is configured with, such as ``disabledExtensions``.
    """
    with tempfile.TemporaryDirectory(prefix="pjb", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        if page_config:
            file = home / "config" / "labconfig" / "page_config.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(page_config))
        server = Server(home, {**os.environ, **places(home)})
        server.start()
        try:
            yield server
        finally:
            server.stop()
            end_engines(home)


class Lab:
    """A JupyterLab page, its server and its folder."""

    def __init__(self, page: Any, server: Server) -> None:
        self.page = page
        self.server = server
        self.url = server.url
        self.root = server.root

    def start(self) -> None:
        """Start the server; it may be one that was stopped."""
        self.server.start()

    def stop(self) -> None:
        """Stop the server; kernels end with it, the engine does not."""
        self.server.stop()

    def another(self) -> Lab:
        """Return another tab of the same browser."""
        page = self.page.context.new_page()
        return Lab(page, self.server)

    def open(self, path: str = "", ready: str = ".jp-NotebookPanel", workspace: str = "test") -> None:
        """Open a file; wait until its kernel is idle; without one, for the launcher: it takes the focus."""
        tree = f"/tree/{path}" if path else ""
        self.page.goto(f"{self.url}/lab/workspaces/{workspace}{tree}?token={TOKEN}&reset", timeout=PATIENCE)
        self.page.wait_for_selector(ready if path else ".jp-LauncherCard", timeout=PATIENCE)
        if path.endswith(".ipynb"):
            self.wait_idle()

    def wait_idle(self) -> None:
        """Wait until the kernel waits for a cell."""
        self.page.wait_for_function(
            "() => /\\| Idle/.test(document.querySelector('#jp-main-statusbar')?.textContent ?? '')",
            timeout=PATIENCE,
        )

    def reload(self) -> None:
        """Load the page anew; the address names no file, or that one would be opened once more, late."""
        # JupyterLab saves what is open some time after it was opened, each time anew and in place: one that
        # reads it just then finds nothing.
        self.page.wait_for_function(SAVED, arg="test", timeout=PATIENCE, polling=1000)
        self.page.goto(f"{self.url}/lab/workspaces/test", timeout=PATIENCE)
        self.page.wait_for_function("() => window.jupyterapp", timeout=PATIENCE)
        self.page.evaluate("async () => { await window.jupyterapp.restored; }")

    def notebook(self, name: str, *cells: str) -> None:
        """Write a notebook of code cells."""
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(made, self.root / name)

    def run_cells(self, count: int) -> None:
        """Run cells from the selected one on."""
        for _ in range(count):
            self.page.keyboard.press("Shift+Enter")

    def run_until_heard(self, count: int) -> None:
        """Run cells where nothing says that the kernel is there (Notebook 7); before, nothing runs."""
        prompt = self.page.locator(".jp-Notebook .jp-Cell .jp-InputPrompt").first
        for _ in range(10):
            self.select_first_cell()
            self.run_cells(1)
            end = time.monotonic() + 10
            while time.monotonic() < end:
                if re.fullmatch(r"\[\d+\]:", prompt.inner_text()):
                    return self.run_cells(count - 1)
                self.page.wait_for_timeout(50)
        raise AssertionError("the kernel runs no cell")

    def select_first_cell(self) -> None:
        """Select the notebook's first cell."""
        self.page.locator(".jp-Notebook .jp-Cell .jp-InputArea-editor").first.click()
        self.page.keyboard.press("Escape")

    def card(self, place: int = 0) -> Any:
        """Return the card of a place, from the top."""
        return self.page.locator(".jp-PaiCard").nth(place)

    def wait_state(self, card: Any, *states: str, seconds: float = SECONDS) -> str:
        """Wait until a card shows one of the states; return it."""
        selector = ", ".join(f'[data-state="{state}"]' for state in states)
        card.and_(self.page.locator(selector)).wait_for(timeout=seconds * 1000)
        return str(card.get_attribute("data-state"))

    def shoot(self, name: str) -> None:
        """Keep a picture of the page."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=str(SCREENSHOTS / f"{name}.png"))

    def said(self) -> str:
        """Return what has the focus, and the beginning of what can be read: dialogs, menus, the main area."""
        text = self.page.evaluate(
            """() => [`focus: ${document.activeElement?.className}`]
            .concat([...document.querySelectorAll('.jp-Dialog, .lm-Menu, #jp-main-dock-panel')]
            .map(each => each.innerText)).join('\\n')"""
        )
        return str(text)[:2500]

    def theme(self, name: str) -> None:
        """Change the theme."""
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name
        )
        light = "true" if "Light" in name else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def read(self, path: str) -> str:
        """Ask the server."""
        request = urllib.request.Request(f"{self.url}/{path}", headers={"Authorization": f"token {TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.read(), "utf-8")

    def post(self, path: str, body: Any) -> Any:
        """Ask the job server for something."""
        headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
        address = f"{self.url}/paijupyter/v1/{path}"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def submit(self, name: str, command: str, *, instances: int = 1, cpu: float = 0) -> str:
        """Submit a job of a command; return its id."""
        text = document(command, name=name, instances=instances, cpu=cpu, memory=64)
        context = {"folder": "", "python": sys.executable}
        return str(self.post("jobs", {"document": text, "context": context})["id"])

    def get(self, path: str) -> Any:
        """Ask the job server."""
        return json.loads(self.read(f"paijupyter/v1/{path}"))


@contextlib.contextmanager
def page_on(browser: Any, server: Server, name: str = "") -> Iterator[Lab]:
    """Give a page on a server; of one with a name, the last picture is kept."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(SECONDS * 1000)
    errors: list[str] = []

    def watch(page: Any) -> None:
        page.on("pageerror", lambda error: errors.append(str(error)))

    context.on("page", watch)
    lab = Lab(context.new_page(), server)
    try:
        yield lab
        ours = [error for error in errors if "pai" in error.lower()]
        assert not ours, ours
    finally:
        if name:
            lab.shoot(f"last-{name}")
        context.close()


def _arguments(port: int, root: Path) -> list[str]:
    return [
        *("-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"),
        *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--ServerApp.base_url=/user/x/"),
        *(f"--ServerApp.root_dir={root}", "--LabApp.extension_manager=readonly"),
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]


def _settled(home: Path) -> dict[str, str]:
    return {
        "JUPYTER_TOKEN": TOKEN,
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }


def _write_settings(home: Path) -> None:
    folder = home / "settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (folder / "notification.jupyterlab-settings").write_text(json.dumps(quiet))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "JupyterLab ended at once"
    try:
        with urllib.request.urlopen(f"{url}/api", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
