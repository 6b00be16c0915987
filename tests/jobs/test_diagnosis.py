"""Each failure in words: what, where, what next (screens, principle 4)."""

from __future__ import annotations

import inspect

import pytest

from paijupyter.jobs import diagnosis
from paijupyter.jobs.diagnosis import RULES, Facts, explain

W = "/home/ann/.local/share/jupyter/paijupyter/jobs/x/tasks/worker-0/0/work/"
TRACE = ("Traceback (most recent call last):", f'  File "{W}train.py", line 12, in <module>', "    main()")


def facts(*lines: str, **more) -> Facts:
    return Facts(task="worker-0", last_lines=lines, **more)


# rule, facts, what the sentence says, what the advice says
CASES = [
    ("machine_restarted", facts(reason="machine-restarted"), "machine was restarted", "Run it again"),
    ("lost", facts(reason="lost"), "`worker-0` is gone", "end of its log"),
    (
        "lost",
        facts(reason="lost", message="Boot process vanished."),
        "Boot process vanished.",
        "run it again",
    ),
    ("deadline", facts(reason="deadline"), "time limit", "more time"),
    (
        "barrier_timeout",
        facts(reason="barrier-timeout", message="`ps-0` was not ready."),
        "`ps-0`",
        "not ready",
    ),
    ("preempted", facts(reason="preempted"), "make room", "again"),
    ("preempted", facts(reason="evicted", message="worker-0 was evicted by its node"), "evicted", "again"),
    ("preempted", facts(reason="node-lost", message="worker-0 was lost with its node"), "lost", "again"),
    ("not_started", facts(reason="start", message="worker-0: no `python3` in its image"), "python3", "image"),
    (
        "notebook_cell",
        facts("ValueError: bad", "[paijupyter] Cell 7 raised ValueError: bad", code=1),
        "Cell 7 raised ValueError: bad.",
        "traceback in the executed notebook",
    ),
    (
        "notebook_cell",
        facts(
            "ModuleNotFoundError: No module named 'torch'",
            "[paijupyter] Cell 2 raised ModuleNotFoundError: No module named 'torch'",
            code=1,
        ),
        "Cell 2 raised ModuleNotFoundError: No module named 'torch'.",
        "Add `torch` to requirements.txt",
    ),
    (
        "notebook_cell",
        facts(
            "[paijupyter] Cell 3 was running when its kernel was ended by SIGKILL.",
            code=137,
            reason="out-of-memory",
            memory_mb=1024,
        ),
        "it asked for 1 GiB and needed more (exit 137). Cell 3 was running when",
        "2 GiB",
    ),
    (
        "notebook_cell",
        facts(
            "[paijupyter] Cell 4 asks for input, and nobody answers in a job.",
            "[paijupyter] Cell 4 raised StdinNotImplementedError: raw_input was called, but this frontend",
            code=1,
        ),
        "Cell 4 asks for input, and nobody answers in a job.",
        "--param",
    ),
    (
        "refused",
        facts("[paijupyter] Notebook cannot run: this interpreter has no nbclient. Give it one.", code=2),
        "Notebook cannot run: this interpreter has no nbclient.",
        "Give it one.",
    ),
    (
        "requirements",
        facts("ERROR: no matching", reason="requirements", code=1),
        "requirements.txt",
        "Correct",
    ),
    ("package_damaged", facts(reason="package"), "unpack", "submit the folder again"),
    ("port_taken", facts(reason="ports"), "lost its port", "ports from 15000"),
    ("no_shell", facts(reason="no-shell"), "bash", "Install bash"),
    ("secret_gone", facts(reason="secret"), "secrets", "with its secrets"),
    (
        "cuda_out_of_memory",
        facts(*TRACE, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", code=1),
        "GPU memory",
        "batch",
    ),
    (
        "missing_module",
        facts(*TRACE, "ModuleNotFoundError: No module named 'sklearn.svm'", code=1),
        "could not import `sklearn.svm`",
        "Add `sklearn` to requirements.txt",
    ),
    (
        "syntax_error",
        facts(
            f'  File "{W}train.py", line 3',
            "    def f(:",
            "          ^",
            "SyntaxError: invalid syntax",
            code=1,
        ),
        "in `train.py`, line 3: invalid syntax",
        "Correct that line",
    ),
    ("syntax_error", facts("IndentationError: unexpected indent", code=1), "unexpected indent", "Correct"),
    ("memory_error", facts(*TRACE, "MemoryError", code=1, memory_mb=8192), "out of memory", "16 GiB"),
    (
        "memory_error",
        facts("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB", code=1),
        "out of memory",
        "more memory",
    ),
    ("address_in_use", facts("OSError: [Errno 98] Address already in use", code=1), "port", "PAI_PORT_LIST"),
    (
        "missing_file",
        facts(*TRACE, "FileNotFoundError: [Errno 2] No such file or directory: 'data/a.csv'", code=1),
        "`data/a.csv`",
        "ignore files",
    ),
    (
        "missing_file",
        facts(f"python: can't open file '{W}trian.py': [Errno 2] No such file or directory", code=2),
        "`trian.py`",
        "package",
    ),
    ("interrupted", facts(*TRACE, "KeyboardInterrupt", code=130), "interrupted", "again"),
    ("interrupted", facts(signal="SIGINT"), "interrupted", "again"),
    ("killed", facts(code=137, memory_mb=512), "killed (exit 137)", "1 GiB"),
    ("killed", facts(signal="SIGKILL"), "killed (SIGKILL)", "more memory"),
    (
        "killed",
        facts(reason="out-of-memory", code=137, memory_mb=8192),
        "it asked for 8 GiB and needed more",
        "(16 GiB)",
    ),
    ("crashed", facts(code=139), "crashed in compiled code (exit 139)", "PYTHONFAULTHANDLER"),
    (
        "python_exception",
        facts(
            "Traceback (most recent call last):",
            '  File "/paijupyter/run/task/work/lib/train.py", line 3, in <module>',
            "ValueError: too hot",
            code=1,
        ),
        "raised ValueError in `lib/train.py`, line 3: too hot",
        "traceback",
    ),
    ("shared_memory", facts(signal="SIGBUS"), "shared memory (/dev/shm)", "`shmMB`"),
    ("shared_memory", facts(code=135), "bus error", "fewer workers"),
    (
        "shared_memory",
        facts(
            *TRACE,
            "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that "
            "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
            code=1,
        ),
        "shared memory",
        "`extraContainerOptions`",
    ),
    ("crashed", facts(signal="SIGSEGV"), "SIGSEGV", "PYTHONFAULTHANDLER"),
    ("terminated", facts(code=143), "SIGTERM", "again"),
    ("command_not_found", facts("bash: line 1: pyhton: command not found", code=127), "`pyhton`", "name"),
    ("command_not_found", facts("user.sh: 3: trian: not found", code=127), "exit 127", "name"),
    ("not_executable", facts("bash: line 1: ./run: Permission denied", code=126), "`./run`", "chmod +x"),
    (
        "python_exception",
        facts(*TRACE, "ValueError: shapes (3,) and (4,) not aligned", code=1),
        "raised ValueError in `train.py`, line 12: shapes (3,) and (4,) not aligned",
        "traceback",
    ),
    ("anything_else", facts("done", code=3), "`worker-0` ended with exit code 3.", "end of its log"),
    ("anything_else", facts(code=3, reason="user", message="worker-0 ended with 3"), "exit code 3.", "log"),
    ("anything_else", facts(signal="SIGUSR1"), "SIGUSR1", "log"),
    ("anything_else", Facts(reason="odd", message="The cluster said no."), "The cluster said no.", ""),
    ("anything_else", Facts(), "The job failed.", ""),
]


@pytest.mark.parametrize(("rule", "found", "sentence", "advice"), CASES)
def test_a_failure_is_explained_by_the_rule_meant_for_it(rule, found, sentence, advice):
    first = next((each.__name__ for each in RULES if each(found)), "anything_else")
    assert first == rule
    answer = explain(found)
    assert sentence in answer.message and advice in answer.advice
    assert not answer.message.startswith("Error")


def test_every_rule_has_a_case():
    assert {rule.__name__ for rule in RULES} <= {case[0] for case in CASES}
    assert all(inspect.getdoc(rule) for rule in RULES)


def test_a_success_says_nothing_of_an_error_handled_before():
    """Only the last match counts: an exception that was handled earlier is not the cause."""
    found = facts(
        "ModuleNotFoundError: No module named 'a'", "ModuleNotFoundError: No module named 'b'", code=1
    )
    assert "`b`" in explain(found).message


def test_short_paths_are_those_of_the_package():
    assert diagnosis._short(W + "sub/train.py") == "sub/train.py"
    assert diagnosis._short("/usr/lib/python3/x.py") == "/usr/lib/python3/x.py"
