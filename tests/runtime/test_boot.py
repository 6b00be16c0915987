"""The whole life of a task in a real boot process (P11, P20, O6, O31)."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from paijupyter.backends.boot import boot_zipapp


def test_runs_the_package_with_cwd_and_path(task, python):
    """P11: the working directory is the package, which is first on PYTHONPATH."""
    task.python = python
    task.package(
        {
            "train.py": "import helper, os, sys; print(helper.WORD, os.getcwd(), sys.path[1])",
            "helper.py": "WORD = 'dzień'",
            "bin/tool": ("100755", b"#!/bin/sh\necho tool $1\n"),
            "data/large.bin": os.urandom(300_000),
        }
    )
    record = task.run("python -X utf8 train.py\nbin/tool 7\nwc -c < data/large.bin")
    assert record["code"] == 0, task.log
    assert task.log == f"dzień {task.work} {task.work}\ntool 7\n300000\n"
    assert (record["signal"], record["reason"], record["message"]) == (None, "", "")
    assert record["lastLines"] == task.log.splitlines()
    assert record["startedAt"] <= record["endedAt"]


def test_leaves_only_records_behind(task):
    task.package({"a.txt": "a"})
    task.secrets(TOKEN="a-token-value")
    task.run("touch b; mkdir c; chmod 500 c")
    assert sorted(os.listdir(task.folder)) == [
        "environment.json",
        "exit.json",
        "log",
        "log.index",
        "ready",
        "spec.json",
        "started.json",
    ]
    assert not task.private.exists()
    for name in ("exit.json", "log", "log.index", "ready", "started.json"):
        assert stat.S_IMODE((task.folder / name).stat().st_mode) == 0o600


def test_says_who_it_is_before_the_command_runs(task):
    """Architecture, decision 4: re-adoption is by boot id, pid and start time."""
    record = task.run(
        f"""
        pid=$(grep -o '"pid": [0-9]*' {task.folder}/started.json | grep -o '[0-9]*')
        grep -o ' .*' /proc/$pid/stat | cut -d' ' -f 22
        ps -o sid= -p $pid
        """
    )
    started = json.loads((task.folder / "started.json").read_text())
    assert record["code"] == 0
    assert started["pid"] == task.process.pid
    assert task.log.split() == [started["startTime"], str(started["pid"])], "start time, own session"
    assert len(started["bootId"]) == 36
    assert record["startedAt"] == started["at"]


def test_a_failing_command_stops_those_after_it(task):
    """O6, O31: the exit status decides; errexit, nounset and pipefail are on."""
    assert task.run("echo one\nfalse\necho two")["code"] == 1
    assert task.log == "one\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [("echo $no_such_variable", 1), ("false | true", 1), ("exit 3", 3), ("exit 0\nfalse", 0), ("", 0)],
)
def test_shell_options(task, command, code):
    assert task.run(command)["code"] == code


def test_comments_continuations_and_heredocs_work(task):
    """O6: what OpenPAI's tutorial forbids."""
    command = (
        'x=1 # why\n# a comment\necho a \\\n  b\ncat <<END\n  $x kept\nEND\necho "$$" | grep -q "^[0-9]"'
    )
    assert task.run(command)["code"] == 0
    assert task.log == "a b\n  1 kept\n"


def test_lines_of_messages_are_those_of_the_command(task):
    record = task.run("true\ntrue\nno-such-program")
    assert record["code"] == 127
    assert "user.sh: line 3: no-such-program" in task.log
    assert record["message"] == "The command was not found (exit status 127)."


def test_output_and_errors_keep_their_order(task):
    task.run("for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done")
    assert task.log == "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))


def test_a_closed_pipe_kills_as_usual(task):
    """Python ignores SIGPIPE; the user's programs must not inherit that."""
    assert task.run("set +o pipefail; yes | head -1; echo ${PIPESTATUS[0]}")["code"] == 0
    assert task.log == "y\n141\n"


def test_stdin_is_empty(task):
    task.run("cat; read x || echo end")
    assert task.log == "end\n"


def test_the_processes_inherit_no_other_files(task):
    """A spawner's lock, say: it would be held until the last process of the user has gone."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    task.spec["command"] = "ls -l /proc/self/fd | grep -v '/proc/' | awk '{print $9}' | xargs"
    task.start(pass_fds=(writer,))
    os.close(writer)
    os.close(reader)
    task.end()
    assert task.log.split() == ["0", "1", "2"]


def test_no_bash_is_explained(task):
    """Differences from the original: an image without bash says so."""
    empty = task.home / "bin"
    empty.mkdir()
    task.variables["PATH"] = str(empty)
    task.spec["python"] = None
    task.spec["env"] = {"PATH": str(empty)}
    record = task.run("true")
    assert (record["code"], record["reason"]) == (None, "no-shell")
    assert record["message"] == "The task has no bash on its PATH, which its command needs."
    assert task.log == f"[paijupyter] {record['message']}\n"


def test_a_mistake_of_ours_leaves_a_record(task):
    task.spec["role"] = "nobody"
    record = task.run()
    assert (record["reason"], record["code"]) == ("internal", None)
    assert "Traceback" in task.log
    assert not task.private.exists()


def test_a_value_too_long_for_a_variable_can_be_read_from_its_file(task):
    task.secrets(LONG="x" * 200_000)
    task.spec["parameters"] = {"many": list(range(50_000))}
    assert (
        task.run('wc -c < "$PAI_SECRETS_DIR/LONG"; echo ${LONG:-none} ${PAI_PARAM_MANY:-none}')["code"] == 0
    )
    assert task.log.splitlines()[-2:] == ["200000", "none none"]
    assert "[paijupyter] The variable LONG is too long for an environment and is left out." in task.log


def test_python_means_the_given_interpreter(task):
    """Architecture, decision 9: a local task runs with the submitting kernel's interpreter."""
    odd = task.home / "bin" / "python3.99"
    odd.parent.mkdir()
    odd.write_text('#!/bin/sh\necho "it is $0 $1"\n')
    odd.chmod(0o755)
    task.spec["python"] = str(odd)
    task.run("python a; python3 b; python3.99 c")
    assert task.log == "".join(f"it is {odd} {word}\n" for word in "abc")


def test_parameters_and_places(task):
    """P6, P7: parameters as text and typed; places for output and metrics."""
    task.spec["parameters"] = {"lr": 0.01, "epochs": 3.0, "fast": True, "names": ["a", "b"], "none": None}
    task.spec["env"] = {"PATH_LIKE": "x y", "PYTHONPATH": "/mine"}
    task.run(
        'echo "$PAI_PARAM_LR $PAI_PARAM_lr $PAI_PARAM_EPOCHS"\n'
        'echo "$PAI_PARAM_FAST $PAI_PARAM_NAMES|$PAI_PARAM_NONE|"\n'
        'cat "$PAI_PARAMETERS_FILE"; echo; echo "$PYTHONPATH $PATH_LIKE"\n'
        'echo "{}" > "$PAI_METRICS_FILE"; echo model > "$PAI_OUTPUT_DIR/model"'
    )
    lines = task.log.splitlines()
    assert lines[:2] == ["0.01 0.01 3", 'true ["a","b"]||']
    assert json.loads(lines[2]) == task.spec["parameters"]
    assert lines[3] == f"{task.work}:/mine:{task.private}/library x y"
    assert (task.folder / "metrics.jsonl").read_text() == "{}\n"
    assert (task.output / "model").read_text() == "model\n"


def test_the_start_imports_little(task):
    """A task of a second must not wait for what only other tasks need."""
    archive, *_ = (word for word in task.prepare() if word.endswith(".pyz"))
    command = [sys.executable, "-X", "importtime", "-I", "-S", archive, str(task.folder / "spec.json")]
    said = subprocess.run(command, env=task.variables, capture_output=True, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    assert "paiboot.environment" in imported
    heavy = {"typing", "subprocess", "tempfile", "threading", "hashlib", "socket", "pathlib", "dataclasses"}
    ours = {f"paiboot.{name}" for name in ("requirements", "missing", "outputs", "unpack", "launchers.jax")}
    assert imported & (heavy | ours) == set()


def test_builders_at_once_make_one_archive(tmp_path):
    """And none of them imports the runtime."""
    program = (
        "import sys; from pathlib import Path; from paijupyter.backends.boot import boot_zipapp\n"
        "print(boot_zipapp(Path(sys.argv[1]))); assert 'paijupyter.runtime' not in sys.modules"
    )
    builders = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = {builder.communicate(timeout=60)[0] for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0, 0, 0]
    (path,) = said
    assert os.listdir(Path(path.strip()).parent) == ["boot.pyz"]


def test_the_archive_is_reproducible(tmp_path):
    first = boot_zipapp(tmp_path / "a")
    second = boot_zipapp(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    assert first.parent.name == second.parent.name
    assert boot_zipapp(tmp_path / "a") == first
    assert os.listdir(first.parent) == ["boot.pyz"]
    with zipfile.ZipFile(first) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        names = archive.namelist()
    assert "__main__.py" in names
    assert "paiboot/launchers/torchrun.py" in names


def test_the_tasks_side_is_importable_and_private(task, python):
    """P10, P41: in any image, alone, and gone with the task; the job's key is in a file, not a variable."""
    task.python = python
    task.spec["key"] = "k" * 64
    task.spec["python"] = python
    task.run(
        "python -c 'import pai_tasks; print(pai_tasks.shard(range(3)), pai_tasks.__name__)'\n"
        'cat "$PAI_JOB_KEY_FILE"; echo; stat -c %a "$PAI_JOB_KEY_FILE"; env | grep -c kkkk || true'
    )
    assert task.log == f"[0, 1, 2] pai_tasks\n{'k' * 64}\n600\n0\n"
    assert not task.private.exists()


def test_a_users_own_module_of_that_name_wins(task):
    task.package({"pai_tasks.py": "print('mine')"})
    task.run("python -c 'import pai_tasks'")
    assert task.log == "mine\n"
