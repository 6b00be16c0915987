"""Images that are built for jobs (``build: true``, P16): what is built of what, and what is against it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import gpus, job_of, role, settings

from paijupyter.backends.kubernetes import building, bundle, gang, owner_record, render
from paijupyter.backends.kubernetes.building import Build
from paijupyter.backends.kubernetes.builds import cause
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.render import Frame

STORE = {"repository": "reg.example:5000/team/jobs", "secret": "login"}
BUILDS = settings(
    buildImage=STORE,
)
WANTED = {"build": True}
NEEDS = "numpy\n\ntorch==2.4  # the old one\n"


def frame_of(job, of=BUILDS, needs=NEEDS, cluster=Cluster()):  # noqa: B008 - immutable
    found = Frame(job, of, cluster, gang.choose(job, of, cluster), "paijupyter-boot-0123", ())
    return replace(found, builds=building.builds_of(job, of, needs))


def said(job, of=BUILDS, needs: str | None = NEEDS, cluster=Cluster()):  # noqa: B008
    return [(each.severity, each.message) for each in building.problems(job, of, cluster, needs)]


def test_tasks_run_in_the_built_image_and_may_pull_it():
    job = job_of({"ps": role(), "worker": role(2, resourcePerInstance=gpus(1))}, ours=WANTED)
    found = frame_of(job)
    build = found.builds["worker"]
    assert build == found.builds["ps"] and build.image.startswith("reg.example:5000/team/jobs:")
    jobs = [each for each in render.attempt(found, 0, {}) if each["kind"] == "Job"]
    for each in jobs:
        pod = each["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == build.image
        assert pod["imagePullSecrets"] == [{"name": "login"}]
    owner = render.owner(found, owner_record.record(found))
    assert owner_record.builds(owner) == found.builds, "another host makes the next attempt of the same"


def test_the_job_that_builds_needs_no_privileges():
    build = frame_of(job_of({"worker": role()}, ours=WANTED)).builds["worker"]
    job = building.object_of(build, BUILDS, Cluster(version=(1, 34)), "paijupyter.io/waits-1")
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "privileged": False,
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
    }
    assert not any("hostPath" in each for each in pod["volumes"])
    assert pod["automountServiceAccountToken"] is False
    assert len(job["metadata"]["name"]) <= 63
    old = building.object_of(build, BUILDS, Cluster(version=(1, 29)))["spec"]["template"]
    assert "appArmorProfile" not in old["spec"]["containers"][0]["securityContext"]
    assert list(old["metadata"]["annotations"].values()) == ["unconfined"]


@given(words=st.text(max_size=40), index=st.text(max_size=40))
def test_words_of_users_are_arguments_and_never_lines_of_a_dockerfile(words, index):
    """No shell text made of user values, and no instruction either."""
    lines = Build("a", "", words, index, "r").dockerfile.splitlines()
    instructions = ["FROM", "ARG", "ARG", "ARG", "USER", "COPY", "RUN", "USER"]
    assert [line.partition(" ")[0] for line in lines] == instructions
    run = json.loads(lines[6].partition(" ")[2])
    assert run[0] == words and (not index or run[run.index("--index-url") + 1] == index)


def test_the_script_is_one_of_posix():
    script = str(files("paijupyter.backends.kubernetes") / "build.sh")
    assert subprocess.run(["sh", "-n", script], capture_output=True, text=True).stderr == ""


@given(st.sampled_from(["base", "requirements", "python", "index"]), st.text(min_size=1))
def test_whatever_goes_into_an_image_is_in_its_hash(field, more):
    build = Build("a", "b\n", "c", "d", "r")
    other = replace(build, **{field: getattr(build, field) + more})
    assert other.key != build.key and other.name != build.name
    assert replace(build, repository="s").key == build.key
    assert replace(build, repository="s").name != build.name


def test_lines_that_say_nothing_make_no_other_image():
    job = job_of({"worker": role()}, ours=WANTED)
    one, other = (frame_of(job, needs=text).builds["worker"] for text in ("numpy\n", "\n numpy  \n\n"))
    assert one == other


def test_the_plan_says_what_is_built():
    assert said(job_of({"worker": role()}, ours=WANTED), needs=NEEDS) == [
        (
            "hint",
            "Image `reg.example:5000/team/jobs:"
            f"{frame_of(job_of({'worker': role()}, ours=WANTED)).builds['worker'].key}` is built of "
            "`registry.example/team/torch:2` and 2 lines of requirements, unless the registry has it.",
        )
    ]


LOGIN = {"auth": {"username": "ada", "password": "x"}, "uri": "reg.example/python:3"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"of": settings(image="python:3")}, "Profile `lab` names no registry for images that are built"),
        ({"cluster": Cluster(pod_security="restricted")}, "The namespace enforces the pod security `restr"),
        ({"needs": None}, "There is nothing to build: the package has no requirements."),
        ({"needs": " \n"}, "There is nothing to build: the package has no requirements."),
        ({"needs": "x" * 100_001}, "The requirements are larger than 100 kB."),
        ({"needs": "numpy\n-e .\n"}, "Requirement `-e .` is a file of the package"),
        ({"needs": "-r more.txt"}, "Requirement `-r more.txt` is a file of the package"),
        ({"needs": "./wheels/a.whl"}, "Requirement `./wheels/a.whl` is a file of the package"),
        ({"needs": "a @ file:///b.whl"}, "Requirement `a @ file:///b.whl` is a file of the package"),
    ],
)
def test_what_is_against_it_is_said(change, words):
    [(severity, message)] = said(job_of({"worker": role()}, ours=WANTED), **change)
    assert severity == "error" and message.startswith(words)


def test_a_name_with_a_line_end_is_no_name():
    job = job_of({"worker": role()}, ours=WANTED, image={"uri": "python:3\nRUN evil"})
    assert said(job) == [("error", "`python:3\nRUN evil` is no name of an image.")]


def test_a_login_of_the_document_is_no_login_of_others():
    [(severity, message)] = said(job_of({"worker": role()}, ours=WANTED, image=LOGIN))
    assert severity == "error" and "login" in message


@pytest.mark.parametrize(
    "line", ["numpy", "a==1", "--index-url https://x/", "git+https://h/r", "e-lib", "requests"]
)
def test_what_an_index_or_a_server_has_can_be_built(line):
    assert [each[0] for each in said(job_of({"worker": role()}, ours=WANTED), needs=line)] == ["hint"]


def test_jobs_that_are_built_for_are_no_bundle():
    """Each waits for the image, and then begins by itself."""
    jobs = [
        (replace(job_of({"worker": role()}, ours=ours), group="g", id=f"j{number}"), {})
        for ours in ({}, WANTED)
        for number in range(12)
    ]
    bundles, alone = bundle.split(jobs, BUILDS, Cluster(version=(1, 34)))
    assert [len(each) for each in bundles] == [12]
    assert all(building.is_wanted(job) for job, _ in alone)


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (
            "#7 [3/3] RUN pip\n#7 1.5 ERROR: No matching distribution found for x==1\n"
            "#7 ERROR: process did not complete\n"
            "------\nerror: failed to solve: process did not complete successfully: exit code: 1\n"
            "[paijupyter] The image is not built.\n",
            "No matching distribution found for x==1",
        ),
        (
            "#8 pushing layers\nerror: failed to solve: failed to push reg/x: 401 Unauthorized\n"
            "[paijupyter] The image is not built.\n",
            "failed to push reg/x: 401 Unauthorized",
        ),
        (
            "[rootlesskit:parent] error: failed to setup UID/GID map: newuidmap failed\n"
            "[paijupyter] BuildKit does not start here.\n",
            "failed to setup UID/GID map: newuidmap failed",
        ),
        ("[paijupyter] The image to build on cannot be used: a\n", "The image to build on cannot be used: a"),
        ("\n", "it does not say why"),
    ],
)
def test_of_a_log_the_line_that_says_why(log, why):
    assert cause(log) == why


def test_a_role_may_have_a_python_of_its_own():
    ours = {**WANTED, "kubernetes": {"roles": {"ps": {"pythonPath": "/opt/python"}}}}
    builds = frame_of(job_of({"ps": role(), "worker": role()}, ours=ours)).builds
    assert (builds["ps"].python, builds["worker"].python) == ("/opt/python", "python3")
    assert building.from_json(json.loads(json.dumps(building.to_json(builds)))) == builds
