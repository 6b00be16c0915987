"""Secrets rest in one 0600 file of an unfinished job, and nowhere else (O20, decision 8)."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from paijupyter.errors import Conflict, InvalidDocument, MissingExtra, PaiJupyterError
from paijupyter.jobs.secrets import Given, SecretStore, masked, problems_of
from tests.resting import holders

CANARY = "c4n4ry-s3cr3t-" + "x" * 8


def found_in(*folders) -> list[str]:
    return [str(path) for path in holders(CANARY, *folders)]


@pytest.mark.asyncio
async def test_a_canary_is_found_in_its_one_file_and_later_nowhere(bench, kit, isolated_home, caplog, capfd):
    caplog.set_level(0)
    secrets = {"TOKEN": {"value": CANARY, "reference": "env:TOKEN"}}
    plan = await bench.service.plan(bench.request(secrets=secrets))
    seq = bench.service.events.seq
    view = await bench.submit(secrets=secrets)
    home = bench.runtime / "secrets" / f"{view['id']}.json"
    assert bench.backend.secrets[view["id"]] == {"TOKEN": CANARY}
    bench.backend.emit(view["id"], "running", tasks=(kit.task("worker", 0, "running"),))
    await bench.state("mnist", "running")
    assert found_in(isolated_home) == [str(home)]
    assert stat.S_IMODE(home.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700
    with pytest.raises(PaiJupyterError):
        await bench.service.retry("mnist")
    bench.backend.submit_error = RuntimeError(f"bad {CANARY}")
    with pytest.raises(PaiJupyterError) as refused:
        await bench.service.submit(bench.request(secrets=secrets))
    bench.backend.submit_error = None
    await bench.finish("mnist", "failed", message="no")
    said = [plan, view, bench.service.list(), bench.service.events.since(seq), bench.service.tasks("mnist")]
    said += [str(refused.value), repr(refused.value), refused.value.to_problem_json()]
    assert CANARY not in repr(said)
    assert CANARY not in caplog.text and CANARY not in "".join(capfd.readouterr())
    assert found_in(isolated_home) == []
    assert list(home.parent.iterdir()) == []
    assert view["secretNames"] == ["TOKEN"]
    await bench.restart()
    assert found_in(isolated_home) == []


@pytest.mark.asyncio
async def test_a_value_in_the_document_is_refused_and_not_repeated(bench, isolated_home):
    """What others write into `secrets` would be stored byte for byte with the document."""
    text = bench.request(names=["TOKEN"])["document"].replace('TOKEN: ""', f"TOKEN: {CANARY}")
    with pytest.raises(InvalidDocument) as caught:
        await bench.submit(document=text, secrets={"TOKEN": {"value": "v"}})
    assert "secret-in-document" in [each.code for each in caught.value.problems]
    assert CANARY not in repr(caught.value.to_problem_json())
    assert found_in(isolated_home) == []


@pytest.mark.asyncio
async def test_orphaned_secrets_are_removed_at_the_start(bench):
    folder = bench.runtime / "secrets"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "234567234567234567.json").write_text("{}")
    (folder / ".draft").write_text("{}")
    view = await bench.submit(secrets={"T": {"value": "v"}})
    await bench.restart()
    assert [path.name for path in folder.iterdir()] == [f"{view['id']}.json"]


@pytest.mark.asyncio
async def test_a_secret_without_value_or_reference_is_a_problem_of_the_plan(bench):
    plan = await bench.service.plan(
        bench.request(names=["A", "B"], secrets={"B": {"value": "1"}, "C": {"value": "2"}})
    )
    found = {each["code"]: each for each in plan["problems"]}
    assert "`A`" in found["secret-missing"]["message"] and found["secret-missing"]["path"] == "/secrets/A"
    assert "`C`" in found["secret-unused"]["message"]
    assert not plan["ok"] and plan["secretNames"] == ["A", "B"]


@pytest.mark.asyncio
@pytest.mark.parametrize("reference", ["ask", "env:HF"])
async def test_what_only_the_surface_can_resolve_must_come_with_the_request(bench, reference):
    with pytest.raises(Conflict) as caught:
        await bench.submit(secrets={"A": {"reference": reference}})
    assert caught.value.code == "secrets-needed" and "`A`" in caught.value.message
    assert list((bench.data / "jobs").iterdir()) == []


@pytest.mark.asyncio
async def test_no_usable_keyring_says_what_works_instead(bench):
    """The tests' keyring is the null one, as on a server without a desktop."""
    plan = await bench.service.plan(bench.request(secrets={"HF": {"reference": "keyring:hf"}}))
    (problem,) = [each for each in plan["problems"] if each["severity"] == "error"]
    assert problem["code"] == "keyring-unusable" and problem["path"] == "/secrets/HF"
    assert "HF=env:VARIABLE" in problem["hint"] and "HF=ask" in problem["hint"]
    with pytest.raises(InvalidDocument, match="no keyring can be used"):
        await bench.submit(secrets={"HF": {"reference": "keyring:hf"}})


@pytest.fixture
def ring(monkeypatch):
    """A keyring in memory."""
    import keyring
    from keyring.backend import KeyringBackend

    class Memory(KeyringBackend):
        priority = 1
        entries: dict[tuple[str, str], str] = {}  # noqa: RUF012 - of the test

        def get_password(self, service, username):
            return self.entries.get((service, username))

        def set_password(self, service, username, password):
            self.entries[service, username] = password

    Memory.entries = {}
    before = keyring.get_keyring()
    memory = Memory()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


@pytest.mark.asyncio
async def test_the_engine_resolves_keyring_references_and_retries_with_them(bench, ring):
    ring.set_password("paijupyter", "hf", CANARY)
    secrets = {"HF": {"reference": "keyring:hf"}}
    view = await bench.submit(secrets=secrets)
    assert bench.backend.secrets[view["id"]] == {"HF": CANARY}
    again = await bench.service.retry("mnist")
    assert bench.backend.secrets[again["id"]] == {"HF": CANARY}
    assert found_in(bench.data) == []
    os.unlink(bench.runtime / "secrets" / f"{view['id']}.json")
    await bench.restart()
    assert SecretStore(bench.runtime / "secrets").get(view["id"]) == {"HF": CANARY}


@pytest.mark.asyncio
async def test_an_entry_that_is_not_there_says_how_to_store_it(bench, ring):
    plan = await bench.service.plan(bench.request(secrets={"HF": {"reference": "keyring:hf"}}))
    (problem,) = [each for each in plan["problems"] if each["severity"] == "error"]
    assert problem["message"] == "Secret `HF` is not in the keyring."
    assert problem["hint"] == "Store it with: paijob secret set hf"


@pytest.mark.asyncio
async def test_without_the_extra_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(MissingExtra, match=r"paijupyter\[keyring\]"):
        await Given({"A": {"reference": "keyring:a"}}).resolve(["A"])


@pytest.mark.asyncio
async def test_only_wanted_secrets_are_resolved():
    given = Given({"A": {"value": "1"}, "B": {"reference": "ask"}, "C": {"reference": "keyring:c"}})
    assert await given.resolve(["A"]) == {"A": "1"}
    assert "1" not in repr(given)


def test_values_that_are_no_values_are_refused_without_repeating_them():
    for entry in (CANARY, {"value": [CANARY]}, {"reference": CANARY}, {"val": CANARY}, None):
        with pytest.raises(PaiJupyterError) as caught:
            Given({"A": entry})
        assert CANARY not in str(caught.value) and "`A`" in str(caught.value)


def test_placeholders_are_no_values():
    given = Given({name: {"value": "v"} for name in "abc"})
    assert problems_of({"secrets": {"a": "", "b": None, "c": "******"}}, given) == []
    assert problems_of({}, Given({})) == [] and problems_of({"secrets": ["x"]}, Given({})) == []


def test_the_store_keeps_whole_files_only(tmp_path):
    store = SecretStore(tmp_path / "s")
    assert store.get("a") is None
    store.remove("a")
    store.keep_only([])
    store.put("a", {})
    assert not store.folder.exists()
    store.put("a", {"X": "ü\n\0\ud800"})
    assert store.get("a") == {"X": "ü\n\0\ud800"}
    (store.folder / "b.json").write_text("{")
    assert store.get("b") is None


def test_masking_takes_the_longest_first():
    assert masked("ab abc", ["ab", "abc", ""]) == "****** ******"
