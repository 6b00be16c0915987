"""Logging in (O3), what a form offers (O4, O8, O16), and the doctor's word on a profile of kind openpai."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from paijupyter.backends.accounts import Examining, HasAccount, Login, Offering
from paijupyter.backends.base import Place, Profile
from paijupyter.backends.openpai import tokens
from paijupyter.backends.openpai.backend import OpenPaiBackend
from paijupyter.client import verbs
from paijupyter.client.client import JobsClient
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.errors import PaiJupyterError, UsageProblem
from tests.openpai import faults
from tests.openpai.server import OpenPai
from tests.resting import holders


def profile(server: OpenPai, **more: Any) -> Profile:
    return Profile("pai", "openpai", {"url": server.url, "callsPerMinute": 100_000, **more})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "data", tmp_path / "run")


@pytest_asyncio.fixture
async def backend(openpai: OpenPai, place: Place) -> AsyncIterator[OpenPaiBackend]:
    """The backend of a profile on the scripted server."""
    backend = OpenPaiBackend(profile(openpai), place)
    yield backend
    await backend.close()


async def refused(backend: OpenPaiBackend, **login: str) -> PaiJupyterError:
    with pytest.raises(PaiJupyterError) as error:
        await backend.login(Login(**login))
    for given in (login.get("password"), login.get("token")):
        assert not given or given not in repr(error.value.to_problem_json())
    return error.value


def login_file() -> Path:
    return Path(os.environ["PAIJUPYTER_DATA_DIR"]) / "logins" / "pai"


@pytest.mark.asyncio
async def test_a_password_becomes_an_application_token_and_is_kept_nowhere(openpai, backend):
    """O3: and the token that the password gave is revoked at once."""
    assert isinstance(backend, HasAccount)
    told = await backend.login(Login("alice", "password", store="file"))
    assert (told["user"], told["expires"]) == ("alice", None)
    file = login_file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert openpai.accounts.tokens[file.read_text()].application
    assert [token.application for token in openpai.accounts.tokens.values()] == [True]
    found = await backend.account()
    assert (found["user"], found["application"], found["expired"]) == ("alice", True, False)
    assert file.read_text() not in json.dumps(found)
    assert (await backend.logout())["forgotten"] == [f"the file {file}"]
    assert not file.exists() and (await backend.account())["user"] == ""


@pytest.mark.asyncio
async def test_without_a_keyring_nothing_is_kept_silently(openpai, backend):
    """The server is not even asked: no token of ours is left there."""
    error = await refused(backend, user="alice", password="password")
    assert error.code == "login-not-kept"
    assert "PAIJUPYTER_TOKEN_PAI" in error.hint and "--store file" in error.hint
    assert not openpai.accounts.tokens and not login_file().exists()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("user", "password", "words"),
    [
        ("alice", "wrong-one", "password is not correct"),
        ("nobody", "password", "user does not exist"),
        ("alice", "short", "at least 6 characters"),
    ],
)
async def test_a_login_that_is_refused_says_why(backend, user, password, words):
    """Recorded exchanges 004 to 006."""
    error = await refused(backend, user=user, password=password, store="file")
    assert (error.code, error.status) == ("login-refused", 401) and words in error.message


@pytest.mark.asyncio
async def test_where_one_logs_in_on_a_page_a_token_is_copied(openpai, backend):
    """OIDC: a password is refused with what to do; the page's token becomes an application's."""
    openpai.authn = "OIDC"
    error = await refused(backend, user="alice", password="pass-w0rd", store="file")
    assert "OIDC" in error.message and openpai.url in error.hint and "--token" in error.hint
    of_page = openpai.accounts.issue("alice", openpai.now(), openpai.now() + 7 * 24 * 3600)
    told = await backend.login(Login(token=f" {of_page}\n", store="file"))
    assert (told["user"], told["expires"]) == ("alice", None)
    assert of_page in openpai.accounts.tokens, "it is the user's own, and stays"
    assert login_file().read_text() != of_page
    bad = await refused(backend, token="not-a-token-at-all", store="file")
    assert bad.code == "login-refused"


@pytest.mark.asyncio
async def test_a_variable_is_read_where_nobody_can_be_asked(openpai, backend, monkeypatch, place):
    """And one in the profile's `token` before it."""
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
    assert (await backend.account())["where"] == "the variable PAIJUPYTER_TOKEN_PAI"
    openpai.add_user("bob", "password")
    monkeypatch.setenv("OTHER", openpai.token("bob"))
    other = OpenPaiBackend(profile(openpai, token="env:OTHER"), place)
    assert (await other.account())["user"] == "bob"
    await other.close()


@pytest.mark.asyncio
async def test_an_expired_or_revoked_token_is_said_so(openpai, backend, monkeypatch):
    """Recorded exchange 014."""
    token = openpai.token()
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", token)
    assert (await backend.account())["user"] == "alice"
    openpai.revoke(token)
    found = await backend.account()
    assert (found["user"], found["expired"]) == ("", True)
    finding = next(each for each in await backend.examine() if each.name == "login")
    assert not finding.ok and "expired or was revoked" in finding.message
    assert finding.fix == "paijob login pai"


@pytest.mark.asyncio
async def test_a_token_that_ends_soon_is_worth_a_word(openpai, backend, monkeypatch):
    monkeypatch.setenv(
        "PAIJUPYTER_TOKEN_PAI", openpai.accounts.issue("alice", time.time(), time.time() + 3600)
    )
    finding = next(each for each in await backend.examine() if each.name == "login")
    assert not finding.ok and "ends" in finding.message


def test_a_file_that_others_can_read_is_not_used(openpai):
    of = profile(openpai)
    tokens.keep(of, "x", "file")
    login_file().chmod(0o644)
    with pytest.raises(PaiJupyterError) as error:
        tokens.token_of(of)
    assert error.value.code == "login-file-unsafe" and "Revoke" in error.value.hint


@pytest.mark.asyncio
async def test_old_servers_do_not_say_whose_a_token_is(openpai, backend, monkeypatch, place):
    """Before 1.6 there is no tokens/check: the profile names the user."""
    openpai.version = "v1.5.0"
    with pytest.raises(UsageProblem, match=r"before 1\.6"):
        await backend.login(Login("alice", "password", store="file"))
    named = OpenPaiBackend(profile(openpai, user="alice"), place)
    assert (await named.login(Login("alice", "password", store="file")))["user"] == "alice"
    await named.close()


@pytest.mark.asyncio
async def test_a_form_is_offered_what_the_user_has(openpai, backend, monkeypatch):
    """O4, O7, O8, O16: of the user's own; without credentials; asked again only when told to."""
    assert isinstance(backend, Offering)
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
    openpai.virtual_clusters = ["default", "vc1", "others"]
    openpai.accounts.users["alice"].virtual_clusters = ["vc1", "default", "gone"]
    openpai.skus = {"V100": {"cpu": 6, "memory": 55_000, "gpu": 1}}
    openpai.storages = {"team": {"type": "azureFile", "data": {"accountKey": "secret-key"}}, "other": {}}
    openpai.accounts.users["alice"].storages = ["team"]
    found = await backend.offers()
    assert [each["name"] for each in found["virtualClusters"]] == ["vc1", "default"]
    assert found["virtualClusters"][0]["free"] == {"cpu": 12, "memoryMB": 57_344, "gpu": 6}
    assert found["skus"]["vc1"]["V100"] == {"cpu": 6, "memoryMB": 55_000, "gpu": 1}
    assert found["storages"] == [{"name": "team", "default": True, "own": False, "mount": "/mnt/team"}]
    assert len(found["images"]) == 10 and "secret-key" not in json.dumps(found)
    openpai.virtual_clusters = ["vc1"]
    asked = len(openpai.requests)
    assert await backend.offers() == found and len(openpai.requests) == asked
    assert [each["name"] for each in (await backend.offers(refresh=True))["virtualClusters"]] == ["vc1"]


@pytest.mark.asyncio
async def test_without_hived_there_are_no_skus(openpai, backend, monkeypatch):
    """Recorded exchange 028: 404 then, which is no error."""
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
    assert (await backend.offers())["skus"] == {}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "fault", "words", "fix"),
    [
        ("server", faults.portal(), "no OpenPAI server", "Set `url`"),
        ("server", faults.bad_gateway(), "502", ""),
        ("server", faults.too_many(), "too many calls", "Wait"),
    ],
)
async def test_the_doctor_says_what_answers(openpai, backend, name, fault, words, fix):
    """A wrong address, a proxy, a server that is down or busy: one finding, and no traceback."""
    assert isinstance(backend, Examining)
    openpai.fault("GET", r"/info$", instead=fault, times=None)
    (finding,) = await backend.examine()
    assert finding.name == name and not finding.ok
    assert words in finding.message and fix in finding.fix and finding.fix


@pytest.mark.asyncio
async def test_the_doctor_looks_at_everything(openpai, place, monkeypatch):
    """Version, clock, virtual cluster, storage, way for packages: each with what mends it."""
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
    openpai.version, openpai.skew = "v2.0.0", 300
    settings = {
        "virtualCluster": "vc9",
        "storage": "team",
        "storages": {"team": {"path": str(place.data / "nowhere")}},
    }
    backend = OpenPaiBackend(profile(openpai, **settings), place)
    found = {each.name: each for each in await backend.examine()}
    assert list(found) == [
        "server", "version", "clock", "login", "virtual cluster", "storage", "way for packages",
        "way for outputs",
    ]  # fmt: skip
    assert [name for name, each in found.items() if not each.ok] == [
        "version", "clock", "virtual cluster", "storage",
    ]  # fmt: skip
    assert all(each.fix for each in found.values() if not each.ok)
    assert (
        re.search(r"\+(299|300) s", found["clock"].message)
        and "virtualCluster=default" in found["virtual cluster"].fix
    )
    assert "not granted" in found["storage"].message
    openpai.storages = {"team": {}}
    openpai.accounts.users["alice"].storages = ["team"]
    found = {each.name: each for each in await backend.examine()}
    assert "is not mounted here" in found["storage"].message
    await backend.close()


def test_the_verb_login_through_the_engine(openpai, ring, monkeypatch):
    """O3: `paijob login` asks, keeps the token in the keyring, says who is logged in, forgets; `doctor`."""
    openpai.storages = {"team": {}}
    openpai.accounts.users["alice"].storages = ["team"]

    def run(*words: str, ask: Any = None) -> verbs.Reply:
        options = parse_verb(words[0], words[1:], "cli")
        return verbs.run(JobsClient.connect, options, Origin("cli", Path.cwd()), ask)

    run("profile", "add", "pai", "--kind", "openpai", "--set", f"url={openpai.url}")
    before = run("login", "pai", "--check")
    assert not before.ok and "PAIJUPYTER_TOKEN_PAI" in before.text
    with pytest.raises(UsageProblem, match="`--user` is missing"):
        run("login", "pai")
    asked: list[str] = []
    said = run("login", "pai", "--user", "alice", ask=lambda prompt: asked.append(prompt) or "password")
    assert asked == ["Password of alice: "]
    assert said.text == "Logged in at `pai` as alice; the token is kept in the keyring."
    (token,) = openpai.accounts.tokens
    assert json.loads(ring.read_text()) == {"paijupyter/login to pai": token}
    assert run("login", "pai", "--check").text == "✓ pai: alice, by a token in the keyring"
    assert run("secret", "list").data == [], "a login is none of the user's secrets"
    client = JobsClient.connect()
    assert client.settings.offers("pai")["storages"][0]["name"] == "team"
    assert client.settings.offers("local")["storages"] == []
    checks = {each["name"]: each for each in client.settings.doctor()}
    assert checks["pai: login"]["ok"] and checks["pai: version"]["message"] == "v1.8.1"
    with pytest.raises(PaiJupyterError, match="needs no login"):
        run("login", "local", "--check")
    with pytest.raises(PaiJupyterError) as refused:
        run("login", "pai", "hunter2")
    assert "hunter2" not in str(refused.value)
    assert "revoke it at" in run("login", "pai", "--forget").text
    assert json.loads(ring.read_text()) == {}
    data = Path(os.environ["PAIJUPYTER_DATA_DIR"])
    assert not holders(token, data), "the token rests in the keyring only"


@pytest.mark.asyncio
async def test_the_doctor_on_ways_and_old_servers(openpai, place, monkeypatch):
    """Each way that is not there with what sets it up; a server before 1.4 gives no logs."""
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    openpai.version = "v1.3.1"
    bare = OpenPaiBackend(profile(openpai, user="alice"), place)
    found = {each.name: each for each in await bare.examine()}
    assert "gives no logs" in found["version"].message
    for name in ("way for packages", "way for outputs"):
        assert not found[name].ok and "packageWebHdfs" in found[name].fix and not found[name].needed
    await bare.close()
    more = {"packageObject": {"bucket": "b"}, "packageGit": {"url": "https://git.example/a.git"}}
    rich = OpenPaiBackend(profile(openpai, user="alice", **more), place)
    found = {each.name: each for each in await rich.examine()}
    assert found["way for packages"].message == "object, git"
    assert "bucket `b`" in found["way for outputs"].message
    assert not found["bucket"].ok and "AWS_ACCESS_KEY_ID" in found["bucket"].fix
    await rich.close()
