"""Validator probes of openpai-measured.md 2.3 and the traps of openpai.md 2.4, each with its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from paijupyter.errors import Problem
from paijupyter.protocol import check, read, write

Make = Callable[..., dict[str, Any]]
W = "/taskRoles/worker"
DATA = {"name": "d", "type": "data", "uri": ["x"]}
OK: list[str] = []

# What is changed in a valid document, and the paths of the errors; OK: the server answered 202.
PROBES: list[tuple[dict[str, Any], list[str]]] = [
    ({"/protocolVersion": 2.0}, OK),
    ({"/protocolVersion": "2"}, OK),
    ({"/protocolVersion": 3}, ["/protocolVersion"]),
    ({"/protocolVersion": True}, ["/protocolVersion"]),
    ({"/protocolVersion": ...}, ["/protocolVersion"]),
    ({"/type": "Job"}, ["/type"]),
    ({"/name": "a.b"}, ["/name"]),
    ({"/name": "a\n"}, ["/name"]),
    ({"/name": ""}, ["/name"]),
    ({"/name": "a" * 255}, OK),
    ({"/name": "a" * 256}, ["/name"]),
    ({"/name": 5}, ["/name"]),
    ({"/version": 1.0}, OK),
    ({"/version": True}, ["/version"]),
    ({"/unknown": 1}, ["/unknown"]),
    ({"/prerequisites": []}, ["/prerequisites", f"{W}/dockerImage"]),
    ({"/parameters": None}, ["/parameters"]),
    ({"/parameters": []}, ["/parameters"]),
    ({"/parameters": {}}, OK),
    ({"/secrets": None}, ["/secrets"]),
    ({"/secrets": {}}, OK),
    ({"/secrets": []}, ["/secrets"]),
    ({"/secrets": "******"}, ["/secrets"]),
    ({"/jobRetryCount": -1}, ["/jobRetryCount"]),
    ({"/jobRetryCount": 1.5}, ["/jobRetryCount"]),
    ({"/jobRetryCount": "1"}, ["/jobRetryCount"]),
    ({"/jobRetryCount": None}, ["/jobRetryCount"]),
    ({"/jobRetryCount": True}, ["/jobRetryCount"]),
    ({"/taskRoles": {}}, ["/taskRoles"]),
    ({"/taskRoles": None}, ["/taskRoles"]),
    ({"/taskRoles/a b": {}}, ["/taskRoles/a b"] * 1),
    ({"/defaults": {}}, OK),
    ({"/defaults": {"x": 1}}, OK),
    ({"/defaults/virtualCluster": None}, OK),
    ({"/defaults/deployment": "none"}, ["/defaults/deployment"]),
    ({"/extras": None}, ["/extras"]),
    ({"/extras": {}}, OK),
    ({"/extras": {"foo": 1}}, OK),
    ({"/extras": {"storages": []}}, OK),
    ({"/extras": {"storages": [{}]}}, OK),
    ({"/extras": {"gangAllocation": "false"}}, OK),
    ({f"{W}/instances": 0}, [f"{W}/instances"]),
    ({f"{W}/instances": "1"}, [f"{W}/instances"]),
    ({f"{W}/instances": 1.5}, [f"{W}/instances"]),
    ({f"{W}/instances": None}, [f"{W}/instances"]),
    ({f"{W}/completion": {}}, OK),
    ({f"{W}/completion": None}, [f"{W}/completion"]),
    ({f"{W}/completion": {"x": 1}}, [f"{W}/completion/x"]),
    ({f"{W}/completion": {"minFailedInstances": 0, "minSucceededInstances": 0}}, OK),
    ({f"{W}/completion": {"minFailedInstances": None, "minSucceededInstances": None}}, OK),
    ({f"{W}/completion": {"minFailedInstances": "1"}}, [f"{W}/completion/minFailedInstances"]),
    ({f"{W}/completion": {"minFailedInstances": -5}}, OK),
    ({f"{W}/completion": {"minSucceededInstances": 9}}, OK),
    ({f"{W}/taskRetryCount": -5}, OK),
    ({f"{W}/prerequisites": ["x"]}, [f"{W}/prerequisites/0"]),
    ({f"{W}/prerequisites": []}, OK),
    ({f"{W}/extraContainerOptions": {"x": 1}}, OK),
    ({f"{W}/extraContainerOptions": {"shmMB": "1"}}, [f"{W}/extraContainerOptions/shmMB"]),
    ({f"{W}/extraContainerOptions": {}}, OK),
    ({f"{W}/extraContainerOptions": None}, [f"{W}/extraContainerOptions"]),
    ({f"{W}/resourcePerInstance": ...}, [f"{W}/resourcePerInstance"]),
    ({f"{W}/resourcePerInstance/memoryMB": 0}, OK),
    ({f"{W}/resourcePerInstance/x": 1}, [f"{W}/resourcePerInstance/x"]),
    ({f"{W}/resourcePerInstance/cpu": "1"}, [f"{W}/resourcePerInstance/cpu"]),
    ({f"{W}/resourcePerInstance/cpu": 0.5}, [f"{W}/resourcePerInstance/cpu"]),
    ({f"{W}/resourcePerInstance/ports": {"a": 0}}, OK),
    ({f"{W}/resourcePerInstance/ports": {"a b": 1}}, [f"{W}/resourcePerInstance/ports/a b"]),
    ({f"{W}/resourcePerInstance/ports": None}, OK),
    ({f"{W}/resourcePerInstance/ports": {"ssh": 2}}, OK),
    ({f"{W}/commands": [123]}, [f"{W}/commands/0"]),
    ({f"{W}/commands": []}, [f"{W}/commands"]),
    ({f"{W}/commands": [""]}, OK),
    ({f"{W}/commands": [None]}, [f"{W}/commands/0"]),
    ({f"{W}/commands": "x"}, [f"{W}/commands"]),
    ({f"{W}/commands": ...}, [f"{W}/commands"]),
    ({f"{W}/dockerImage": None}, [f"{W}/dockerImage"]),
    ({f"{W}/dockerImage": ...}, [f"{W}/dockerImage"]),
    ({f"{W}/dockerImage": "other"}, [f"{W}/dockerImage"]),
    ({f"{W}/data": None}, [f"{W}/data"]),
    ({f"{W}/data": "x"}, [f"{W}/data"]),
    ({f"{W}/env": {}}, [f"{W}/env"]),
    ({"/prerequisites/0/auth": {"password": 5}}, ["/prerequisites/0/auth/password"]),
    ({"/prerequisites/0/auth": {"username": "x"}}, OK),
    ({"/prerequisites/0/x": 1}, ["/prerequisites/0/x"]),
    ({"/prerequisites/0/uri": ...}, ["/prerequisites/0/uri"]),
    ({"/prerequisites/0/type": "DockerImage"}, ["/prerequisites/0/type", f"{W}/dockerImage"]),
    ({"/prerequisites/1": DATA | {"uri": []}}, OK),
    ({"/prerequisites/1": {"name": "d", "type": "data"}}, OK),
    ({"/prerequisites/1": {"name": "s", "type": "script", "x": 1}}, OK),
    ({"/prerequisites/1": {"name": "o", "type": "output", "uri": ["x"]}}, ["/prerequisites/1/uri"]),
    ({"/prerequisites/1": {"name": "image", "type": "output"}}, OK),
    ({"/prerequisites/1": {"name": "image", "type": "dockerimage", "uri": "y"}}, ["/prerequisites/1/name"]),
    ({"/prerequisites/1": DATA | {"name": "a b"}}, ["/prerequisites/1/name"]),
    ({"/prerequisites/1": {"name": "d"}}, ["/prerequisites/1/type"]),
    ({"/deployments": []}, ["/deployments"]),
    ({"/deployments": [{"name": "d", "taskRoles": {}}]}, ["/deployments/0/taskRoles"]),
    ({"/deployments": [{"name": "d", "taskRoles": {"worker": {}}, "x": 1}]}, OK),
    ({"/deployments": [{"name": "d", "taskRoles": {"worker": {}}}] * 2}, ["/deployments/1/name"]),
    ({"/deployments": [{"name": "d", "taskRoles": {"other": {}}}]}, OK),
    (
        {"/deployments": [{"name": "d", "taskRoles": {"worker": {"preCommands": []}}}]},
        ["/deployments/0/taskRoles/worker/preCommands"],
    ),
    (
        {"/deployments": [{"name": "d", "taskRoles": {"worker": {"x": 1}}}]},
        ["/deployments/0/taskRoles/worker/x"],
    ),
]


def problems_of(data: dict[str, Any], target: Any = "paijupyter") -> list[Problem]:
    return check(read(write(data)), target)


def errors(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize(("changes", "paths"), PROBES, ids=lambda value: str(value)[:60])
def test_o27_validator_probes(minimal: Make, changes: dict[str, Any], paths: list[str]) -> None:
    found = errors(problems_of(minimal(changes)))
    wanted = list(paths)
    if "/taskRoles/a b" in changes:
        wanted += [f"/taskRoles/a b/{key}" for key in ("commands", "dockerImage", "resourcePerInstance")]
        found = [problem for problem in found if problem.path in wanted]
    assert sorted({problem.path for problem in found}) == sorted(set(wanted))
    text = write(minimal(changes))
    for problem in found:
        assert re.match(r"`|[A-Z]", problem.message) and problem.message.endswith("."), problem.message
        assert problem.line is not None and problem.line <= text.count("\n")


def test_all_problems_come_at_once_in_the_order_of_the_screens(minimal: Make) -> None:
    data = minimal(
        {"/name": "a b", f"{W}/instances": 0, "/extra": {}, f"{W}/commands": ["<% $parameters.x %>"]}
    )
    data["taskRoles"]["worker"]["resourcePerInstance"]["memoryMB"] = 8
    found = problems_of(data)
    assert [p.severity for p in found] == ["error"] * 4 + ["warning"]
    lines = [p.line or 0 for p in errors(found)]
    assert lines == sorted(lines)
    assert found[0].path == "/name"


def test_messages_name_the_thing_first_and_what_to_do(minimal: Make) -> None:
    (found,) = errors(problems_of(minimal({f"{W}/instances": 0})))
    assert found.message == "`taskRoles.worker.instances` must be a whole number of at least 1."
    (found,) = errors(problems_of(minimal({f"{W}/comands": ["x"]})))
    assert (found.code, found.hint) == ("unknown-key", "Did you mean `commands`?")
    (found,) = errors(problems_of(minimal({f"{W}/dockerImage": "imag"})))
    assert found.hint == "Did you mean `image`?"


# --- traps: (changes, path, severity for our backends, severity for the original server)

TRAPS: list[tuple[dict[str, Any], str, str | None, str | None]] = [
    ({f"{W}/resourcePerInstance/cpu": 0}, f"{W}/resourcePerInstance/cpu", "warning", "warning"),
    ({f"{W}/resourcePerInstance/cpu": -1}, f"{W}/resourcePerInstance/cpu", "error", "error"),
    ({f"{W}/resourcePerInstance/memoryMB": 0}, f"{W}/resourcePerInstance/memoryMB", "warning", "warning"),
    ({f"{W}/resourcePerInstance/gpu": -1}, f"{W}/resourcePerInstance/gpu", "error", "error"),
    ({f"{W}/resourcePerInstance/gpu": 0}, f"{W}/resourcePerInstance/gpu", None, None),
    ({f"{W}/resourcePerInstance/memoryMB": 8}, f"{W}/resourcePerInstance/memoryMB", "warning", "warning"),
    ({f"{W}/resourcePerInstance/ports": {"a": 0}}, f"{W}/resourcePerInstance/ports/a", "warning", "warning"),
    ({f"{W}/resourcePerInstance/ports": {"a": -1}}, f"{W}/resourcePerInstance/ports/a", "error", "error"),
    (
        {f"{W}/resourcePerInstance/ports": {"a": 6006}},
        f"{W}/resourcePerInstance/ports/a",
        "warning",
        "warning",
    ),
    ({f"{W}/commands": [" "]}, f"{W}/commands", "warning", "warning"),
    (
        {f"{W}/completion": {"minFailedInstances": -5}},
        f"{W}/completion/minFailedInstances",
        "warning",
        "error",
    ),
    (
        {f"{W}/completion": {"minSucceededInstances": 9}},
        f"{W}/completion/minSucceededInstances",
        "warning",
        "warning",
    ),
    ({f"{W}/completion": {"minSucceededInstances": -1}}, f"{W}/completion/minSucceededInstances", None, None),
    ({f"{W}/taskRetryCount": 2}, f"{W}/taskRetryCount", "warning", "warning"),
    (
        {f"{W}/taskRetryCount": -3, "/extras": {"gangAllocation": False}},
        f"{W}/taskRetryCount",
        "warning",
        "error",
    ),
    ({f"{W}/taskRetryCount": 2, "/extras": {"gangAllocation": False}}, f"{W}/taskRetryCount", None, None),
    ({f"{W}/extraContainerOptions": {"shmMb": 1}}, f"{W}/extraContainerOptions/shmMb", "warning", "warning"),
    (
        {f"{W}/extraContainerOptions": {"shmMB": 4096}},
        f"{W}/extraContainerOptions/shmMB",
        "warning",
        "warning",
    ),
    ({f"{W}/commands": ["kill $$"]}, f"{W}/commands/0", "hint", "warning"),
    ({f"{W}/commands": ["echo $(FC_TASK_INDEX)"]}, f"{W}/commands/0", "warning", "warning"),
    ({"/extras": {"gangAllocation": "false"}}, "/extras/gangAllocation", "warning", "warning"),
    ({"/extras": {"storages": [{}]}}, "/extras/storages/0", "warning", "warning"),
    (
        {"/deployments": [{"name": "d", "taskRoles": {"workers": {}}}]},
        "/deployments/0/taskRoles/workers",
        "warning",
        "warning",
    ),
    ({"/secrets": {"a": 1}}, "/secrets/a", "warning", "warning"),
    ({"/secrets": {"a": "canary"}}, "/secrets/a", "warning", "warning"),
    ({"/secrets": {"a": ""}}, "/secrets/a", None, None),
    ({"/secrets": {"my-key": ""}}, "/secrets/my-key", "warning", "warning"),
    ({"/secrets": {"..": ""}}, "/secrets/..", "error", "error"),
    (
        {f"{W}/commands": ["x=<% $secrets.a.b %>"], "/secrets": {"a": {"b": ""}}},
        f"{W}/commands/0",
        "error",
        None,
    ),
    (
        {"/extras": {"paijupyter": {"version": 1, "env": {"PAI_JOB_NAME": "x"}}}},
        "/extras/paijupyter/env/PAI_JOB_NAME",
        "warning",
        "warning",
    ),
    ({"/defaults": {"virtualCluster": 5}}, "/defaults/virtualCluster", None, "error"),
    ({"/defaults": {"virtualCluster": ""}}, "/defaults/virtualCluster", None, "error"),
    (
        {"/extras": {"com.microsoft.pai.runtimeplugin": None}},
        "/extras/com.microsoft.pai.runtimeplugin",
        "warning",
        "error",
    ),
    (
        {"/extras": {"hivedScheduler": {"jobPriorityClass": "crit"}}},
        "/extras/hivedScheduler/jobPriorityClass",
        "warning",
        "error",
    ),
    (
        {"/extras": {"hivedScheduler": {"taskRoles": {"x": {}}}}},
        "/extras/hivedScheduler/taskRoles/x",
        "warning",
        "error",
    ),
    (
        {"/extras": {"hivedScheduler": {"taskRoles": {"worker": {"skuType": "a", "pinnedCellId": "b"}}}}},
        "/extras/hivedScheduler/taskRoles/worker",
        "warning",
        "error",
    ),
    (
        {"/prerequisites/0/auth": {"password": "<% $secrets.lost %>"}},
        "/prerequisites/0/auth/password",
        "error",
        "error",
    ),
]


@pytest.mark.parametrize(("changes", "path", "ours", "original"), TRAPS, ids=lambda value: str(value)[:60])
def test_traps(
    minimal: Make, changes: dict[str, Any], path: str, ours: str | None, original: str | None
) -> None:
    """openpai.md 2.4: accepted by the server, yet wrong."""
    for target, severity in (("paijupyter", ours), ("openpai", original)):
        found = [problem for problem in problems_of(minimal(changes), target) if problem.path == path]
        assert [problem.severity for problem in found] == ([severity] if severity else []), target


@pytest.mark.parametrize(
    ("names", "count"),
    [(["worker"], 0), (["Worker", "worker"], 2), (["ps_server"], 1), (["_"], 1), (["w" * 64], 1)],
)
def test_role_names_that_a_cluster_changes(minimal: Make, names: list[str], count: int) -> None:
    """openpai.md 5.4."""
    data = minimal()
    data["taskRoles"] = {name: data["taskRoles"]["worker"] for name in names}
    for target, severity in (("paijupyter", "warning"), ("openpai", "error")):
        found = [p for p in problems_of(data, target) if p.code == "role-name"]
        assert [p.severity for p in found] == [severity] * count


def test_o20_quoted_keys_that_openpais_mask_misses(minimal: Make) -> None:
    """openpai.md 4.4: a quoted `secrets` is not masked, a quoted key behind it is swallowed."""
    text = write(minimal({"/secrets": {"a": ""}}))
    assert not errors(check(read(text), "openpai"))
    quoted = text.replace("secrets:", '"secrets":')
    assert [p.code for p in errors(check(read(quoted), "openpai"))] == ["unmasked-secrets"]
    swallowed = text + '"extras": {}\n'
    assert [p.code for p in errors(check(read(swallowed), "openpai"))] == ["masked-key"]
    assert not errors(check(read(quoted), "paijupyter"))


def test_the_original_server_takes_100_kib(minimal: Make) -> None:
    data = minimal({f"{W}/commands": ["x" * 102_400]})
    assert [p.code for p in errors(problems_of(data, "openpai"))] == ["too-large"]
    assert not errors(problems_of(data))


def test_plugin_parameters_have_a_renderer_of_their_own(minimal: Make) -> None:
    """openpai.md 3.6: a number or an unknown key kills the init container."""
    data = minimal({"/parameters": {"n": 1, "s": "x"}, "/secrets": {"k": ""}})
    texts = ["<% $parameters.n %>", "<% $parameters.s %>", "<% $secrets.k %>", "<% $secrets.lost %>"]
    data["extras"] = {
        "com.microsoft.pai.runtimeplugin": [{"plugin": "cmd", "parameters": {"preCommands": texts}}]
    }
    found = errors(problems_of(data, "openpai"))
    assert [(p.code, p.path.rpartition("/")[2]) for p in found] == [
        ("plugin-number", "0"),
        ("unresolved-reference", "3"),
    ]


@pytest.mark.parametrize(
    ("path", "value", "dotted"),
    [
        ("/taskRoles/worker/commands", [], "taskRoles.worker.commands"),
        ("/taskRoles", {}, "taskRoles"),
        ("/prerequisites", [], "prerequisites"),
        ("/deployments", [], "deployments"),
    ],
)
def test_what_needs_something_in_it_says_so(minimal: Make, path: str, value: Any, dotted: str) -> None:
    assert (path, "too-few", f"`{dotted}` must not be empty.") in [
        (found.path, found.code, found.message) for found in errors(problems_of(minimal({path: value})))
    ]


# --- extras.paijupyter


@pytest.mark.parametrize(
    ("extras", "path", "words"),
    [
        ({}, "version", "is missing"),
        ({"version": 2}, "version", "must be 1"),
        ({"version": 1, "packag": "x"}, "packag", "Did you mean `package`?"),
        ({"version": 1, "package": "x"}, "package", "form"),
        ({"version": 1, "env": {"1A": "x"}}, "env/1A", "usable name"),
        ({"version": 1, "env": {"A": 1}}, "env/A", "must be a text; it is the number 1"),
        ({"version": 1, "timeLimit": 0}, "timeLimit", "at least 1"),
        ({"version": 1, "timeLimit": "60"}, "timeLimit", "whole number"),
        ({"version": 1, "install": "maybe"}, "install", "'never', 'if-missing' or 'always'"),
        ({"version": 1, "roles": {"worker": {"launcher": "x"}}}, "roles/worker/launcher", "'plain'"),
        (
            {"version": 1, "roles": {"worker": {"servic": True}}},
            "roles/worker/servic",
            "Did you mean `service`?",
        ),
        ({"version": 1, "outputs": "x"}, "outputs", "must be a list"),
        (None, "", "must be a mapping"),
    ],
)
def test_extras_paijupyter_is_checked_against_its_model(
    minimal: Make, extras: Any, path: str, words: str
) -> None:
    (found,) = errors(problems_of(minimal({"/extras": {"paijupyter": extras}})))
    assert found.path == f"/extras/paijupyter/{path}".rstrip("/")
    assert words in str(found)


def test_extras_of_a_role_that_is_not_there(minimal: Make) -> None:
    extras = {"paijupyter": {"version": 1, "roles": {"workers": {"service": True}}}}
    (found,) = problems_of(minimal({"/extras": extras}))
    assert (found.code, found.severity, found.hint) == ("unknown-role", "warning", "Did you mean `worker`?")


def test_o33_the_json_format_of_before_is_refused_by_name() -> None:
    text = '{"jobName": "a", "image": "b", "taskRoles": [{"name": "w", "taskNumber": 1, "command": "x"}]}'
    assert [p.code for p in errors(check(read(text)))] == ["old-protocol"]


def test_thousands_of_problems_are_bounded() -> None:
    text = "".join(f"k{number}: 1\n" for number in range(3_000))
    assert len(check(read(text))) == 1000
