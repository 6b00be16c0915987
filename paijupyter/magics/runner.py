"""What ``%paijob`` and ``%%paijob`` do, from the line to the card."""

from __future__ import annotations

import getpass
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client import card, options, verbs
from paijupyter.client.parser import HelpAsked
from paijupyter.client.sources import Origin, whole
from paijupyter.errors import PaiJupyterError, UsageProblem
from paijupyter.magics.line import words_of
from paijupyter.magics.show import Display, PackageProgress, show, write

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient
    from paijupyter.client.job import Job
    from paijupyter.magics.history import Recorder
    from paijupyter.magics.live import Follower

_SUBMITS = ("submit", "plan")
_WITH_CELL = (*_SUBMITS, "form", "sweep")
_UNFINISHED = "The job of this cell has not ended, so nothing was submitted: --again submits another."


class Detached(KeyboardInterrupt):
    """Waiting was interrupted; the job goes on."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in a notebook (IPython asks for it)."""
        return [str(self)]


class Runner:
    """Carries out lines and cells for one shell."""

    def __init__(self, shell: Any, recorder: Recorder) -> None:
        self._shell = shell
        self._recorder = recorder
        self._client: JobsClient | None = None
        self._follower: Follower | None = None

    @property
    def client(self) -> JobsClient:
        """The client of this kernel; the engine is started by the first use."""
        if self._client is None:
            from paijupyter.client.client import JobsClient

            self._client = JobsClient.connect()
        return self._client

    def run(self, line: str, cell: str | None) -> None:
        """Carry out a line, or submit a cell.

        Raises:
            PaiJupyterError: anything that goes wrong, as one sentence.
        """
        try:
            words = words_of(line, self._shell.user_ns)
            if cell is not None:
                self._cell(words, cell)
            elif not words or words[0] in ("-h", "--help", "help"):
                show(self._shell, options.overview("magic"))
            elif words[0].startswith("-"):
                raise UsageProblem(
                    "%paijob needs a verb before its options.", "For a cell below it, write %%paijob."
                )
            else:
                self._verb(words)
        except HelpAsked as asked:
            show(self._shell, asked.text)

    def _cell(self, words: Sequence[str], cell: str) -> None:
        verb, rest = (words[0], words[1:]) if words and words[0] in _WITH_CELL else ("submit", words)
        prog = "%%paijob sweep" if verb == "sweep" else "%%paijob"
        self._cell_or_line(options.parse_verb(verb, rest, "magic", prog=prog), cell)

    def _verb(self, words: Sequence[str]) -> None:
        parsed = options.parse_verb(words[0], words[1:], "magic")
        if parsed.verb in _WITH_CELL:
            self._cell_or_line(parsed, None)
        elif parsed.verb == "logs":
            self._logs(parsed)
        elif parsed.verb == "wait":
            self._wait_verb(parsed)
        else:
            self._reply(parsed)

    def _reply(self, parsed: Namespace) -> None:
        sends = parsed.verb == "data"
        progress = PackageProgress(Display(self._shell), ("sending", "sent")) if sends else None
        reply = verbs.run(lambda: self.client, parsed, self.origin(), getpass.getpass, progress)
        if getattr(parsed, "json", False):
            self._json(reply.data)
        elif reply.submitted and reply.view is not None:
            self._new_job(reply.view, parsed, reply.problems)
        elif getattr(parsed, "group", None) and parsed.verb in ("get", "retry"):
            from paijupyter.magics import sweep

            sweep.show_group(self._shell, self.client, reply.data, wait=getattr(parsed, "wait", False))
        elif reply.view is not None and parsed.verb == "get":
            self._card(reply.view)
        else:
            show(self._shell, reply.text, reply.html)

    def _json(self, data: Any) -> None:
        import json

        text = json.dumps(data, indent=2, ensure_ascii=False)
        self._shell.display_pub.publish(data={"application/json": data, "text/plain": text}, metadata={})

    def _new_job(self, view: Mapping[str, Any], parsed: Namespace, problems: Sequence[Any] = ()) -> None:
        from paijupyter.client.job import Job

        job = self._named(Job(view, self.client), parsed)
        if parsed.wait:
            self._wait(job, Display(self._shell), tuple(problems))
        else:
            self._card(job.view, job, problems)

    def _card(self, view: Mapping[str, Any], job: Job | None = None, problems: Sequence[Any] = ()) -> None:
        from paijupyter.client.job import Job

        display = Display(self._shell)
        display.show(card.bundle(view, problems))
        self._keep(job or Job(view, self.client), display, tuple(problems))

    def _keep(
        self,
        job: Job,
        display: Display,
        problems: tuple[Any, ...],
        parent: Mapping[str, Any] | None = None,
    ) -> None:
        """Let a card follow its job, in a kernel; a terminal cannot replace what it has printed."""
        if not hasattr(self._shell, "kernel"):
            return
        if self._follower is None:
            from paijupyter.magics.live import Follower

            self._follower = Follower(self._shell)
        self._follower.follow(job, display, problems, parent)

    def submit(self, words: Sequence[str], cell: str | None) -> Job:
        """Submit what the options say, and show its card.

        Args:
            words: options of ``submit``.
            cell: what the job runs, or None.

        Raises:
            PaiJupyterError: it cannot be submitted.
        """
        return self._submit(options.parse_verb("submit", words, "magic"), cell)

    def _cell_or_line(self, parsed: Namespace, cell: str | None) -> None:
        if parsed.verb == "sweep":
            from paijupyter.magics import sweep

            sweep.run(self._shell, self.client, parsed, self.origin(), cell)
        elif parsed.verb == "form" or parsed.form:
            self._form(parsed, cell)
        elif parsed.plan or parsed.verb == "plan":
            self._plan(parsed, cell)
        else:
            self._submit(parsed, cell)

    def _form(self, parsed: Namespace, cell: str | None) -> None:
        from paijupyter.magics import form

        form.run(self._shell, self.client, parsed, self.origin(), cell, self._keep)

    def _plan(self, parsed: Namespace, cell: str | None) -> None:
        from paijupyter.client import submission

        display = Display(self._shell)
        prepared = submission.prepare(parsed, self.origin(), cell, PackageProgress(display))
        plan = submission.plan(self.client, prepared)
        display.show(card.plan_bundle(plan, prepared.left_out))

    def _submit(self, parsed: Namespace, cell: str | None) -> Job:
        from paijupyter.client import submission
        from paijupyter.client.job import Job

        if parsed.variable is not None and not parsed.variable.isidentifier():
            raise UsageProblem(f"Option `--as` needs a name of a variable, not `{parsed.variable[:40]}`.")
        display = Display(self._shell)
        # With --wait the card comes last, below the log; then progress has a place of its own.
        progress = PackageProgress(Display(self._shell) if parsed.wait else display)
        prepared = submission.prepare(parsed, self.origin(), cell, progress)
        try:
            submitted = submission.submit(self.client, prepared, getpass.getpass)
        except submission.PlanRefused as refused:
            display.show(card.plan_bundle(refused.plan, refused.left_out))
            raise
        job = self._named(Job(submitted.view, self.client, submitted.problems), parsed)
        problems = tuple(submitted.problems)
        if parsed.wait:
            self._wait(job, display, problems, "is submitted to" if submitted.created else "runs already on")
            return job
        view = job.view if submitted.created else {**job.view, "advice": _UNFINISHED}
        display.show(card.bundle(view, problems))
        self._keep(job, display, problems)
        return job

    def _named(self, job: Job, parsed: Namespace) -> Job:
        if parsed.variable:
            self._shell.user_ns[parsed.variable] = job
        return job

    def _wait(
        self, job: Job, display: Display, problems: tuple[Any, ...], verb: str = "is submitted to"
    ) -> None:
        """Show the log while the job runs and its final card at the end; fail the cell if the job failed."""
        from paijupyter.client.follow import prefixed

        write(f"{job.name} {verb} {job.view.get('profile') or 'local'}\n")
        try:
            for block in prefixed(self.client.logs(job.id, follow=True), job.view):
                write(block)
            job.wait()
        except KeyboardInterrupt:
            display.show(card.bundle(job.view, problems))
            self._keep(job, display, problems)
            raise Detached(
                f"Waiting has ended; `{job.name}` goes on. Stop it with: %paijob stop {job.name}"
            ) from None
        display.show(card.bundle(job.view, problems))
        job.check()

    def _wait_verb(self, parsed: Namespace) -> None:
        from paijupyter.client.job import Job
        from paijupyter.protocol.quantities import parse_duration

        timeout = parse_duration(parsed.timeout) if parsed.timeout else None
        if parsed.group:
            from paijupyter.magics import sweep

            sweep.wait_verb(self._shell, self.client, parsed.group, timeout)
            return
        job = Job(verbs.find(self.client, parsed, self.origin()), self.client)
        try:
            job.wait(timeout)
        except KeyboardInterrupt:
            raise Detached(
                f"Waiting has ended; `{job.name}` goes on. Stop it with: %paijob stop {job.name}"
            ) from None
        Display(self._shell).show(card.bundle(job.view))
        job.check()

    def _logs(self, parsed: Namespace) -> None:
        from paijupyter.client.follow import prefixed

        if parsed.group:
            from paijupyter.client import group_verbs

            for block in group_verbs.logs(self.client, parsed):
                write(block)
            return
        view = verbs.find(self.client, parsed, self.origin())
        chunks = self.client.logs(
            view["id"], task=parsed.task, follow=parsed.follow, tail=whole(parsed.tail, "--tail")
        )
        try:
            for block in prefixed(chunks, view):
                write(block)
        except KeyboardInterrupt:
            write(f"-- `{view['name']}` goes on --\n")

    def origin(self) -> Origin:
        """Return where this cell is: its notebook, its id, this kernel and its interpreter."""
        from paijupyter.notebook.context import cell_of, notebook_path

        notebook = notebook_path(self._shell.user_ns)
        here = Path(os.getcwd())
        folder = notebook.parent if notebook is not None and notebook.parent.is_dir() else here
        get_parent = getattr(self._shell, "get_parent", None)
        cell = cell_of(get_parent() if get_parent else {}, notebook)
        return Origin(
            "magic",
            folder,
            sys.executable,
            notebook,
            cell.id,
            cell.number,
            kernel_id(self._shell),
            self._recorder.session(cell.id),
        )


def kernel_id(shell: Any) -> str:
    """Return what tells this kernel from others; it stays the same when a front end restarts the kernel."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return f"ipython-{os.getpid()}"
    try:
        from ipykernel.connect import get_connection_file

        return Path(get_connection_file()).stem.removeprefix("kernel-")
    except (ImportError, RuntimeError, OSError):
        return str(kernel.session.session)


__all__ = ["Detached", "PaiJupyterError", "Runner", "kernel_id"]
