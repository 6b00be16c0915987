"""A real keyring: gnome-keyring behind a session bus, read by the engine through the Secret Service (O20)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.resting import holders

pytestmark = pytest.mark.services
PAIJOB = str(Path(sys.executable).with_name("paijob"))
VALUE = "canary-of-the-keyring"
# A bus of our own and an unlocked keyring on it, until its input ends; its address is the first line it says.
SESSION = """
printf %s "the password of the login keyring" | gnome-keyring-daemon --unlock --components=secrets >/dev/null
echo "$DBUS_SESSION_BUS_ADDRESS"
exec cat >/dev/null
"""
LOCK = """
import secretstorage
secretstorage.get_default_collection(secretstorage.dbus_init()).lock()
"""


@pytest.fixture(autouse=True)
def notebook_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder: it becomes the package."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def desktop(isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A session with a keyring, as after logging in; returns where the keyring keeps its files."""
    for tool in ("dbus-run-session", "gnome-keyring-daemon"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: make test-services")
    pytest.importorskip("secretstorage", reason="the extra `keyring` is not installed")
    monkeypatch.delenv("PYTHON_KEYRING_BACKEND")
    for name in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME"):
        folder = isolated_home / name.lower()
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(name, str(folder))
    command = ["dbus-run-session", "--", "sh", "-c", SESSION]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    session = subprocess.Popen(command, **pipes)
    assert session.stdin is not None and session.stdout is not None
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", session.stdout.readline().decode().strip())
    yield isolated_home / "xdg_data_home"
    session.stdin.close()
    session.stdout.close()
    session.wait(timeout=20)


def paijob(*words: str, given: str = "") -> tuple[int, str]:
    """Run the command; return its code and all that it said."""
    done = subprocess.run(
        [PAIJOB, *words],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert VALUE not in done.stdout
    return done.returncode, done.stdout


def test_a_secret_in_the_keyring_rests_nowhere_else(desktop: Path, isolated_home: Path) -> None:
    """Stored, listed, used, used again by a retry, removed; no file has it but the keyring's, encrypted."""
    assert paijob("secret", "set", "hf", given=VALUE)[0] == 0
    assert paijob("secret", "list") == (0, "hf\n")
    is_it = f'test "$TOKEN" = {VALUE[:6]}"{VALUE[6:]}"'
    job = ("submit", "--name", "opens", "--secret", "TOKEN=keyring:hf", "--command", is_it)
    code, said = paijob(*job, "--wait")
    assert code == 0, said
    code, said = paijob("retry", "opens", "--wait")
    assert code == 0, said
    assert list(desktop.rglob("*.keyring"))
    assert holders(VALUE, isolated_home) == []
    code, said = paijob("doctor")
    assert "SecretService" in said
    assert paijob("secret", "rm", "hf")[0] == 0
    code, said = paijob(*job)
    assert code != 0 and "is not in the keyring" in said and "paijob secret set hf" in said


def test_a_locked_keyring_says_so_and_what_works(desktop: Path) -> None:
    assert paijob("secret", "set", "hf", given=VALUE)[0] == 0
    subprocess.run([sys.executable, "-c", LOCK], check=True)
    for words in (("submit", "--secret", "TOKEN=keyring:hf", "--command", "true"), ("secret", "list")):
        code, said = paijob(*words)
        assert code != 0 and "locked" in said and "Unlock it" in said, said
    assert "TOKEN=env:VARIABLE" in paijob("submit", "--secret", "TOKEN=keyring:hf", "--command", "true")[1]


@pytest.mark.parametrize("address", ["", "unix:path=/nowhere/bus"])
def test_a_headless_machine_says_so_and_what_works(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Neither desktop nor bus, as on a hub; nothing is kept in a file instead. The other ways do."""
    monkeypatch.delenv("PYTHON_KEYRING_BACKEND")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    code, said = paijob("secret", "set", "hf", given=VALUE)
    assert code != 0 and "Keyring cannot be used" in said and "=env:VARIABLE" in said, said
    code, said = paijob("submit", "--secret", "TOKEN=keyring:hf", "--command", "true")
    assert code != 0 and "no keyring can be used" in said and "TOKEN=env:VARIABLE or TOKEN=ask" in said, said
    monkeypatch.setenv("HERE", VALUE)
    code, said = paijob("submit", "--wait", "--secret", "TOKEN=env:HERE", "--command", 'test -n "$TOKEN"')
    assert code == 0, said
