"""Editing the user's file of profiles (O3, P22): comments stay, administrators' files are never touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from paijupyter import paths
from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs import JobService
from paijupyter.jobs.profiles import load, user_file

USER = """\
# my places
default: mine   # the usual one

profiles:
  # half of the machine
  mine: {kind: local, cpu: 4}  # flow stays flow
  team:
    cpu: 16   # more than the administrator says
"""
ADMIN = "profiles: {team: {kind: local, cpu: 8, memoryMB: 1000}}\n"


@pytest.fixture
def admin(isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(isolated_home / "admin"))
    file = isolated_home / "admin" / "paijupyter" / "profiles.d" / "site.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(ADMIN)
    return file


@pytest.fixture
def user(admin: Path) -> Path:
    file = user_file()
    file.parent.mkdir(parents=True)
    file.write_text(USER)
    return file


@pytest.fixture
def settings() -> Any:
    return JobService(paths.data_dir(), paths.runtime_dir()).settings


@pytest.mark.asyncio
async def test_an_edit_keeps_every_comment_and_the_mode(settings, user):
    user.chmod(0o640)
    await settings.edit_profile("mine", {"cpu": 2, "gpu": 0}, [])
    assert user.read_text() == USER.replace("cpu: 4}", "cpu: 2, gpu: 0}")
    assert stat.S_IMODE(user.stat().st_mode) == 0o640
    await settings.edit_profile("team", {}, ["cpu"])
    assert "# half of the machine" in user.read_text() and "cpu: 16" not in user.read_text()
    assert settings.profile("team")["settings"] == {"cpu": 8, "memoryMB": 1000}


@pytest.mark.asyncio
async def test_every_field_says_who_has_said_it(settings, user, admin):
    found = settings.profile("team")
    assert found["sources"] == {
        "kind": {"by": "administrator", "file": str(admin)},
        "cpu": {"by": "user", "file": str(user)},
        "memoryMB": {"by": "administrator", "file": str(admin)},
    }
    listed = settings.profiles()
    assert listed["file"] == str(user) and listed["adminFiles"] == [str(admin)]
    assert (listed["default"], listed["problems"]) == ("mine", [])


@pytest.mark.asyncio
async def test_an_administrators_profile_is_changed_in_the_users_file_only(settings, user, admin):
    found = await settings.edit_profile("team", {"memoryMB": 500}, [])
    assert found["settings"] == {"cpu": 16, "memoryMB": 500}
    assert admin.read_text() == ADMIN
    with pytest.raises(PaiJupyterError, match="`kind` of `team` comes from your administrator"):
        await settings.edit_profile("team", {}, ["kind"])
    left = await settings.remove_profile("team")
    assert left["settings"] == {"cpu": 8, "memoryMB": 1000}
    with pytest.raises(Conflict, match="comes from your administrator"):
        await settings.remove_profile("team")
    assert admin.read_text() == ADMIN


@pytest.mark.asyncio
async def test_the_first_profile_makes_the_file_and_the_last_leaves_it_sound(settings, admin):
    await settings.add_profile("half", {"kind": "local", "cpu": 2})
    assert stat.S_IMODE(user_file().stat().st_mode) == 0o600
    assert yaml.safe_load(user_file().read_text()) == {"profiles": {"half": {"kind": "local", "cpu": 2}}}
    await settings.choose_profile("half")
    assert settings.profiles()["default"] == "half"
    assert await settings.remove_profile("half") is None
    assert settings.profiles()["default"] == "local" and settings.profiles()["problems"] == []
    assert user_file().read_text().startswith("# Profiles")
    await settings.add_profile("other", {"kind": "local"})
    assert "  other:\n    kind:" in user_file().read_text()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "settings_of_it", "said"),
    [
        ("a/b", {"kind": "local"}, "name `a/b` is not possible"),
        ("x", {}, "needs a kind"),
        ("x", {"kind": "slurm"}, "kind `slurm`, which no installed package has"),
        ("x", {"kind": "local", "cpus": 2}, "`cpus` is not one of the kind `local`. `cpu` is near"),
        ("x", {"kind": "local", "cpu": -1}, "cpu"),
        ("mine", {"kind": "local"}, "`mine` exists already"),
    ],
)
async def test_what_would_be_no_valid_profile_is_not_written(settings, user, name, settings_of_it, said):
    with pytest.raises(PaiJupyterError) as refused:
        await settings.add_profile(name, settings_of_it)
    assert said in str(refused.value) and 400 <= refused.value.status < 500
    assert user.read_text() == USER


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "changes",
    [
        {"token": "hunter2"},
        {"api": {"apiKey": "hunter2"}},
        {"url": "https://me:hunter2@host/"},
        {"PASSWORD": 12345678},
        {"list": [{"secret": "hunter2"}]},
    ],
)
async def test_a_credential_is_refused_and_not_repeated(settings, user, changes):
    with pytest.raises(PaiJupyterError) as refused:
        await settings.edit_profile("mine", changes, [])
    assert "looks like a credential" in refused.value.message and "keyring:NAME" in refused.value.hint
    assert "hunter2" not in repr(refused.value.to_problem_json())
    assert user.read_text() == USER


def test_a_credential_in_a_file_is_left_out_and_a_reference_taken(user):
    user.write_text("profiles: {pai: {kind: openpai, token: hunter2, password: 'keyring:pai', tokenFile: x}}")
    found = load([user])
    assert found.get("pai").settings == {"password": "keyring:pai", "tokenFile": "x"}
    assert "`token`" in found.problems[0] and "hunter2" not in repr(found)


@pytest.mark.asyncio
async def test_a_file_that_is_no_yaml_is_not_overwritten(settings, user):
    user.write_text("profiles: [")
    with pytest.raises(PaiJupyterError, match=r"File `.*profiles.yaml` cannot be edited"):
        await settings.add_profile("half", {"kind": "local"})
    assert user.read_text() == "profiles: ["


@pytest.mark.asyncio
async def test_a_link_to_a_file_elsewhere_stays_a_link(settings, user, isolated_home):
    real = isolated_home / "dotfiles.yaml"
    user.rename(real)
    user.symlink_to(real)
    await settings.edit_profile("mine", {"cpu": 1}, [])
    assert user.is_symlink() and "cpu: 1}" in real.read_text()


@pytest.mark.asyncio
async def test_a_profile_that_a_job_uses_stays(bench, admin):
    await bench.service.settings.edit_profile("local", {"cpu": 2}, [])
    view = await bench.submit()
    with pytest.raises(Conflict, match=f"in use by `{view['name']}`"):
        await bench.service.settings.remove_profile("local")
    await bench.finish("mnist")
    assert (await bench.service.settings.remove_profile("local"))["settings"] == {}


@pytest.mark.asyncio
async def test_unknown_profiles_are_not_found(settings, admin):
    for call in (settings.choose_profile, settings.remove_profile, settings.test_profile):
        with pytest.raises(NotFound, match="Profile `nowhere` does not exist"):
            await call("nowhere")


@pytest.mark.asyncio
async def test_testing_a_profile_says_what_it_has_or_what_is_wrong(settings, user):
    user.write_text(
        "profiles: {good: {kind: local, cpu: 3, cpus: 1}, bad: {kind: local, cpu: many}, odd: {kind: x}}"
    )
    good = await settings.test_profile("good")
    assert good["ok"] and good["capabilities"]["capacity"]["cpu"] == 3
    assert "`cpus`" in good["problems"][0]
    for name in ("bad", "odd"):
        found = await settings.test_profile(name)
        assert not found["ok"] and found["message"] and found["hint"]


@pytest.mark.asyncio
async def test_a_file_that_cannot_be_written_is_one_sentence(settings, user):
    if os.getuid() == 0:
        folder = user.parent
        user.unlink()
        folder.rmdir()
        folder.write_text("no folder")
    else:
        user.parent.chmod(0o500)
    with pytest.raises(PaiJupyterError, match="cannot be"):
        await settings.add_profile("half", {"kind": "local"})


def test_the_local_kind_lists_every_setting_that_it_reads():
    """Else `profile edit` would call a setting unknown that works."""
    import re

    from paijupyter.backends import local
    from paijupyter.backends.local import LocalBackend

    sources = "".join(path.read_text() for path in Path(local.__file__).parent.glob("*.py"))
    read = set(re.findall(r"""settings(?:\.get\(|\[)\s*["'](\w+)["']""", sources))
    assert read and read <= set(LocalBackend.SETTINGS)
