"""Every public job document is read, or refused in words (openpai.md 13, openpai-measured.md 2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paijupyter.errors import InvalidDocument, has_errors
from paijupyter.protocol import check, edit, read, render_commands, write


def job_files(corpus: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(corpus.rglob("*")):
        if path.suffix in (".yaml", ".yml", ".json"):
            yield str(path.relative_to(corpus)), path.read_bytes()


def verdicts(corpus: Path) -> dict[str, str]:
    """File → remark of the index, for the files that it calls valid or rejected."""
    rows = re.findall(r"^\| (\S+\.ya?ml) \| (.*) \|$", (corpus / "INDEX.md").read_text(), re.MULTILINE)
    return {name: note for name, note in rows if "valid;" in note or "rejected" in note}


def test_o27_o33_every_file_is_read_or_refused(corpus: Path) -> None:
    count = 0
    for name, text in job_files(corpus):
        count += 1
        try:
            document = read(text)
        except InvalidDocument as refused:
            assert refused.problems and str(refused), name
            continue
        for target in ("paijupyter", "openpai"):
            check(document, target)  # type: ignore[arg-type]
        assert read(write(document.data)).data == document.data, name
    assert count > 60


def test_o27_our_verdict_is_the_servers(corpus: Path) -> None:
    found = {}
    for name, note in verdicts(corpus).items():
        try:
            document = read((corpus / name).read_bytes())
        except InvalidDocument:
            found[name] = ("rejected" in note, "unreadable")
            continue
        problems = check(document)
        found[name] = (("rejected" in note) == has_errors(problems), "; ".join(map(str, problems)))
        if not has_errors(problems):
            assert set(render_commands(document)) == set(document.data["taskRoles"])
            assert not has_errors(check(read(write(document.data)), "openpai"))
    wrong = {name: why for name, (same, why) in found.items() if not same}
    assert not wrong
    assert len(found) > 45


def test_o27_an_edit_of_any_of_them_changes_one_line(corpus: Path) -> None:
    for name, note in verdicts(corpus).items():
        if "rejected" in note:
            continue
        text = (corpus / name).read_bytes().decode()
        document = read(text)
        role = next(iter(document.data["taskRoles"]))
        patch = [{"op": "replace", "path": f"/taskRoles/{role}/instances", "value": 77}]
        new = edit(text, patch)[0]
        changed = [
            pair for pair in zip(text.splitlines(), new.splitlines(), strict=True) if pair[0] != pair[1]
        ]
        assert len(changed) == 1 and "77" in changed[0][1], name


def test_deployments_and_data_references_render(corpus: Path) -> None:
    """tensorflow-cifar10.yaml: pre and post commands, data, script and output, two roles."""
    commands = render_commands(read((corpus / "pai/marketplace-v2/tensorflow-cifar10.yaml").read_bytes()))
    assert commands["worker"].startswith(
        "rm /usr/local/cuda/lib64/stubs/libcuda.so.1\nwget -qO- https://www.cs"
    )
    assert "--model=resnet20 --batch_size=32" in " ".join(commands["worker"].split())
    assert commands["psserver"].endswith('echo "Uploading data ..."'), "what follows ` #` is a YAML comment"
    assert "<%" not in "".join(commands.values())


@pytest.mark.parametrize(
    "kind", ["cmd_test_job", "cmd_with_callbacks_test_job", "cmd_with_prerequisites_test_job"]
)
def test_plugins_of_the_original_are_no_error(corpus: Path, kind: str) -> None:
    document = read((corpus / f"openpai-runtime/test/{kind}.yaml").read_bytes())
    assert not has_errors(check(document, "openpai"))
