"""A secret is a file, a variable and a tag in the task, and rests nowhere else (decision 8; O20)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paijupyter.runtime.failure import Failure
from paijupyter.runtime.secret_files import fill

CANARY = "canary-7f3a9c-&<>\"'$HOME`id`"


def test_the_canary_rests_nowhere(task, until):
    """The value is in no file of the job, in no argument of a process and not in the log."""
    task.secrets(TOKEN=CANARY, SHORT="xy")
    task.package({"x.py": "import os; print(os.environ['TOKEN'])"})
    task.spec["command"] = (
        f"mkfifo {task.home}/go\n"
        "cat <<'END'\n<% $secrets.TOKEN %> <%$secrets.TOKEN%> <%& $secrets.TOKEN %>\nEND\n"
        'python x.py; cat "$PAI_SECRETS_DIR/TOKEN"; echo; base64 -w0 < "$PAI_SECRETS_DIR/TOKEN"; echo\n'
        'for part in "${TOKEN:0:10}" "${TOKEN:10}"; do printf %s "$part"; sleep 0.1; done; echo\n'
        f"echo waiting; read x < {task.home}/go; exit 7"
    )
    task.start()
    until(lambda: "waiting" in task.log)
    own = [path for path in task.private.glob("**/*") if "library" not in path.parts]
    assert len(own) == 5, "user.sh, parameters, secrets and two of them"
    for path in task.private.glob("**/*"):
        assert path.stat().st_mode & 0o077 == 0
    for path in [*task.folder.rglob("*"), *task.output.rglob("*")]:
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path
    for process in Path("/proc").glob("[0-9]*"):
        try:
            assert CANARY.encode() not in (process / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    with open(task.home / "go", "w") as go:
        go.write("\n")
    record = task.end()
    assert record["code"] == 7
    assert task.log.splitlines()[:5] == ["*** *** ***", "***", "***", "***", "***"]
    assert "canary" not in (task.folder / "exit.json").read_text()
    assert not task.private.exists()


def test_secrets_arrive_raw(task):
    """Differences from the original, which escapes `&` as HTML."""
    task.secrets(TOKEN=CANARY)
    task.run(
        "read -r line <<'END'\n<% $secrets.TOKEN %>\nEND\n"
        '[ "$line" = "$TOKEN" ] && [ "$(cat $PAI_SECRETS_DIR/TOKEN)" = "$TOKEN" ] && echo same ${#TOKEN}'
    )
    assert task.log == f"same {len(CANARY)}\n"


def test_values_are_not_looked_into():
    """One pass: a value that looks like a tag stays as it is."""
    secrets = {"A": "<% $secrets.B %>", "B": "b"}
    assert fill("1 <%$secrets.A%> 2 <%& $secrets.B %>", secrets) == "1 <% $secrets.B %> 2 b"


def test_an_unknown_secret_fails_before_anything_runs(task):
    record = task.run("echo ran; echo '<% $secrets.NOPE %>'")
    assert (record["reason"], record["code"]) == ("secret", None)
    assert record["message"] == "The secret `NOPE` is used and the job does not have it."
    assert "ran" not in task.log.splitlines()
    with pytest.raises(Failure):
        fill("<% $secrets.A %>", {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "The secrets of this job are gone from this machine."),
        ("{", "The secrets of this job cannot be read."),
        ('{"../x": "abcdef"}', "The secret `../x` has a name that cannot be a file or a variable."),
        (r'{"A": "a\u0000b"}', "The secret `A` holds a zero byte, which no variable can."),
    ],
)
def test_secrets_that_cannot_be_used(task, content, message):
    file = task.home / "secrets.json"
    if content is not None:
        file.write_text(content)
    task.spec["secrets"] = str(file)
    record = task.run("echo ran")
    assert (record["reason"], record["message"]) == ("secret", message)
    assert task.log == f"[paijupyter] {message}\n"


def test_the_private_folder_goes_whatever_happens(task, until):
    task.secrets(TOKEN=CANARY)
    task.spec["graceSeconds"] = 0.2
    task.spec["command"] = "trap '' TERM; chmod 500 $PAI_SECRETS_DIR; echo on; while true; do sleep 1; done"
    task.start()
    until(lambda: "on" in task.log)
    assert task.private.exists()
    os.kill(task.process.pid, 15)
    assert task.end()["reason"] == "stopped"
    assert not task.private.exists()


def test_what_an_earlier_boot_left_is_replaced(task):
    (task.private / "secrets").mkdir(parents=True)
    (task.private / "secrets" / "OLD").write_text("old")
    task.secrets(NEW="new-value")
    assert task.run('ls "$PAI_SECRETS_DIR"; stat -c %a "$PAI_SECRETS_DIR/.."')["code"] == 0
    assert task.log == "NEW\n700\n"
