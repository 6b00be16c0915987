"""Submit a PaddleJob from where a person is: a cell of a notebook, or a script."""

from __future__ import annotations

import getpass
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.errors import UsageProblem

if TYPE_CHECKING:
    from paijupyter.client import Job
    from paijupyter.protocol.paddle import PaddleJob


def submit(job: PaddleJob) -> Job:
    """Submit a job and say so.

    Raises:
        PaiJupyterError: it cannot be submitted.
    """
    shell = _shell()
    return _from_script(job) if shell is None else _from_notebook(job, shell)


def _from_notebook(job: PaddleJob, shell: Any) -> Job:
    """Submit from a cell; what that cell, and no other, runs is the job unless it names an entry point."""
    from paijupyter.magics import runner_of

    # The same cell may say it for other parameters, so an unfinished job of it is no reason not to.
    words = [*_words(job), "--again"]
    cell = str(shell.user_ns["In"][-1]) if job.entry_point is None else None
    print(job.size)
    return runner_of(shell).submit(words, cell)


def _from_script(job: PaddleJob) -> Job:
    from paijupyter.client import Job, JobsClient, submission
    from paijupyter.client.options import parse_verb
    from paijupyter.client.sources import Origin

    words = _words(job)
    if job.entry_point is None:
        script = _script()
        words += ["--command", _run(script, Path(job.trainer_package or script.parent))]
        words += ["--package", str(script.parent)] if job.trainer_package is None else []
        words += ["--name", script.stem] if job.job_name is None else []
    prepared = submission.prepare(
        parse_verb("submit", words, "cli"), Origin("api", Path.cwd(), sys.executable)
    )
    client = JobsClient.connect()
    submitted = submission.submit(client, prepared, getpass.getpass)
    for problem in submitted.problems:
        print(problem, file=sys.stderr)
    view = submitted.view
    print(f"{view['name']} is submitted to {view.get('profile') or 'local'}: {job.size}")
    return Job(view, client, submitted.problems)


def _words(job: PaddleJob) -> list[str]:
    """Return the job as options of ``submit``."""
    words = [word for role in job.roles for word in ("--role", role)]
    words += [word for name, value in job.env.items() for word in ("--env", f"{name}={value}")]
    given = {
        "--name": job.job_name,
        "--package": job.trainer_package,
        "--image": job.image,
        "--profile": job.profile,
        "--command": job.entry_point,
    }
    return words + [word for option, value in given.items() if value for word in (option, value)]


def _run(script: Path, package: Path) -> str:
    folder = package.expanduser().resolve()
    if not script.is_relative_to(folder):
        raise UsageProblem(
            f"Script `{script}` is not in the package folder `{folder}`.",
            "Name its folder as `trainer_package`, or give `entry_point`.",
        )
    return shlex.join(["python", script.relative_to(folder).as_posix(), *sys.argv[1:]])


def _script() -> Path:
    """Return the file that this process was started with.

    Raises:
        UsageProblem: it was started with none.
    """
    path = getattr(sys.modules["__main__"], "__file__", None)
    if path is None or not os.path.isfile(path):
        raise UsageProblem(
            "Job has no script to run: this Python was started without one.",
            "Give PaddleJob an `entry_point`, or call dist_train from a script or a notebook.",
        )
    return Path(path).resolve()


def _shell() -> Any:
    """Return the shell of a notebook, or None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if hasattr(shell, "kernel") else None
