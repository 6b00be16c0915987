"""What is posted: all public validators take it, and bash gets what was written (O1, O9, O20, 2.6, 3.7)."""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from staging import document, make_job, role

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.openpai import emit, head, ladder, payload, returning
from paijupyter.backends.openpai.settings import OpenPaiSettings, settings_of
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.checking import check
from paijupyter.protocol.document import read
from tests.openpai.rendering import by_kubernetes, by_the_runtime, on_the_server

OURS = {"extras": {"paijupyter": {"version": 1}}}


def settings(**more: Any) -> OpenPaiSettings:
    return settings_of(Profile("pai", "openpai", {"url": "http://pai.example", **more}))


def posted(job: Job, secrets: Mapping[str, str] | None = None, **more: Any) -> str:
    """Return the text that would be posted."""
    profile = settings(**more)
    carried = ladder.load(job, job.name, profile, secrets or {}, None).carried if emit.carries(job) else None
    return emit.text_of(job, job.name, profile, secrets or {}, carried)


def arrives(text: str, name: str, **variables: str) -> str:
    """Return what bash gets of a role's commands."""
    data = yaml.safe_load(text)
    return by_the_runtime(by_kubernetes(on_the_server(data, name), variables), data.get("secrets"))


def test_a_document_of_others_keeps_its_commands(place: Place) -> None:
    job = make_job(
        place, document({"worker": role(["echo a", "kill $$; echo $(FC_TASK_INDEX) $(date) $$$"])})
    )
    text = posted(job)
    assert yaml.safe_load(text)["taskRoles"]["worker"]["commands"][0] == "echo a"
    assert arrives(text, "worker", FC_TASK_INDEX="7") == "echo a\nkill $$; echo $(FC_TASK_INDEX) $(date) $$$"


@given(st.text(st.sampled_from("$(FC_TASKINDE) xa{}`\\\n"), max_size=40))
def test_escaped_text_arrives_as_it_was(text: str) -> None:
    """Kubernetes rewrites ``$$`` and ``$(NAME)`` (3.7)."""
    variables = {"FC_TASK_INDEX": "0", "FC_A": "1"}
    assert by_kubernetes(emit.escaped(text), variables) == text


def test_values_of_parameters_arrive_as_they_were(place: Place) -> None:
    source = document({"worker": role("echo <% $parameters.a %>")}, parameters={"a": "x$$y", "b": "x$$y"})
    text = posted(make_job(place, source))
    assert arrives(text, "worker") == "echo x$$y"
    assert yaml.safe_load(text)["parameters"]["b"] == "x$$y"


def test_secrets_arrive_raw(place: Place) -> None:
    """O20: ``& < > " '`` would become HTML (4.3)."""
    value = "a&b<c>d\"e'f"
    source = document({"worker": role("echo <% $secrets.k %>")}, secrets={"k": ""})
    text = posted(make_job(place, source), {"k": value})
    assert arrives(text, "worker") == f"echo {value}"
    assert "\nsecrets:\n" in text  # plain, at the line's start: else nothing masks it


@pytest.mark.parametrize("more", [{}, OURS])
def test_all_validators_take_it(place: Place, more: dict[str, Any]) -> None:
    """Instances, all resources, quoted texts, no quoted key, the right size (2.6)."""
    roles = {
        "ps": {**role("sleep 1"), "completion": {"minFailedInstances": None, "minSucceededInstances": -1}},
        "worker": role("echo <% $secrets.k %> <% $parameters.lr %>", instances=3),
    }
    del roles["ps"]["instances"]
    source = document(roles, secrets={"k": ""}, parameters={"lr": 0.1, "text": "1e5"}, **more)
    job = make_job(place, source)
    text = posted(job, {"k": "value"}, virtualCluster="team", image="registry/our:1")
    found = [each for each in check(read(text), "openpai") if each.severity == "error"]
    assert not found
    data = yaml.safe_load(text)
    assert data["defaults"]["virtualCluster"] == "team"
    assert data["prerequisites"][0]["uri"] == "registry/our:1"
    assert data["taskRoles"]["ps"]["instances"] == 1
    assert data["taskRoles"]["ps"]["completion"] == {"minSucceededInstances": -1}
    assert data["extras"]["paijupyter"]["openpai"] == {"job": job.id, "name": job.name}
    assert not [line for line in text.splitlines() if line.startswith('"')]


def test_the_package_stands_in_it_once_however_many_roles(place: Place) -> None:
    roles = {name: role("bash train.sh") for name in ("a", "b", "c")}
    job = make_job(place, document(roles, **OURS), {"train.sh": "echo ran\n"})
    data = yaml.safe_load(posted(job))
    carried = base64.b64decode(data["parameters"][head.PAYLOAD])
    for name in roles:
        command = data["taskRoles"][name]["commands"][0]
        assert hashlib.sha256(carried).hexdigest() in command
        assert len(command) < 4000
    with tarfile.open(fileobj=io.BytesIO(carried)) as archive:
        names = archive.getnames()
    assert "parcels/0/manifest.json" in names
    assert "boot/paiboot/boot.py" in names
    assert "boot/paiboot/board.py" not in names


def test_what_travels_leaves_room_for_a_package(place: Place) -> None:
    job = make_job(place, document({"worker": role("true")}, **OURS), {"a.py": "x"})
    assert len(posted(job)) < emit.LARGEST * 0.6


def test_a_large_package_needs_another_way(place: Place, tmp_path: Path) -> None:
    """P15: the plan says what to set up."""
    blob = hashlib.shake_256(b"noise").digest(90_000)
    job = make_job(place, document({"worker": role("true")}, **OURS), {"data.bin": blob})
    with pytest.raises(PaiJupyterError) as caught:
        posted(job)
    assert caught.value.code == "package-too-big"
    assert "packageWebHdfs" in caught.value.hint
    shared = {"storages": {"team": {"path": str(tmp_path), "mount": "/mnt/t"}}, "storage": "team"}
    text = posted(job, **shared)
    data = yaml.safe_load(text)
    assert data["extras"]["storages"] == [{"name": "team", "mountPath": "/mnt/t"}]
    load = ladder.load(job, job.name, settings(**shared), {}, None)
    assert [leg.way for leg in load.legs] == ["storage"]
    assert len(text.encode()) <= emit.LARGEST


def test_addresses_for_outputs_have_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """P15, P24: they are written last, one for each task; what was planned inside the document still fits."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    profile = settings(packageObject={"bucket": "b", "endpoint": "https://s3.example"})
    extras = {"paijupyter": {"version": 1, "outputs": ["out/"]}}
    ways = []
    for size in range(4_000, 44_000, 4_000):
        blob = hashlib.shake_256(b"noise").digest(size)
        source = document({"worker": role("true", instances=200)}, extras=extras)
        job = make_job(place, source, {"data.bin": blob})
        load = ladder.load(job, job.name, profile, {}, None)
        ways.append(load.legs[0].way)
        outputs = returning.told(job, job.name, profile)
        urls = dict.fromkeys(load.carried.urls, "https://s3.example/" + "u" * 600)
        whole = replace(load.carried, outputs=outputs, urls=urls)
        assert len(emit.text_of(job, job.name, profile, {}, whole).encode()) <= emit.LARGEST
    assert set(ways) == {"document", "object"}


@pytest.mark.asyncio
async def test_a_storage_gets_the_package(place: Place, tmp_path: Path) -> None:
    job = make_job(place, document({"worker": role("true")}, **OURS), {"a.py": "print(1)\n"})
    profile = settings(
        storages={"team": {"path": str(tmp_path)}}, storage="team", packageWays=["storage", "object"]
    )
    load = ladder.load(job, job.name, profile, {}, None)
    carried = await ladder.send(load, job, job.name, profile, tmp_path / "staging", None)
    assert job.package is not None
    kept = tmp_path / "paijupyter" / "packages" / job.package.sha256
    assert (kept / "manifest.json").is_file()
    with tarfile.open(fileobj=io.BytesIO(carried.data)) as archive:
        told = yaml.safe_load(archive.extractfile("spec.json").read())  # type: ignore[union-attr]
    assert told["parcels"][0]["folder"] == f"/mnt/team/paijupyter/packages/{job.package.sha256}"
    assert told["kept"] == f"/mnt/team/paijupyter/jobs/{job.name}"


def test_a_document_that_is_too_long_is_said(place: Place) -> None:
    noise = base64.b64encode(hashlib.shake_256(b"noise").digest(120_000)).decode()
    job = make_job(place, document({"worker": role(f"echo {noise}")}, **OURS))
    with pytest.raises(PaiJupyterError) as caught:
        posted(job)
    assert caught.value.code == "too-large"


@pytest.mark.parametrize("url", [False, True])
@pytest.mark.parametrize("files", [None, {"a.py": "x"}])
@pytest.mark.parametrize("notebook", [None, {"path": "a.ipynb", "run": True}])
def test_what_is_left_out_is_not_missed(
    place: Place, files: dict[str, bytes | str] | None, notebook: dict[str, Any] | None, url: bool
) -> None:
    """Every module that travels finds what it imports when it is loaded."""
    ours = {"version": 1, **({"notebook": notebook} if notebook else {})}
    job = make_job(place, document({"worker": role("true")}, extras={"paijupyter": ours}), files)
    parcels = [{"way": "url" if url else "folder"}] if files else []
    spec = payload.spec_of(job, settings(), parcels, None)
    sources = {name: text for name, text, *_ in payload._members(job, spec, (), ())}
    modules = {
        name.removeprefix("boot/paiboot/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for name in sources
        if name.startswith("boot/paiboot/")
    }
    for name, text in sources.items():
        if name.startswith("boot/paiboot/") and name.count("/") == 2:
            for node in ast.parse(text).body:
                if isinstance(node, ast.ImportFrom) and node.level == 1:
                    wanted = [node.module] if node.module else [each.name for each in node.names]
                    assert set(wanted) <= modules, name


def test_the_boot_program_still_means_the_same_without_its_comments() -> None:
    for name, source in payload.boot_sources().items():
        if name.endswith(".py"):
            compile(source, name, "exec")


@pytest.mark.parametrize(
    "wrong",
    [{}, {"url": "pai.example"}, {"url": "http://a:b@pai.example"}, {"url": "http://p", "storage": "x"},
     {"url": "http://p", "pollSeconds": 0}, {"url": "http://p", "packageWays": ["pigeon"]}],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(PaiJupyterError) as caught:
        settings_of(Profile("pai", "openpai", wrong))
    assert caught.value.code == "bad-setting"
    assert "`" in caught.value.problems[0].message
