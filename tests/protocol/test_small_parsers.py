"""Options to values: roles, amounts, parameters, environment, secrets. Their words when they are wrong."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.protocol import (
    SecretReference,
    format_duration,
    format_memory,
    parse_duration,
    parse_env,
    parse_memory,
    parse_parameter,
    parse_role,
    parse_secret,
)


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [
        ("8Gi", 8192),
        ("8GiB", 8192),
        ("512Mi", 512),
        ("1Ti", 1024**2),
        ("1Pi", 1024**3),
        ("1024Ki", 1),
        ("1Ki", 1),
        ("8G", 7630),
        ("500M", 477),
        ("1T", 953675),
        ("1P", 953674317),
        ("1e", 953674316407),
        ("2000k", 2),
        ("2000K", 2),
        ("1.5Gi", 1536),
        (".5Gi", 512),
        ("4096", 4096),
        (" 8 GB ", 7630),
    ],
)
def test_p40_memory_takes_all_suffixes(text: str, megabytes: int) -> None:
    assert parse_memory(text) == megabytes


@pytest.mark.parametrize("text", ["", "8Q", "-1Gi", "Gi", "8 Gi x", "0", "1e5", "8Gii", "9" * 5000, "８Gi"])
def test_p40_memory_refuses_what_is_none(text: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_memory(text)
    assert caught.value.message.startswith("Memory ")
    assert len(caught.value.message) < 150


@given(st.integers(1, 2**38))
def test_p40_memory_reads_what_it_formats(megabytes: int) -> None:
    shown = format_memory(megabytes)
    assert abs(parse_memory(shown) - megabytes) <= max(1, megabytes * 0.06)


def test_memory_on_screens() -> None:
    assert [format_memory(mb) for mb in (1, 512, 1024, 1536, 8192, 1024**2)] == [
        "1 MiB",
        "512 MiB",
        "1 GiB",
        "1.5 GiB",
        "8 GiB",
        "1 TiB",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("45s", 45),
        ("2h30m", 9000),
        ("1.5h", 5400),
        ("0.1h", 360),
        ("1 h 3 min", 3780),
        ("2 days", 172800),
        ("1w", 604800),
        ("1H", 3600),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "2x", "h", "2h30", "1e9", "99999999999", "1 month", "5 sandwiches"]
)
def test_durations_refuse_what_is_none(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"^Duration "):
        parse_duration(text)


def test_durations_on_screens() -> None:
    assert [format_duration(s) for s in (0, 41, 192, 9000, 270000)] == [
        "0 s",
        "41 s",
        "3 min 12 s",
        "2 h 30 min",
        "3 d 3 h",
    ]


def test_p5_p21_role_with_everything() -> None:
    role = parse_role(
        "worker:4,gpu=1,cpu=2,mem=8Gi,shm=1Gi,port=tb:1,port=http2,image=a/b:c,launcher=torchrun,"
        "min-failed=-1,min-succeeded=2,env.A=b=c"
    )
    assert (role.name, role.instances, role.gpu, role.cpu, role.memory_mb) == ("worker", 4, 1, 2, 8192)
    assert (role.shm_mb, dict(role.ports), role.image) == (1024, {"tb": 1, "http2": 1}, "a/b:c")
    assert (role.launcher, role.min_failed, role.min_succeeded) == ("torchrun", -1, 2)
    assert dict(role.env) == {"A": "b=c"}


@pytest.mark.parametrize(
    ("text", "service"),
    [("ps", True), ("ps:2", True), ("ps,service=false", False), ("w", False), ("w,service", True)],
)
def test_p36_services(text: str, service: bool) -> None:
    assert parse_role(text).is_service is service


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Role name"),
        ("Worker", "lower-case"),
        ("a b", "lower-case"),
        ("w" * 64, "at most 63"),
        ("worker:x", "`instances`"),
        ("worker:-1", "at least 0"),
        ("worker:", "`instances`"),
        ("worker,gpu=x", "`gpu`"),
        ("worker,gpu=-1", "at least 0"),
        ("worker,cpu=0", "at least 1"),
        ("worker,mem=lots", "amount of memory"),
        ("worker,colour=red", "unknown option `colour`"),
        ("worker,gpu", "without a value"),
        ("worker,gpu=1,gpus=2", "twice"),
        ("worker,port=a-b:1", "port label"),
        ("worker,port=a:0", "at least 1"),
        ("worker,launcher=magic", "unknown launcher"),
        ("worker,env.1A=b", "variable name"),
        ("worker,image=", "without a value"),
        ("worker,service=perhaps", "true or false"),
    ],
)
def test_roles_say_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_role(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lr=0.01", 0.01),
        ("n=3", 3),
        ("n=-3", -3),
        ("x=1e-4", 0.0001),
        ("b=true", True),
        ("b=null", None),
        ("b=True", "True"),
        ("l=[1, 2]", [1, 2]),
        ('d={"a": 1}', {"a": 1}),
        ('s="5"', "5"),
        ("s=yes", "yes"),
        ("s=010", "010"),
        ("s=", ""),
        ("s= a", " a"),
        ("s=a=b", "a=b"),
        ("s=NaN", "NaN"),
        ("s=[1, NaN]", "[1, NaN]"),
        ("s=1e999", "1e999"),
        ("s=12345678901234567890", "12345678901234567890"),
        ("my-key=1", 1),
    ],
)
def test_o19_parameters_are_typed(text: str, value: Any) -> None:
    found = parse_parameter(text)[1]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["lr", "=1", "a b=1", "a.b=1", "1a=2", ""])
def test_o19_parameters_refuse_names_that_no_command_could_refer_to(text: str) -> None:
    with pytest.raises(UsageProblem, match=r"^Parameter"):
        parse_parameter(text)


def test_p6_environment_variables() -> None:
    assert parse_env("A=b=c") == ("A", "b=c")
    assert parse_env("A=") == ("A", "")
    for wrong in ("A", "1A=b", "A B=c", "=x"):
        with pytest.raises(UsageProblem, match=r"^Environment"):
            parse_env(wrong)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("HF_TOKEN", SecretReference("HF_TOKEN", "ask")),
        ("HF_TOKEN=ask", SecretReference("HF_TOKEN", "ask")),
        ("HF_TOKEN=keyring:hf", SecretReference("HF_TOKEN", "keyring", "hf")),
        ("HF_TOKEN=keyring:team/hf token", SecretReference("HF_TOKEN", "keyring", "team/hf token")),
        ("HF_TOKEN=keyring", SecretReference("HF_TOKEN", "keyring", "HF_TOKEN")),
        ("HF_TOKEN=env:TOKEN", SecretReference("HF_TOKEN", "env", "TOKEN")),
        ("HF_TOKEN=k8s:secret/key", SecretReference("HF_TOKEN", "k8s", "secret/key")),
        ("env:TOKEN", SecretReference("TOKEN", "env", "TOKEN")),
    ],
)
def test_o20_secret_references(text: str, reference: SecretReference) -> None:
    assert parse_secret(text) == reference
    if "=" in text:
        assert parse_secret(str(reference)) == reference


@pytest.mark.parametrize(
    "text", ["HF_TOKEN=hf_canary42", "HF_TOKEN=env:1-canary42", "hf-canary42", "A=ask:canary42", "=canary42"]
)
def test_o20_a_value_in_place_of_a_reference_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_secret(text)
    assert "canary42" not in repr(caught.value.to_problem_json())


@given(st.text())
@pytest.mark.parametrize(
    "parse", [parse_role, parse_memory, parse_duration, parse_parameter, parse_env, parse_secret]
)
def test_no_text_ends_in_another_exception(parse: Any, text: str) -> None:
    try:
        parse(text)
    except UsageProblem as problem:
        assert problem.message[0].isupper() and problem.message.endswith(".")


def test_small_parsers_load_neither_pydantic_nor_yaml() -> None:
    code = (
        "import sys; from paijupyter.protocol import parse_role, build_document, FIELDS, with_suffix, decide;"
        "print([m for m in ('pydantic', 'yaml', 'IPython', 'tornado', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
