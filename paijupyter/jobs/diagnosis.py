"""Why a task failed, in words: one rule per cause, each with a test case that shows it.

To explain one more failure, write a function that looks at :class:`Facts` and add it to ``RULES``; the first
rule that answers is taken. A rule gives a sentence whose first word is the thing, and one thing to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from paijupyter.jobs import notebook_failure
from paijupyter.jobs.failure import Explanation as Explanation
from paijupyter.jobs.failure import Facts as Facts
from paijupyter.jobs.failure import last as _last

_GIBIBYTE = 1024


def machine_restarted(facts: Facts) -> Explanation | None:
    """The machine was started anew while the job ran."""
    if facts.reason != "machine-restarted":
        return None
    return Explanation(
        "The machine was restarted while the job ran.",
        "Run it again; its log and outputs up to then are kept.",
    )


def lost(facts: Facts) -> Explanation | None:
    """The backend no longer knows the job."""
    if facts.reason != "lost":
        return None
    message = facts.message or f"{facts.who} is gone, and nothing says how it ended."
    return Explanation(message, "Look at the end of its log, then run it again.")


def deadline(facts: Facts) -> Explanation | None:
    """The time limit was reached."""
    if facts.reason not in ("deadline", "time-limit"):
        return None
    return Explanation(
        facts.message or f"{facts.who} reached its time limit.", "Give the job more time, or make it do less."
    )


def barrier_timeout(facts: Facts) -> Explanation | None:
    """Not all tasks got ready in time."""
    if facts.reason != "barrier-timeout":
        return None
    return Explanation(
        facts.message or f"{facts.who} waited in vain for the other tasks to get ready.",
        "Look at the logs of the tasks that were not ready; most often an installation failed there.",
    )


def not_started(facts: Facts) -> Explanation | None:
    """The place where it was to run could not start it."""
    if facts.reason != "start" or not facts.task:
        return None
    advice = "Correct the image or the profile, then submit it again."
    if "no `python" in facts.message:
        advice = "Use an image with Python, or name the one it has: `python` in the profile."
    return Explanation(facts.message or f"{facts.who} could not be started.", advice)


def preempted(facts: Facts) -> Explanation | None:
    """The place was given to another job, or taken away; nothing of the job's is at fault."""
    if facts.reason not in ("preempted", "evicted", "node-lost"):
        return None
    return Explanation(facts.message or f"{facts.who} had to make room for another job.", "Run it again.")


def requirements(facts: Facts) -> Explanation | None:
    """What the package needs could not be installed, or is not there."""
    if facts.reason != "requirements":
        return None
    return Explanation(
        facts.message or f"{facts.who} could not get what requirements.txt asks for.",
        "Correct requirements.txt, or see in the log what the installation said.",
    )


def package_damaged(facts: Facts) -> Explanation | None:
    """The trainer package could not be unpacked."""
    if facts.reason != "package":
        return None
    return Explanation(
        facts.message or f"{facts.who} could not unpack its package.",
        "See that there is room on the disk, and submit the folder again.",
    )


def port_taken(facts: Facts) -> Explanation | None:
    """Another program took a port that the task was given, in every attempt."""
    if facts.reason != "ports":
        return None
    return Explanation(
        facts.message or f"{facts.who} lost its port to another program.",
        "Run it again; if it happens again, end the program that takes ports from 15000 on.",
    )


def no_shell(facts: Facts) -> Explanation | None:
    """There is no bash to run the command."""
    if facts.reason != "no-shell":
        return None
    return Explanation(
        facts.message or f"{facts.who} found no bash, which its command needs.",
        "Install bash where the task runs, or choose an image that has it.",
    )


def secret_gone(facts: Facts) -> Explanation | None:
    """The value of a secret was not there when the task began."""
    if facts.reason != "secret":
        return None
    return Explanation(
        facts.message or f"{facts.who} did not get its secrets.", "Submit the job again with its secrets."
    )


def notebook_cell(facts: Facts) -> Explanation | None:
    """A cell of a notebook failed; what the log says else tells what to do."""
    return notebook_failure.of_cell(facts, _OF_LOG)


def cuda_out_of_memory(facts: Facts) -> Explanation | None:
    """The memory of the GPU was full."""
    if not re.search(r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation", facts.text):
        return None
    return Explanation(
        f"{facts.who} ran out of GPU memory.", "Make the batch or the model smaller, or take a larger GPU."
    )


def missing_module(facts: Facts) -> Explanation | None:
    """Python did not find an imported module."""
    found = _last(r"ModuleNotFoundError: No module named '([^']+)'", facts)
    if found is None:
        return None
    top = found[1].partition(".")[0]
    return Explanation(
        f"{facts.who} could not import `{found[1]}`: no module of that name is installed there.",
        f"Add `{top}` to requirements.txt (or the distribution that has it, if its name differs) "
        "and run it again; if it is a file of yours, see that the package has it.",
    )


def syntax_error(facts: Facts) -> Explanation | None:
    """Python could not read the program."""
    found = _last(r"^(SyntaxError|IndentationError|TabError): (.*)$", facts)
    if found is None:
        return None
    place = _last(r'^\s*File "([^"]+)", line (\d+)', facts)
    where = f" in `{_short(place[1])}`, line {place[2]}" if place else ""
    return Explanation(f"Python could not read the program{where}: {found[2]}.", "Correct that line.")


def memory_error(facts: Facts) -> Explanation | None:
    """Python or numpy could not get memory."""
    if _last(r"^(?:\S*\.)?(?:MemoryError|_ArrayMemoryError)\b", facts) is None:
        return None
    return Explanation(f"{facts.who} ran out of memory.", _more_memory(facts))


def shared_memory(facts: Facts) -> Explanation | None:
    """No room in /dev/shm: to write there is a bus error, as in workers of PyTorch's DataLoader."""
    told = re.search(r"out of shared memory|insufficient shared memory|[Bb]us error", facts.text)
    if not told and facts.signal != "SIGBUS" and facts.code != 135:
        return None
    return Explanation(
        f"{facts.who} wrote where no room was left, most likely to shared memory (/dev/shm): bus error.",
        "Give its role more (`extraContainerOptions`, `shmMB`), or use fewer workers of the data loader.",
    )


def address_in_use(facts: Facts) -> Explanation | None:
    """A port was taken."""
    if not re.search(r"Address already in use|EADDRINUSE|address already in use", facts.text):
        return None
    return Explanation(
        f"{facts.who} could not open its port: the address is already in use.",
        "Use a port the job was given (`PAI_PORT_LIST_…`), or end the program that holds it.",
    )


def missing_file(facts: Facts) -> Explanation | None:
    """A file was not there; also when Python cannot open the script itself."""
    found = _last(r"FileNotFoundError: \[Errno 2\] [^:]*: '([^']+)'", facts) or _last(
        r"can't open file '([^']+)': \[Errno 2\]", facts
    )
    if found is None:
        return None
    return Explanation(
        f"{facts.who} did not find the file `{_short(found[1])}`.",
        "See whether the package has it (the plan lists what ignore files leave out), "
        "and whether its path is relative to the package's folder.",
    )


def interrupted(facts: Facts) -> Explanation | None:
    """Somebody sent SIGINT."""
    if facts.signal != "SIGINT" and facts.code != 130 and _last(r"^KeyboardInterrupt\b", facts) is None:
        return None
    return Explanation(f"{facts.who} was interrupted (SIGINT).", "Run it again if that was not meant.")


def killed(facts: Facts) -> Explanation | None:
    """SIGKILL, most often by the kernel for want of memory."""
    if facts.reason != "out-of-memory" and facts.signal != "SIGKILL" and facts.code != 137:
        return None
    how = f"exit {facts.code}" if facts.code is not None else facts.signal or "out of memory"
    if facts.reason == "out-of-memory":
        asked = (
            f"it asked for {_size(facts.memory_mb)} and needed more" if facts.memory_mb else "it needed more"
        )
        return Explanation(f"{facts.who} ran out of memory: {asked} ({how}).", _more_memory(facts))
    return Explanation(
        f"{facts.who} was killed ({how}), most often because memory ran out.", _more_memory(facts)
    )


def crashed(facts: Facts) -> Explanation | None:
    """A fault in compiled code."""
    if facts.signal not in ("SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE") and facts.code not in (
        132,
        134,
        136,
        139,
    ):
        return None
    how = facts.signal or f"exit {facts.code}"
    return Explanation(
        f"{facts.who} crashed in compiled code ({how}).",
        "Set `PYTHONFAULTHANDLER=1` in the job's environment to see where, and check the versions of "
        "compiled libraries.",
    )


def terminated(facts: Facts) -> Explanation | None:
    """Somebody sent SIGTERM."""
    if facts.signal != "SIGTERM" and facts.code != 143:
        return None
    return Explanation(
        f"{facts.who} was told to end from outside (SIGTERM).", "Run it again if that was not meant."
    )


def command_not_found(facts: Facts) -> Explanation | None:
    """The shell did not find a program."""
    if facts.code != 127:
        return None
    found = _last(r"(?:line \d+|bash|sh): (?:line \d+: )?([^\s:]+): (?:command )?not found", facts)
    program = f" `{found[1]}`" if found else " a program of its command"
    return Explanation(
        f"{facts.who} did not find{program} (exit 127).",
        "Correct its name, or install it where the task runs; a script of the package is called as `./name`.",
    )


def not_executable(facts: Facts) -> Explanation | None:
    """The shell may not start a file."""
    if facts.code != 126:
        return None
    found = _last(r"([^\s:]+): Permission denied", facts)
    program = f"`{found[1]}`" if found else "a file of its command"
    return Explanation(
        f"{facts.who} may not execute {program} (exit 126).",
        "Make it executable with `chmod +x`, or start it through its interpreter.",
    )


def python_exception(facts: Facts) -> Explanation | None:
    """Any other exception that Python printed last."""
    if not re.search(
        r"^\s*(?:\S+ )?Traceback \(most recent call last\):|^\s+File \".*\", line \d+", facts.text, re.M
    ):
        return None
    found = _last(
        r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Iteration))(?:: (.*))?$", facts
    )
    if found is None:
        return None
    place = _last(r'^\s*File "([^"]+)", line (\d+)', facts)
    where = f" in `{_short(place[1])}`, line {place[2]}" if place else ""
    said = f": {found[2]}" if found[2] else ""
    return Explanation(
        f"{facts.who} raised {found[1]}{where}{said}", "Read the traceback at the end of its log."
    )


def anything_else(facts: Facts) -> Explanation:
    """What is said when nothing better is known."""
    only_status = facts.reason in ("", "user") and (facts.signal or facts.code)
    if facts.message and not only_status:
        return Explanation(facts.message, "Read the end of its log." if facts.task else "")
    if facts.signal:
        return Explanation(f"{facts.who} was ended by {facts.signal}.", "Read the end of its log.")
    if facts.code is not None:
        return Explanation(f"{facts.who} ended with exit code {facts.code}.", "Read the end of its log.")
    return Explanation(f"{facts.who} failed{f' ({facts.reason})' if facts.reason else ''}.", "Read its log.")


_OF_LOG: tuple[Callable[[Facts], Explanation | None], ...] = (
    cuda_out_of_memory,
    missing_module,
    syntax_error,
    memory_error,
    shared_memory,
    address_in_use,
    missing_file,
    interrupted,
    killed,
    crashed,
    terminated,
    command_not_found,
    not_executable,
)

RULES: tuple[Callable[[Facts], Explanation | None], ...] = (
    # First what the backend knows for certain, then what the log says, then what the exit status says.
    machine_restarted,
    lost,
    deadline,
    barrier_timeout,
    not_started,
    preempted,
    requirements,
    package_damaged,
    port_taken,
    no_shell,
    secret_gone,
    notebook_failure.refused,
    notebook_cell,
    *_OF_LOG,
    python_exception,
)


def explain(facts: Facts) -> Explanation:
    """Return the first rule's answer."""
    for rule in RULES:
        answer = rule(facts)
        if answer is not None:
            return answer
    return anything_else(facts)


def _short(path: str) -> str:
    """Shorten a path of a task's working folder to the path in the package."""
    return re.sub(r"^.*/(?:tasks/[^/]+/\d+|run/task)/work/", "", path)


def _size(memory_mb: int) -> str:
    return f"{memory_mb / _GIBIBYTE:.4g} GiB" if memory_mb >= _GIBIBYTE else f"{memory_mb} MiB"


def _more_memory(facts: Facts) -> str:
    if not facts.memory_mb:
        return "Load less at once, or run it where there is more memory."
    return (
        f"Give each task more memory ({_size(2 * facts.memory_mb)}) or load less at once, and run it again."
    )
