"""Logging in from a cell: what is typed and what is kept is never in the notebook, and in no file of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from tests.openpai.server import OpenPai
from tests.resting import holders

PASSWORD = "c4n4ry-password"


@pytest.fixture
def shell(isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A shell as a kernel has one, with its history, whose outputs are kept."""
    monkeypatch.chdir(isolated_home)
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
    made.run_cell("%load_ext paijupyter", store_history=True)
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_login_in_a_cell_leaves_nothing_in_the_notebook(
    openpai: OpenPai,
    ring: Path,
    shell: Any,
    isolated_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    """O3: `%paijob login` asks; neither outputs, variables nor history have password or token."""
    openpai.add_user("carol", PASSWORD)
    monkeypatch.setattr("getpass.getpass", lambda prompt: PASSWORD)
    for line in (
        f"%paijob profile add pai --kind openpai --set url={openpai.url} --set callsPerMinute=100000",
        "said = %paijob login pai --user carol",
        "%paijob login pai --user carol",
        "%paijob login pai --check",
        "said",
    ):
        shell.run_cell(line, store_history=True).raise_error()
    shown = capsys.readouterr().out + repr(shell.display_pub.outputs)
    assert "as carol" in shown and "pai: carol" in shown
    tokens = list(openpai.accounts.tokens)
    assert tokens and any(token in ring.read_text() for token in tokens)
    history = repr(list(shell.history_manager.get_range(raw=True, output=True)))
    for secret in (PASSWORD, *tokens):
        assert secret not in shown + history + repr(shell.user_ns)
        assert not holders(secret, isolated_home)
