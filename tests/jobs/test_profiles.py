"""Profiles: administrators' first, the user's later, field by field."""

from __future__ import annotations

import pytest

from paijupyter.errors import PaiJupyterError
from paijupyter.jobs.profiles import ProfileFiles


@pytest.fixture
def config(isolated_home, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(isolated_home / "admin"))

    def write(path, text):
        target = isolated_home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    return write


ADMIN = "admin/paijupyter/profiles.d"
USER = "config/paijupyter/profiles.yaml"


def test_local_always_exists():
    (only,) = ProfileFiles().read().to_json()
    assert only == {
        "name": "local",
        "kind": "local",
        "default": True,
        "usable": True,
        "reason": "",
        "settings": {},
        "sources": {"kind": {"by": "built-in", "file": ""}},
    }


def test_fields_of_later_files_replace_those_of_earlier_ones(config):
    config(f"{ADMIN}/10-site.yaml", "default: team\nprofiles: {team: {kind: local, cpu: 8, memoryMB: 1000}}")
    config(f"{ADMIN}/20-more.yaml", "profiles: {team: {cpu: 16}}")
    config(USER, "profiles:\n  team: {memoryMB: 2000}\n  local: {cpu: 2}\n  mine:")
    profiles = ProfileFiles().read()
    assert profiles.default == "team"
    assert profiles.get(None).settings == {"cpu": 16, "memoryMB": 2000}
    assert (profiles.get("local").kind, profiles.get("local").settings) == ("local", {"cpu": 2})
    assert [each["name"] for each in profiles.to_json()] == ["team", "local", "mine"]


def test_a_kind_that_is_not_installed_is_listed_with_the_reason(config):
    config(USER, "profiles: {big: {kind: slurm, partition: gpu}}")
    big = next(each for each in ProfileFiles().read().to_json() if each["name"] == "big")
    assert big["usable"] is False and "`slurm`" in big["reason"] and big["settings"] == {"partition": "gpu"}


@pytest.mark.parametrize("text", ["[", "- a", "profiles: 3", "profiles: {x: 4}", "default: [a]", "\0"])
def test_a_file_that_cannot_be_read_is_named_and_left_out(config, text):
    config(f"{ADMIN}/a.yaml", "profiles: {team: {kind: local}}")
    broken = config(USER, text)
    profiles = ProfileFiles().read()
    assert set(profiles.by_name) == {"local", "team"}
    assert str(broken) in profiles.problems[0]
    with pytest.raises(PaiJupyterError) as caught:
        profiles.get("mine")
    assert caught.value.status == 422 and str(broken) in caught.value.hint


def test_a_default_that_does_not_exist_falls_back_to_local(config):
    config(USER, "default: nowhere")
    profiles = ProfileFiles().read()
    assert profiles.get(None).name == "local" and "nowhere" in profiles.problems[0]


def test_a_changed_file_is_read_again(config):
    files = ProfileFiles()
    config(USER, "profiles: {a: {kind: local}}")
    assert "a" in files.read().by_name
    assert files.read() is files.read()
    config(USER, "profiles: {bc: {kind: local}}")
    assert set(files.read().by_name) == {"local", "bc"}


@pytest.mark.asyncio
async def test_the_service_lists_and_uses_them(bench, config):
    config(USER, "default: two\nprofiles: {two: {kind: local}, big: {kind: slurm}}")
    assert [(each["name"], each["usable"]) for each in bench.service.settings.profiles()["profiles"]] == [
        ("two", True),
        ("big", False),
        ("local", True),
    ]
    assert (await bench.submit())["profile"] == "two"
    plan = await bench.service.plan(bench.request(profile="big"))
    assert [each["code"] for each in plan["problems"]] == ["unknown-backend"]


@pytest.mark.asyncio
async def test_new_settings_make_a_new_backend(bench, config, kit):
    await bench.submit()
    config(USER, "profiles: {local: {cpu: 3}}")
    await bench.submit()
    first, second = kit.FakeBackend.made
    assert first.closed and second.profile.settings == {"cpu": 3}
