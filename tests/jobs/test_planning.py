"""The plan: everything at once, in order, and without a trace (P18, P22, O27)."""

from __future__ import annotations

import io

import pytest

from paijupyter.errors import PaiJupyterError, Problem, UsageProblem
from paijupyter.package.manifest import Entry, Manifest

pytestmark = pytest.mark.asyncio


async def test_a_plan_says_what_would_be_submitted_and_does_nothing(bench, kit):
    plan = await bench.service.plan(bench.request())
    assert plan["ok"] is True and plan["problems"] == []
    assert plan["name"].startswith("mnist-") and plan["profile"] == "local"
    assert plan["document"] == kit.document()
    assert plan["submittedDocument"] == f"# submitted\nname: {plan['name']}\n"
    assert plan["roles"] == [
        {"name": "worker", "instances": 2, "cpu": 1, "memoryMB": 512, "gpu": 0},
        {"name": "ps", "instances": 1, "cpu": 1, "memoryMB": 256, "gpu": 0},
    ]
    assert plan["objects"] == [{"kind": "Process", "name": plan["name"]}]
    assert (plan["starts"], plan["package"]) == ("now", None)
    assert plan["parameters"] == {"lr": 0.1, "epochs": 20}
    assert list((bench.data / "jobs").iterdir()) == [] and bench.backend.told == []


@pytest.mark.parametrize(
    "text", ["", "[", "just words", "- a\n- b", "name: x", "taskRoles: 3", "\0", "a: &a [*a]"]
)
async def test_a_plan_never_raises_for_what_is_wrong_with_the_document(bench, text):
    plan = await bench.service.plan(bench.request(document=text or " "))
    assert plan["ok"] is False
    assert [each for each in plan["problems"] if each["severity"] == "error"]
    assert plan["document"] == (text or " ")


async def test_problems_are_in_order_errors_warnings_hints(bench, kit):
    await bench.submit()
    bench.backend.problems = [
        Problem("hint", "h", "Hint."),
        Problem("error", "e", "Error here."),
        Problem("warning", "w", "Warning."),
    ]
    plan = await bench.service.plan(bench.request(secrets={"X": {"value": "1"}}, names=[]))
    assert [each["severity"] for each in plan["problems"]] == ["error", "warning", "warning", "hint"]
    assert plan["ok"] is False


async def test_an_unresolved_reference_is_an_error_with_its_line(bench, kit):
    text = kit.document().replace("$parameters.lr", "$parameters.rate")
    plan = await bench.service.plan(bench.request(document=text))
    errors = [each for each in plan["problems"] if each["severity"] == "error"]
    assert errors and errors[0]["line"] == text[: text.index("$parameters.rate")].count("\n") + 1


async def test_an_unknown_profile_is_a_problem_beside_the_others(bench):
    plan = await bench.service.plan(
        bench.request(profile="gpu-cluster", secrets={"X": {"value": "1"}}, names=[])
    )
    assert [each["code"] for each in plan["problems"]] == ["unknown-profile", "secret-unused"]
    assert "local" in plan["problems"][0]["hint"]


async def test_a_missing_package_is_a_problem_and_the_backend_is_asked_all_the_same(bench):
    plan = await bench.service.plan(bench.request(package="b" * 64))
    assert [each["code"] for each in plan["problems"]] == ["package-missing"]
    assert plan["starts"] == "now" and not plan["ok"]
    plan = await bench.service.plan(bench.request(package="no hash"))
    assert not plan["ok"]


async def test_a_backend_that_cannot_plan_is_a_problem(bench):
    await bench.submit()

    async def broken(job):
        raise ValueError("boom")

    async def refusing(job):
        raise PaiJupyterError("quota", "Quota of team-a is used up.", "Wait for a job to end.")

    bench.backend.plan = broken
    plan = await bench.service.plan(bench.request())
    assert [each["code"] for each in plan["problems"]] == ["backend-failed"] and not plan["ok"]
    bench.backend.plan = refusing
    plan = await bench.service.plan(bench.request())
    assert plan["problems"][0]["hint"] == "Wait for a job to end."


async def test_a_request_that_is_none_is_a_usage_problem(bench):
    with pytest.raises(UsageProblem):
        await bench.service.plan({"document": None})


def stored(bench, *paths):
    import hashlib

    empty = hashlib.sha256(b"").hexdigest()
    manifest = Manifest([Entry(path, "100644", 0, empty) for path in paths])
    bench.service.packages.put_pack(manifest, io.BytesIO(b""))
    bench.service.packages.commit(manifest)
    return manifest.sha256


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("python trian.py --lr 1", "trian.py"),
        ("python3 -u ./sub/x.py", "sub/x.py"),
        ("./run.sh", "run.sh"),
        ("bash steps.sh", "steps.sh"),
        ("python train.py", None),
        ("python -m trainer", None),
        ("cd elsewhere\n        python trian.py", None),
        ("python $SCRIPT", None),
        ("python /opt/x.py", None),
        ("echo 'python trian.py", None),
    ],
)
async def test_a_program_that_the_package_lacks_is_a_hint(bench, kit, command, named):
    sha256 = stored(bench, "train.py")
    text = kit.document().replace("- echo <% $parameters.lr %>", f"- |\n        {command}")
    plan = await bench.service.plan(bench.request(document=text, package=sha256))
    hints = [each for each in plan["problems"] if each["code"] == "entry-not-in-package"]
    assert plan["ok"] is True
    assert [f"`{named}`" in each["message"] for each in hints] == ([True] if named else [])
    assert plan["package"] == {"sha256": sha256, "files": 1, "bytes": 0}


async def test_the_package_named_in_the_document_counts(bench, kit):
    sha256 = stored(bench, "a.py")
    text = kit.document() + f"extras: {{paijupyter: {{version: 1, package: {sha256}}}}}\n"
    assert (await bench.service.plan(bench.request(document=text)))["package"]["sha256"] == sha256
    assert (await bench.submit(document=text))["packageSha256"] == sha256


async def test_odd_numbers_in_parameters_are_told_in_strict_json(bench, kit):
    text = kit.document().replace("lr: 0.1", "lr: .nan")
    assert (await bench.service.plan(bench.request(document=text)))["parameters"]["lr"] == "NaN"


async def test_an_image_is_built_only_where_one_can_be(bench, kit):
    """P16: elsewhere `build: true` is refused, and never passed over."""
    text = kit.document() + "extras: {paijupyter: {version: 1, build: true}}\n"
    plan = await bench.service.plan(bench.request(document=text))
    [problem] = [each for each in plan["problems"] if each["code"] == "no-build"]
    assert (plan["ok"], problem["severity"], problem["path"]) == (False, "error", "/extras/paijupyter/build")
    assert "--install if-missing" in problem["hint"]
    bench.backend.features = frozenset({"build"})
    assert (await bench.service.plan(bench.request(document=text)))["ok"] is True
