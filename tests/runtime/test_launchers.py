"""Rendezvous variables by value (architecture, decision 11; frameworks.md; P10, P25)."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import paijupyter
from paijupyter.runtime import launchers


def job(launcher, roles, ports=None):
    """Return a spec maker: roles as (name, instances, extra)."""

    def at(role, index):
        keys = [f"{name}-{i}" for name, count, *_ in roles for i in range(count)]
        spec = {
            "job": {"name": "demo-abcdef", "user": "alice"},
            "private": "/private",
            "role": role,
            "index": index,
            "roles": [
                {"name": name, "instances": count, "launcher": launcher, **(extra[0] if extra else {})}
                for name, count, *extra in roles
            ],
            "hosts": {key: f"10.0.0.{number}" for number, key in enumerate(keys, 1)},
            "ports": {
                key: {"ssh": [200 + number], "http": [8000 + number], **(ports or {}).get(key, {})}
                for number, key in enumerate(keys, 1)
            },
        }
        (own,) = [each for each in spec["roles"] if each["name"] == role]
        found = launchers.variables(spec, own)
        for path, text in launchers.files(spec, own).items():
            found[path] = text
        return found

    return at


def test_every_launcher_is_a_module_and_gives_text():
    for name in launchers.LAUNCHERS:
        found = job(name, [("worker", 2)])("worker", 1)
        assert all(isinstance(value, str) for value in found.values())
        if name != "plain":
            assert importlib.import_module(f"paijupyter.runtime.launchers.{name}").__doc__


def test_plain_adds_nothing():
    assert job("plain", [("worker", 2)])("worker", 1) == {}
    assert job(None, [("worker", 2)])("worker", 1) == {}


def test_torchrun():
    at = job("torchrun", [("master", 1), ("worker", 2, {"resources": {"gpu": 4}})])
    assert at("worker", 1) == {
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "8001",
        "RANK": "2",
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "PET_NNODES": "3",
        "PET_NODE_RANK": "2",
        "PET_NPROC_PER_NODE": "4",
        "PET_MASTER_ADDR": "10.0.0.1",
        "PET_MASTER_PORT": "8001",
    }
    assert at("master", 0)["RANK"] == "0"
    assert at("master", 0)["PET_NPROC_PER_NODE"] == "1"


def test_a_port_labelled_rendezvous_is_used():
    at = job("torchrun", [("worker", 2)], {"worker-0": {"rendezvous": [29500]}})
    assert at("worker", 1)["MASTER_PORT"] == "29500"


def test_only_roles_with_the_same_launcher_meet():
    at = job("torchrun", [("board", 1, {"launcher": "plain"}), ("worker", 2)])
    assert at("board", 0) == {}
    assert (at("worker", 0)["RANK"], at("worker", 0)["WORLD_SIZE"]) == ("0", "2")


def test_tensorflow():
    at = job("tensorflow", [("ps", 1), ("chief", 1), ("worker", 2), ("evaluator", 1), ("reader", 1)])
    cluster = {
        "ps": ["10.0.0.1:8001"],
        "chief": ["10.0.0.2:8002"],
        "worker": ["10.0.0.3:8003", "10.0.0.4:8004", "10.0.0.6:8006"],
    }
    expected = {
        ("ps", 0): ("ps", 0),
        ("chief", 0): ("chief", 0),
        ("worker", 1): ("worker", 1),
        ("reader", 0): ("worker", 2),
        ("evaluator", 0): ("evaluator", 0),
    }
    for (role, index), (kind, number) in expected.items():
        config = json.loads(at(role, index)["TF_CONFIG"])
        assert config == {"cluster": cluster, "task": {"type": kind, "index": number}}


STAND_IN = launchers.files({"private": "/private"}, {"launcher": "paddle"})


def test_paddle_collective():
    """frameworks.md: these ran with PaddlePaddle 3.3.1, two ranks on CPUs."""
    found = job("paddle", [("trainer", 2)])("trainer", 1)
    assert found == {
        "PADDLE_TRAINER_ID": "1",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:8001,10.0.0.2:8002",
        "PADDLE_CURRENT_ENDPOINT": "10.0.0.2:8002",
        "PADDLE_DISTRI_BACKEND": "gloo",
        "PADDLE_PORT": "8002",
        "POD_IP": "10.0.0.2",
        "PADDLE_JOB_NAME": "demo-abcdef",
        "TRAINERS": "2",
        "PSERVERS": "0",
        "PADDLE_INIT_TRAINER_ID": "1",
        "PADDLE_INIT_NUM_GRADIENT_SERVERS": "2",
        "RUNNING_ON_CLOUD": "YES",
        **STAND_IN,
    }


@pytest.mark.parametrize("server", [("ps", 2), ("pserver", 2), ("table", 2, {"service": True})])
def test_paddle_parameter_servers(server):
    """P25: servers and trainers are separate, each with its own numbers."""
    at = job("paddle", [server, ("trainer", 2)])
    here, there = at(server[0], 1), at("trainer", 0)
    assert (here["TRAINING_ROLE"], there["TRAINING_ROLE"]) == ("PSERVER", "TRAINER")
    assert here["PADDLE_PSERVERS_IP_PORT_LIST"] == "10.0.0.1:8001,10.0.0.2:8002"
    assert there["PADDLE_TRAINER_ENDPOINTS"] == "10.0.0.3:8003,10.0.0.4:8004"
    assert (here["PADDLE_PORT"], here["POD_IP"]) == ("8002", "10.0.0.2")
    assert (here["PADDLE_PSERVER_ID"], there["PADDLE_TRAINER_ID"]) == ("1", "0")
    assert "PADDLE_TRAINER_ID" not in here
    assert (here["PSERVERS"], here["TRAINERS"]) == ("2", "2")
    assert there["PADDLE_INIT_PSERVERS"] == "10.0.0.1,10.0.0.2"


@pytest.mark.parametrize(("options", "home"), [(["-S"], "library"), ([], "real")])
def test_paddle_scripts_find_their_module(tmp_path, options, home):
    """P20: `paijupyter.paddle` is there also in an image without it, and hides none that is installed."""
    library = tmp_path / "library"
    pai_tasks = library / "pai_tasks"
    shutil.copytree(Path(paijupyter.__file__).parent / "tasks", pai_tasks)
    for path, text in launchers.files({"private": str(tmp_path)}, {"launcher": "paddle"}).items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    script = (
        "from paijupyter.paddle import PaddleJob, dist_train\n"
        "import sys, paijupyter, paijupyter.paddle\n"
        "done = dist_train(lambda: lambda: 'trained', PaddleJob(trainers=2))\n"
        "print(done, paijupyter.paddle.__file__, sys.path[1])"
    )
    real = str(Path(paijupyter.__file__).parent)
    environment = {"PYTHONPATH": str(library), "RUNNING_ON_CLOUD": "YES", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, *options, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    trained, found, first = done.stdout.split()
    assert (trained, first) == ("trained", str(library))
    assert found.startswith({"library": str(library), "real": real}[home])


def test_jax():
    assert job("jax", [("worker", 3)])("worker", 2) == {
        "COORDINATOR_ADDRESS": "10.0.0.1:8001",
        "NUM_PROCESSES": "3",
        "PROCESS_ID": "2",
        "JAX_COORDINATOR_ADDRESS": "10.0.0.1:8001",
        "JAX_NUM_PROCESSES": "3",
        "JAX_PROCESS_ID": "2",
    }


def test_mpi():
    """Architecture, decision 11: mpirun in rank 0 finds its hosts, one line per process."""
    at = job("mpi", [("launcher", 1), ("host", 2, {"service": True, "resources": {"gpu": 2}})])
    file = "/private/hostfile"
    assert at("host", 1) == {
        "PAI_MPI_RANK": "2",
        "PAI_MPI_SIZE": "5",
        "PAI_MPI_HOSTFILE": file,
        "OMPI_MCA_orte_default_hostfile": file,
        "PRTE_MCA_prte_default_hostfile": file,
        "HYDRA_HOST_FILE": file,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        file: "10.0.0.1\n10.0.0.2\n10.0.0.2\n10.0.0.3\n10.0.0.3\n",
    }
    assert at("launcher", 0)["PAI_MPI_RANK"] == "0"


def test_the_task_has_the_files_of_its_launcher(task):
    task.spec["roles"][0]["launcher"] = "mpi"
    task.run('cat "$PAI_MPI_HOSTFILE"; stat -c %a "$PAI_MPI_HOSTFILE"')
    assert task.log == "127.0.0.1\n600\n"


def test_the_task_sees_them(task):
    task.spec["roles"][0]["launcher"] = "torchrun"
    task.spec["roles"][0]["env"] = {"LOCAL_RANK": "5"}
    task.run('echo "$MASTER_ADDR $MASTER_PORT $RANK $WORLD_SIZE $LOCAL_RANK"')
    assert task.log == "127.0.0.1 4002 0 1 5\n", "the user's env wins over the launcher's"
