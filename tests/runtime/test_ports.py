"""A task's ports are looked at just before its command begins, and again if it complains (O22)."""

from __future__ import annotations

import socket

import pytest

from paijupyter.runtime import ports

SERVER = """
import os, socket
server = socket.socket()
server.bind(("", int(os.environ["PAI_CONTAINER_HOST_tb_PORT_LIST"])))
server.listen()
print("serving")
"""


@pytest.fixture
def server():
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("", 0))
        held.listen()
        yield held


def test_a_port_that_somebody_took_ends_the_task_before_its_command(task, server):
    number = server.getsockname()[1]
    task.spec["ports"]["worker-0"]["tb"] = [number]
    record = task.run("echo ran")
    assert record["reason"] == "ports"
    assert record["message"] == f"The task lost its port {number} (`tb`) to another program."
    assert "ran" not in task.log


def test_a_port_that_is_taken_between_our_look_and_the_bind(task, until):
    """The command complains, and its port is another's still: that is no fault of the command."""
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("", 0))
        task.spec["ports"]["worker-0"]["tb"] = [taker.getsockname()[1]]
        task.package({"serve.py": SERVER})
        task.spec["command"] = (
            'echo go; until test -e "$PAI_OUTPUT_DIR/taken"; do sleep 0.02; done; python serve.py'
        )
        task.start()
        until(lambda: "go" in task.log)
        taker.listen()
        (task.output / "taken").touch()
        record = task.end()
    assert (record["reason"], record["code"]) == ("ports", 1)
    assert "lost its port" in record["message"]


def test_a_port_that_was_not_given_is_the_users_fault(task, server):
    task.spec["env"] = {"CHOSEN": str(server.getsockname()[1])}
    task.package({"serve.py": SERVER.replace("PAI_CONTAINER_HOST_tb_PORT_LIST", "CHOSEN")})
    assert task.run("python serve.py")["reason"] == "user"


def test_what_is_free_is_not_taken(task):
    with socket.socket() as free:
        free.bind(("", 0))
        number = free.getsockname()[1]
    task.spec["ports"]["worker-0"]["tb"] = [number]
    task.package({"serve.py": SERVER})
    assert task.run("python serve.py; python serve.py")["reason"] == ""
    assert task.log == "serving\n" * 2


def test_taken_names_all(server):
    number = server.getsockname()[1]
    assert ports.taken({"ssh": [], "tb": [number]}) == f"{number} (`tb`)"
    assert ports.taken({}) == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("OSError: [Errno 98] Address already in use", True),
        ("Error: listen EADDRINUSE: address already in use :::80", True),
        ("ValueError: x", False),
    ],
)
def test_the_complaint_is_known(line, said):
    assert ports.in_use(["x", line]) is said
