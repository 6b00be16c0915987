"""The environment contract (O24, O25; openpai-measured.md, section 3)."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.runtime.environment import converted, environment
from paijupyter.runtime.failure import Failure
from paijupyter.runtime.values import text_of

ADDRESS = "192.0.2.10"
GOLDEN_SPEC = {
    "job": {"id": "J1", "name": "r-env", "user": "alice", "virtualCluster": "default", "defaultFsUri": ""},
    "role": "ps",
    "index": 0,
    "roles": [
        {
            "name": "ps",
            "instances": 1,
            "resources": {"gpu": 0, "cpu": 1, "memoryMB": 300, "shmMB": 128},
            "minFailed": 1,
            "minSucceeded": -1,
            "ports": {"tb": 1, "data_port": 2},
        },
        {
            "name": "worker",
            "instances": 2,
            "resources": {"gpu": 0, "cpu": 0, "memoryMB": 256, "shmMB": 0},
            "minFailed": 2,
            "minSucceeded": 2,
            "ports": {"SynPort": 1},
        },
    ],
    "hosts": {"ps-0": ADDRESS, "worker-0": ADDRESS, "worker-1": ADDRESS},
    "ports": {
        "ps-0": {"tb": [21860], "data_port": [19632, 31272], "ssh": [22205], "http": [34468]},
        "worker-0": {"SynPort": [32149], "ssh": [16940], "http": [25539]},
        "worker-1": {"SynPort": [15406], "ssh": [25057], "http": [30872]},
    },
    "folder": "/job/tasks/ps-0/0",
    "output": "/job/output/ps-0",
    "private": "/run/ps-0",
}
# The table of openpai-measured.md 3.1, without what only Kubernetes objects have and PAI_WORK_DIR.
GOLDEN = {
    "PAI_FRAMEWORK_NAME": "alice~r-env",
    "PAI_JOB_NAME": "alice~r-env",
    "PAI_USER_NAME": "alice",
    "PAI_USERNAME": "alice",
    "PAI_VIRTUAL_CLUSTER": "default",
    "PAI_DEFAULT_FS_URI": "",
    "PAI_TASK_ROLE_COUNT": "2",
    "PAI_TASK_ROLES_NUM": "2",
    "PAI_JOB_TASK_ROLE_COUNT": "2",
    "PAI_TASK_ROLE_LIST": "ps,worker",
    "PAI_JOB_TASK_ROLE_LIST": "ps,worker",
    "PAI_TASKS_NUM": "3",
    "PAI_JOB_TASK_COUNT": "3",
    "PAI_TASK_ROLE_TASK_COUNT_ps": "1",
    "PAI_TASK_ROLE_TASK_COUNT_worker": "2",
    "PAI_RESOURCE_ps": "0,1,300,128",
    "PAI_RESOURCE_worker": "0,0,256,0",
    "PAI_MIN_FAILED_TASK_COUNT_ps": "1",
    "PAI_MIN_FAILED_TASK_COUNT_worker": "2",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_ps": "-1",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_worker": "2",
    "PAI_CURRENT_TASK_ROLE_NAME": "ps",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
    "PAI_TASK_INDEX": "0",
    "PAI_HOST_IP_ps_0": ADDRESS,
    "PAI_HOST_IP_worker_0": ADDRESS,
    "PAI_HOST_IP_worker_1": ADDRESS,
    "PAI_PORT_LIST_ps_0_tb": "21860",
    "PAI_PORT_LIST_ps_0_data_port": "19632,31272",
    "PAI_PORT_LIST_ps_0_ssh": "22205",
    "PAI_PORT_LIST_ps_0_http": "34468",
    "PAI_PORT_LIST_worker_0_SynPort": "32149",
    "PAI_PORT_LIST_worker_0_ssh": "16940",
    "PAI_PORT_LIST_worker_0_http": "25539",
    "PAI_PORT_LIST_worker_1_SynPort": "15406",
    "PAI_PORT_LIST_worker_1_ssh": "25057",
    "PAI_PORT_LIST_worker_1_http": "30872",
    "PAI_ps_0_tb_PORT": "21860",
    "PAI_ps_0_data_port_PORT": "19632,31272",
    "PAI_ps_0_ssh_PORT": "22205",
    "PAI_ps_0_http_PORT": "34468",
    "PAI_worker_0_SynPort_PORT": "32149",
    "PAI_worker_0_ssh_PORT": "16940",
    "PAI_worker_0_http_PORT": "25539",
    "PAI_worker_1_SynPort_PORT": "15406",
    "PAI_worker_1_ssh_PORT": "25057",
    "PAI_worker_1_http_PORT": "30872",
    "PAI_CONTAINER_HOST_tb_PORT_LIST": "21860",
    "PAI_CONTAINER_HOST_data_port_PORT_LIST": "19632,31272",
    "PAI_CONTAINER_HOST_ssh_PORT_LIST": "22205",
    "PAI_CONTAINER_HOST_http_PORT_LIST": "34468",
    "PAI_CONTAINER_HOST_PORT_LIST": "tb:21860;data_port:19632,31272;ssh:22205;http:34468;",
    "PAI_CONTAINER_HOST_IP": ADDRESS,
    "PAI_CURRENT_CONTAINER_IP": ADDRESS,
    "PAI_CONTAINER_HOST_PORT": "34468",
    "PAI_CURRENT_CONTAINER_PORT": "34468",
    "PAI_CONTAINER_SSH_PORT": "22205",
    "PAI_TASK_ROLE_ps_HOST_LIST": f"{ADDRESS}:34468",
    "PAI_TASK_ROLE_worker_HOST_LIST": f"{ADDRESS}:25539,{ADDRESS}:30872",
    "PAI_TASK_ROLE_INSTANCES": "ps:0,worker:0,worker:1",
    "NVIDIA_VISIBLE_DEVICES": "none",
    "FC_FRAMEWORK_NAMESPACE": "default",
    "FC_FRAMEWORK_NAME": "d7f50bd6bd1074c0330839f08ab4090d",
    "FC_POD_NAME": "d7f50bd6bd1074c0330839f08ab4090d-ps-0",
    "FC_CONFIGMAP_NAME": "d7f50bd6bd1074c0330839f08ab4090d-attempt",
    "FC_TASKROLE_NAME": "ps",
    "FC_TASK_INDEX": "0",
    "FC_FRAMEWORK_ATTEMPT_ID": "0",
    "FC_TASK_ATTEMPT_ID": "0",
}


def spec(**changes):
    return {**copy.deepcopy(GOLDEN_SPEC), **changes}


def test_golden_values():
    """Every name and value that the original gave the same job."""
    found = environment(spec(), {})
    assert {name: found.get(name) for name in GOLDEN} == GOLDEN
    assert found["RUNTIME_LOG_PIPE"]


def test_no_openpai_name_is_unexpected():
    """Beyond the golden names there are only ours and those that OpenPAI had before or after."""
    more = set(environment(spec(), {})) - set(GOLDEN)
    assert more == {
        *("PAI_PACKAGE_DIR", "PAI_OUTPUT_DIR", "PAI_METRICS_FILE", "PAI_PARAMETERS_FILE", "PAI_SECRETS_DIR"),
        *("PAI_JOB_ID", "PAI_ATTEMPT", "PYTHONUNBUFFERED", "PYTHONPATH"),
        *("PAI_WORK_DIR", "PAI_CODE_DIR", "PAI_JOB_VC_NAME", "RUNTIME_LOG_PIPE"),
        *(
            f"PAI_CURRENT_TASK_ROLE_{fact}"
            for fact in (
                *("TASK_COUNT", "CPU_COUNT", "GPU_COUNT", "MEM_MB", "SHM_MB"),
                *("MIN_FAILED_TASK_COUNT", "MIN_SUCCEEDED_TASK_COUNT"),
            )
        ),
    }


def test_role_names_raw_and_converted():
    """openpai-measured.md 3.2: the original spells a role in two ways; here both always exist."""
    given = spec(role="Ps_Server")
    given["roles"][0]["name"] = "Ps_Server"
    given["hosts"]["Ps_Server-0"] = ADDRESS
    given["ports"]["Ps_Server-0"] = given["ports"].pop("ps-0")
    found = environment(given, {})
    assert found["PAI_TASK_ROLE_LIST"] == "Ps_Server,worker"
    assert found["PAI_CURRENT_TASK_ROLE_NAME"] == "Ps_Server"
    assert found["FC_TASKROLE_NAME"] == "psserver"
    assert found["PAI_TASK_ROLE_INSTANCES"] == "psserver:0,worker:0,worker:1"
    for pattern in (
        "PAI_TASK_ROLE_TASK_COUNT_{}",
        "PAI_RESOURCE_{}",
        "PAI_MIN_FAILED_TASK_COUNT_{}",
        "PAI_HOST_IP_{}_0",
        "PAI_PORT_LIST_{}_0_data_port",
        "PAI_{}_0_data_port_PORT",
        "PAI_TASK_ROLE_{}_HOST_LIST",
    ):
        assert found[pattern.format("Ps_Server")] == found[pattern.format("psserver")], pattern


@given(st.text(max_size=20))
def test_converted_names_are_frameworkcontrollers(name):
    assert all(char in "abcdefghijklmnopqrstuvwxyz0123456789" for char in converted(name))


def test_a_users_ssh_label_keeps_its_place_and_count():
    """openpai-measured.md 3.3."""
    given = spec()
    given["roles"][0]["ports"] = {"ssh": 2, "tb": 1}
    given["ports"]["ps-0"] = {"http": [4], "tb": [3], "ssh": [1, 2]}
    assert environment(given, {})["PAI_CONTAINER_HOST_PORT_LIST"] == "ssh:1,2;tb:3;http:4;"


def test_who_wins():
    """P6: role over job over inherited; nobody over the facts; PYTHONPATH: the package, the user's, ours."""
    given = spec(env={"A": "job", "B": "job", "PAI_TASK_INDEX": "9", "PYTHONPATH": "/user"})
    given["roles"][0]["env"] = {"B": "role", "PYTHONUNBUFFERED": "0"}
    found = environment(given, {"A": "inherited", "C": "inherited"})
    assert [found[name] for name in "ABC"] == ["job", "role", "inherited"]
    assert found["PAI_TASK_INDEX"] == "0"
    assert found["PYTHONUNBUFFERED"] == "0"
    work, library = "/job/tasks/ps-0/0/work", f"{given['private']}/library"
    assert found["PYTHONPATH"] == f"{work}:/user:{library}"
    assert environment(spec(), {"PYTHONPATH": "/old"})["PYTHONPATH"] == f"{work}:/old:{library}"


def test_it_is_pure():
    given = spec(parameters={"a": [1]})
    before = copy.deepcopy(given)
    assert environment(given, {}) == environment(given, {})
    assert given == before


def test_unknown_launcher_is_explained():
    given = spec()
    given["roles"][0]["launcher"] = "magic"
    with pytest.raises(Failure, match=r"^The launcher `magic` is not known") as caught:
        environment(given, {})
    assert caught.value.reason == "launcher"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (3.0, "3"),
        (-0.5, "-0.5"),
        (1e-4, "0.0001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (123456.789, "123456.789"),
        (0.0, "0"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
        ("x", "x"),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
    ],
)
def test_values_as_text(value, text):
    """P6: a parameter in the environment reads as in `<% $parameters.x %>`."""
    assert text_of(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_value(value):
    assert float(text_of(value)) == value
