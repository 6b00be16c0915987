"""What the pods of a job are told (O10, O22, O24, O29, P28, T13): one spec for all, nothing secret in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jobs import NOWHERE, job_of, role, settings

from paijupyter.backends import fetched
from paijupyter.backends.base import Data, Package
from paijupyter.backends.kubernetes import layout
from paijupyter.backends.kubernetes.spec import ports_of, task_spec
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.data import parse_data

PACKAGE = Package("a" * 64, NOWHERE, NOWHERE)
PARCELS = [{"sha256": "a" * 64, "way": "parts"}, {"sha256": "b" * 64, "way": "folder"}]


def spec_of(job, attempt=0, parcels=(), storages=(), kept=False, **values):
    hosts = {f"{name}-{index}": f"{name}-{index}.host" for name in job.roles for index in range(2)}
    told = settings(**values).told()
    return task_spec(job, attempt, told, hosts=hosts, parcels=parcels, storages=storages, kept=kept)


def test_a_job_of_one_task_needs_no_board():
    spec = spec_of(job_of({"worker": role()}))
    assert (spec["board"], spec["barrier"]) == (None, None)


def test_the_first_task_keeps_the_board():
    """Decision 10; P28."""
    spec = spec_of(job_of({"ps": role(), "worker": role(2)}), barrierTimeout="5m")
    assert spec["board"]["task"] == "ps-0"
    assert spec["barrier"] == {"timeout": 300}
    assert spec["commands"].keys() == {"ps", "worker"}
    assert json.loads(json.dumps(spec)) == spec


def test_without_a_gang_there_is_no_barrier():
    spec = spec_of(job_of({"worker": role(2)}, extras={"gangAllocation": False}))
    assert spec["barrier"] is None
    assert spec["board"] is not None


def test_ports_differ_within_a_job_and_stay_below_those_of_systems():
    """O22: also for pods on the network of their node, and for thousands of tasks."""
    job = job_of({"worker": role(100, resourcePerInstance={"cpu": 1, "ports": {"feed": 3}})})
    board, ports = ports_of(job)
    numbers = [number for labels in ports.values() for found in labels.values() for number in found]
    assert len(set(numbers)) == len(numbers) == 500
    assert board not in numbers
    assert all(20000 <= number < 32000 for number in numbers)
    many = job_of({"worker": role(9000)})
    assert all(
        20000 <= n < 32000 for labels in ports_of(many)[1].values() for p in labels.values() for n in p
    )


def test_the_interpreter_of_the_profile_is_the_tasks_python_only_as_a_path():
    assert spec_of(job_of({"worker": role()}))["python"] is None
    assert spec_of(job_of({"worker": role()}), pythonPath="/opt/conda/bin/python")["python"] == (
        "/opt/conda/bin/python"
    )


def test_requirements_are_checked_unless_somebody_says_otherwise():
    spec = spec_of(job_of({"worker": role()}))
    assert spec["requirements"]["policy"] == "never"
    spec = spec_of(job_of({"worker": role()}), install="if-missing", indexUrl="https://index.example/simple")
    assert (spec["requirements"]["policy"], spec["requirements"]["index"]) == (
        "if-missing",
        "https://index.example/simple",
    )
    assert (
        spec_of(job_of({"worker": role()}, ours={"install": "always"}))["requirements"]["policy"] == "always"
    )


def test_data_of_every_kind_have_their_place():
    """O29: what travelled, what a task fetches, what lies in a storage, what the engine fetched."""
    sources = [
        ("set=data/set", PACKAGE, ""),
        ("page=https://example.org/x.csv,path=/pai_data/page", None, ""),
        ("team=storage://team/sets/a", None, ""),
        ("big=s3://bucket/big,path=deep/big", None, "k" * 40),
    ]
    data = tuple(Data(parse_data(text), package, key) for text, package, key in sources)
    job = job_of({"worker": role()}, data=data, ours={"data": [each.source.to_json() for each in data]})
    told = spec_of(job, parcels=PARCELS, storages=[{"name": "team", "path": "/mnt/team"}])["data"]["sources"]
    assert [each.get("package") for each in told] == [
        {"parcel": 0, "sha256": "a" * 64},
        None,
        None,
        {"parcel": 1, "sha256": "b" * 64},
    ]
    assert [each["place"] for each in told] == [
        f"{layout.RUN}/data/set",
        "/pai_data/page",
        f"{layout.RUN}/data/team",
        f"{layout.RUN}/task/work/deep/big",
    ]
    assert told[2]["link"] == "/mnt/team/sets/a"
    assert [each["inside"] for each in told] == [False, False, False, True]
    assert layout.data_mounts(job) == {"/pai_data/page": "data/page"}


def test_nothing_secret_is_told():
    """O20: it lies in a ConfigMap."""
    spec = spec_of(job_of({"worker": role(2)}, secrets={"TOKEN": "a-secret-value"}))
    assert "a-secret-value" not in json.dumps(spec)
    assert spec["secrets"] == layout.SECRETS
    assert spec["keyFile"] == layout.BOARD_KEY


def test_a_task_alone_shares_no_key():
    spec = spec_of(job_of({"worker": role()}))
    assert (spec["keyFile"], spec["secrets"]) == (None, None)


def test_what_is_kept_has_its_folder():
    job = job_of({"worker": role()})
    assert spec_of(job)["kept"] is None
    assert spec_of(job, kept=True)["kept"] == layout.KEPT


def test_the_stop_leaves_time_for_the_command_and_its_outputs():
    assert layout.stop_seconds(30) == 70
    assert layout.stop_seconds(0.5) == 41


def test_what_the_engine_fetched_travels(isolated_home: Path):
    """Kinds that tasks need no library for: object stores, webhdfs, kinds of other packages."""
    content = isolated_home / "datasets" / ("k" * 40) / "content" / "big"
    content.mkdir(parents=True)
    (content / "a.csv").write_text("1\n")
    source = parse_data("big=s3://bucket/big")
    job = job_of({"worker": role()}, data=(Data(source, None, "k" * 40),))
    (packed,) = fetched.packed(job, isolated_home).data
    assert packed.package is not None
    manifest = json.loads((packed.package.folder / "manifest.json").read_text())
    assert [entry[0] for entry in manifest["files"]] == ["big/a.csv"]


def test_what_was_swept_from_the_cache_is_said(isolated_home: Path):
    job = job_of({"worker": role()}, data=(Data(parse_data("big=s3://bucket/big"), None, "k" * 40),))
    with pytest.raises(PaiJupyterError) as caught:
        fetched.packed(job, isolated_home)
    assert caught.value.code == "data-gone"
