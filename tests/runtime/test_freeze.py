"""The lock of a task's environment: what is installed, and what it costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from paijupyter.backends.boot import boot_zipapp
from paijupyter.runtime import freeze


def test_it_is_what_is_installed(isolated_home: Path, tmp_path: Path) -> None:
    """Names and versions as the interpreter's own metadata have them."""
    target = tmp_path / "lock.json"
    archive = boot_zipapp(isolated_home / "data")
    subprocess.run([sys.executable, str(archive), "freeze", str(target)], check=True, cwd=tmp_path)
    found = json.loads(target.read_bytes())
    # Not of this process: other tests have put packages of their own on its path.
    ask = "from importlib.metadata import distributions; import json; "
    ask += "print(json.dumps([(each.name, each.version) for each in distributions()]))"
    asked = subprocess.run([sys.executable, "-I", "-c", ask], check=True, capture_output=True, cwd=tmp_path)
    installed: dict[str, str] = {}
    for name, version in json.loads(asked.stdout):
        installed.setdefault(canonicalize_name(name), version)
    told = {name: Version(version.partition(" @ ")[0]) for name, version in found["packages"].items()}
    assert told == {name: Version(version) for name, version in installed.items()}
    assert found["python"] == "{}.{}.{}".format(*sys.version_info[:3])
    assert found["packages"]["paijupyter"].partition(" @ ")[2].startswith("file://")


def test_what_did_not_come_from_an_index_says_from_where_without_credentials(tmp_path: Path) -> None:
    folder = tmp_path / "tool-1.2.dist-info"
    folder.mkdir()
    told = {"url": "https://me:token@host/tool.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    (folder / "direct_url.json").write_text(json.dumps(told))
    (tmp_path / "Other_Tool-2.0-py3.11.egg-info").mkdir()
    (tmp_path / "no_version.egg-info").mkdir()
    assert freeze.lock([str(tmp_path), str(tmp_path / "absent")])["packages"] == {
        "other-tool": "2.0",
        "tool": "1.2 @ https://host/tool.git@abc",
    }


def test_an_interpreter_is_asked_once_until_something_is_installed(tmp_path: Path) -> None:
    place, kept, target = tmp_path / "site", tmp_path / "kept", tmp_path / "lock.json"
    place.mkdir()
    asked: list[list[str]] = []

    def run(argv: list[str]) -> int:
        asked.append(argv)
        Path(argv[-1]).write_text(json.dumps(freeze.lock([str(place)])))
        return 0

    def packages() -> dict[str, str]:
        target.unlink(missing_ok=True)
        freeze.provide("/usr/bin/python3", str(target), str(kept), run)
        return dict(json.loads(target.read_bytes())["packages"])

    assert (packages(), packages(), len(asked)) == ({}, {}, 1)
    (place / "new-1.dist-info").mkdir()
    os.utime(place, (1, 1))
    assert (packages(), len(asked)) == ({"new": "1"}, 2)
