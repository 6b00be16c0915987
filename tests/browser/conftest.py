"""A real JupyterLab with the real engine, driven through a real browser. Screenshots stay to be seen."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SCREENSHOTS = HERE / "screenshots"
TOKEN = "a-token-for-tests"  # not a secret: the server lives as long as a test
SECONDS = 30.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that lies here needs a browser."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(240))


def browser_path() -> str:
    """Return the browser of this machine; skip where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("there is no Chromium on this machine: apt-get install chromium")


@pytest.fixture
def jp_asyncio_loop() -> None:
    """Leave the loop alone: the browser's driver runs one in this thread, and this fixture would close it."""


@pytest.fixture
def jp_server_cleanup() -> None:
    """Nothing to clean up: the server is a process of its own."""


class Lab:
    """A JupyterLab page, its server and its folder."""

    def __init__(self, page: Any, url: str, root: Path, start: Callable[[], Any]) -> None:
        self.page = page
        self.url = url
        self.root = root
        self._start = start
        self.process: Any = None

    def start(self) -> None:
        """Start the server; it may be one that was stopped."""
        self.process = self._start()

    def stop(self) -> None:
        """Stop the server; kernels end with it, the engine does not."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            # Now and then it waits for ever for its kernel's end, after all extensions have stopped.
            self.process.kill()
            self.process.wait()

    def open(self, path: str = "", ready: str = ".jp-NotebookPanel") -> None:
        """Open a file; wait until its kernel is idle."""
        tree = f"/tree/{path}" if path else ""
        self.page.goto(f"{self.url}/lab/workspaces/test{tree}?token={TOKEN}", timeout=90_000)
        self.page.wait_for_selector(ready if path else ".jp-SideBar", timeout=60_000)
        if path.endswith(".ipynb"):
            self.wait_idle()

    def wait_idle(self) -> None:
        """Wait until the kernel waits for a cell."""
        self.page.wait_for_function(
            "() => /\\| Idle/.test(document.querySelector('#jp-main-statusbar')?.textContent ?? '')",
            timeout=60_000,
        )

    def reload(self) -> None:
        """Load the page anew; the address names no file, or that one would be opened once more, late."""
        self.page.goto(f"{self.url}/lab/workspaces/test", timeout=90_000)
        self.page.wait_for_function("() => window.jupyterapp", timeout=60_000)
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

    def get(self, path: str) -> Any:
        """Ask the job server."""
        return json.loads(self.read(f"paijupyter/v1/{path}"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start one browser for all tests."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = browser_path()
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def lab(
    browser: Any, isolated_home: Path, until: Callable[..., object], request: pytest.FixtureRequest
) -> Iterator[Lab]:
    """Start a JupyterLab of its own, below a base URL, and a page on it."""
    root = isolated_home / "work"
    root.mkdir()
    _write_settings(isolated_home)
    port = _free_port()
    url = f"http://127.0.0.1:{port}/user/x"

    def start() -> subprocess.Popen[bytes]:
        with (isolated_home / "lab.log").open("ab") as log:
            process = subprocess.Popen(
                _command(port, root), cwd=root, env=_environment(isolated_home), stdout=log, stderr=log
            )
        until(lambda: _answers(url, process), seconds=150, why="JupyterLab to answer")
        return process

    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    lab = Lab(page, url, root, start)
    lab.start()
    try:
        yield lab
        ours = [error for error in errors if "pai" in error.lower()]
        assert not ours, ours
    except BaseException:
        raise
    finally:
        lab.shoot(f"last-{request.node.name}")
        context.close()
        lab.stop()


def _command(port: int, root: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"),
        *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--ServerApp.base_url=/user/x/"),
        *(f"--ServerApp.root_dir={root}", "--LabApp.extension_manager=readonly"),
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]


def _environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "JUPYTER_TOKEN": TOKEN,
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
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
