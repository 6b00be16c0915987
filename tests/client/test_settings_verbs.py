"""`paijob profile`, `paijob secret` and `paijob doctor` against a real engine (O3, O20)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from paijupyter.client import verbs
from paijupyter.client.client import JobsClient
from paijupyter.client.doctor import examine
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.errors import PaiJupyterError, UsageProblem

VALUE = "c4n4ry-of-the-keyring"


def run(*words: str, ask: Any = None, surface: Any = "cli") -> verbs.Reply:
    return verbs.run(
        JobsClient.connect, parse_verb(words[0], words[1:], surface), Origin(surface, Path.cwd()), ask
    )


def test_profiles_from_adding_to_removing():
    assert "is added" in run("profile", "add", "half", "--set", "cpu=2").text
    assert run("profile", "show", "half").data["settings"] == {"cpu": 2}
    assert "cpu      2" in run("profile", "show", "half").text
    run("profile", "edit", "half", "--set", "memoryMB=512", "--unset", "cpu")
    assert run("profile", "show", "half").data["settings"] == {"memoryMB": 512}
    run("profile", "default", "half")
    listed = run("profile")
    assert [each["name"] for each in listed.data] == ["half", "local"]
    assert listed.text.splitlines()[1].split() == ["half", "local", "you", "default:", "memoryMB", "512"]
    tested = run("profile", "test")
    assert tested.ok and tested.text.startswith("✓ half answers\n") and "memoryMB: 512 of 512" in tested.text
    assert run("profile", "rm", "half").text == "Profile `half` is removed."


def test_mistakes_in_profiles_are_one_sentence():
    with pytest.raises(UsageProblem, match="Nothing is to be changed"):
        run("profile", "edit", "local")
    with pytest.raises(UsageProblem, match="Argument `name` is missing"):
        run("profile", "rm")
    with pytest.raises(UsageProblem, match="`--unset` with edit"):
        run("profile", "add", "x", "--unset", "cpu")
    with pytest.raises(UsageProblem, match="needs KEY=VALUE"):
        run("profile", "edit", "local", "--set", "cpu")
    with pytest.raises(PaiJupyterError, match="Profile `x` does not exist"):
        run("profile", "test", "x")


def test_a_secret_is_stored_listed_used_and_removed(ring):
    """O20, D3: the value goes in by asking, and comes out again in a task only; `rm` takes it away."""
    stored = run("secret", "set", "HF", ask=lambda prompt: VALUE)
    assert stored.text == "Secret `HF` is stored. Use it with: --secret NAME=keyring:HF"
    assert json.loads(ring.read_text())["paijupyter/HF"] == VALUE
    listed = run("secret")
    assert (listed.text, listed.data) == ("HF", ["HF"])
    client = JobsClient.connect()
    with pytest.raises(PaiJupyterError) as refused:
        client.ask("GET", "/v1/secrets/HF")
    assert refused.value.status == 405 and VALUE not in str(refused.value)
    assert run("secret", "rm", "HF").text == "Secret `HF` is removed from the keyring."
    assert run("secret", "list").text == "No secrets are stored."
    with pytest.raises(PaiJupyterError, match="Secret `HF` does not exist"):
        run("secret", "rm", "HF")


def test_an_entry_that_others_removed_is_not_listed(ring):
    run("secret", "set", "HF", ask=lambda prompt: VALUE)
    kept = json.loads(ring.read_text())
    del kept["paijupyter/HF"]
    ring.write_text(json.dumps(kept))
    assert run("secret", "list").data == []


@pytest.mark.parametrize(
    "words",
    [
        ("set", "HF", VALUE),
        ("set", f"HF={VALUE}"),
        (VALUE,),
        ("set", "HF", "--value", VALUE),
        ("set", f"/{VALUE}!"),
    ],
)
def test_a_value_as_an_argument_is_refused_and_not_repeated(ring, words):
    with pytest.raises(PaiJupyterError) as refused:
        run("secret", *words, ask=lambda prompt: "x")
    assert VALUE not in repr(refused.value.to_problem_json())
    assert not ring.exists()


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 70_000])
def test_a_value_that_cannot_be_stored_is_refused(ring, value):
    with pytest.raises(PaiJupyterError, match="nothing was stored"):
        run("secret", "set", "HF", ask=lambda prompt: value)


def test_a_setting_may_be_a_mapping(isolated_home):
    """O3: storages and registries are mappings; nobody has to look for the file to write one."""
    run("profile", "add", "here", "--set", 'storages={team: {path: "/mnt/team", readOnly: true}}')
    text = (isolated_home / "config" / "paijupyter" / "profiles.yaml").read_text()
    assert yaml.safe_load(text)["profiles"]["here"]["storages"] == {
        "team": {"path": "/mnt/team", "readOnly": True}
    }
    with pytest.raises(UsageProblem, match="Value of `storages` cannot be read"):
        run("profile", "edit", "here", "--set", "storages={team: ")


def test_no_keyring_says_so_before_it_asks_and_says_what_works():
    """A headless hub: nothing is stored in a file instead (architecture, decision 8)."""
    for words in (("list",), ("set", "HF"), ("rm", "HF")):
        with pytest.raises(PaiJupyterError) as refused:
            run("secret", *words, ask=lambda prompt: pytest.fail("asked in vain"))
        assert refused.value.code == "keyring-unusable"
        assert "env:VARIABLE" in refused.value.hint and "ask" in refused.value.hint


def test_a_keyring_of_plain_text_is_none(monkeypatch, ring):
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_ring.PlaintextKeyring")
    with pytest.raises(PaiJupyterError, match="Keyring cannot be used"):
        run("secret", "list")


def test_a_keyring_that_fails_is_one_sentence_without_its_words(monkeypatch, ring):
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_ring.Failing")
    monkeypatch.setenv("TEST_RING_SAYS", VALUE)
    with pytest.raises(PaiJupyterError, match="RuntimeError") as refused:
        run("secret", "list")
    assert VALUE not in repr(refused.value.to_problem_json())


def test_doctor_looks_at_everything_and_says_what_mends_it(isolated_home, ring, monkeypatch):
    here = str(Path(sys.executable).parent)  # as in an active environment: a machine may have no `python`
    monkeypatch.setenv("PATH", os.pathsep.join([here, os.environ["PATH"]]))
    run("secret", "set", "HF", ask=lambda prompt: VALUE)
    checks = {check.name: check for check in examine(JobsClient.connect)}
    expected = {"runtime folder", "socket path", "bash", "interpreter", "Jupyter extension", "engine"}
    expected |= {"data folder", "disk", "clock", "keyring", "profiles", "profile local"}
    assert set(checks) == expected
    assert checks["keyring"].message == "ring of the test"
    broken = [name for name, check in checks.items() if not check.ok and name != "disk"]
    assert not broken, checks
    (isolated_home / "data").chmod(0o755)
    profiles = isolated_home / "config" / "paijupyter" / "profiles.yaml"
    profiles.parent.mkdir(parents=True)
    profiles.write_text("default: nowhere\nprofiles: {bad: {kind: local, cpu: many}}\n")
    reply = run("doctor")
    assert not reply.ok
    found = {each["name"]: each for each in reply.data}
    assert found["data folder"]["fix"] == f"chmod 700 {isolated_home / 'data'}"
    assert "`nowhere`" in found["profiles"]["message"] and found["profiles"]["fix"]
    assert not found["profile bad"]["ok"] and found["profile bad"]["fix"]
    assert f"  → chmod 700 {isolated_home / 'data'}" in reply.text


def test_doctor_without_keyring_is_well_all_the_same(monkeypatch):
    reply = run("doctor")
    keyring = next(each for each in reply.data if each["name"] == "keyring")
    assert not keyring["ok"] and not keyring["needed"] and "⚠ keyring" in reply.text
    assert "env:VARIABLE" in keyring["fix"]


def test_doctor_names_a_socket_path_that_is_too_long_and_a_broken_interpreter(
    monkeypatch, isolated_home, tmp_path
):
    monkeypatch.setenv("PAIJUPYTER_RUNTIME_DIR", str(isolated_home / ("r" * 100)))
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no module >&2\nexit 1\n")
    python.chmod(0o755)
    checks = {check.name: check for check in examine(JobsClient.connect, str(python))}
    assert not checks["socket path"].ok and "PAIJUPYTER_RUNTIME_DIR" in checks["socket path"].fix
    assert not checks["engine"].ok and checks["engine"].message
    assert checks["data folder"].ok and "made when first needed" in checks["data folder"].message
    (isolated_home / "data").write_text("in the way")
    checks = {check.name: check for check in examine(JobsClient.connect, str(python))}
    assert not checks["data folder"].ok and checks["data folder"].fix, "it may be why there is no engine"
    assert checks["interpreter"].message == f"`{python}` is broken: no module"
    assert "environment" in checks["interpreter"].fix


def test_doctor_sees_whether_jupyter_would_load_the_extension(monkeypatch, isolated_home):
    folder = isolated_home / "first"
    folder.mkdir()
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(folder))
    for enabled in (False, True):
        text = json.dumps({"ServerApp": {"jpserver_extensions": {"paijupyter": enabled}}})
        (folder / "jupyter_server_config.json").write_text(text)
        (check,) = [each for each in examine(JobsClient.connect) if each.name == "Jupyter extension"]
        assert check.ok is enabled and check.fix == (
            "" if enabled else "jupyter server extension enable paijupyter"
        )
