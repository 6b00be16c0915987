"""The magic itself: it hands line and cell on and turns errors into one clean line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from paijupyter.magics.history import Recorder

if TYPE_CHECKING:
    from paijupyter.magics.runner import Runner


@magics_class
class PaiMagics(Magics):
    """``%paijob VERB`` carries out a verb, ``%%paijob`` submits the cell below it."""

    _runner: Runner | None = None

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._recorder = Recorder(shell)

    @no_var_expand
    @line_cell_magic
    def paijob(self, line: str, cell: str | None = None) -> None:
        """Submit jobs and look after them; `%paijob --help` shows the verbs."""
        with clean_errors():
            self.runner.run(line, cell)

    @property
    def runner(self) -> Runner:
        """What carries out lines and cells for this shell."""
        if self._runner is None:
            from paijupyter.magics.runner import Runner

            self._runner = Runner(self.shell, self._recorder)
        return self._runner


def _help() -> str:
    """Return the whole help; IPython's ``%paijob?`` and the front end's inspection ask for it."""
    from paijupyter.client.options import overview, parser_for, verb_named

    submit = parser_for(verb_named("submit"), "magic", "%%paijob").format_help()
    return f"{overview('magic')}\n{submit}"


PaiMagics.paijob.getdoc = _help


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn errors that are meant for people into one line, and a request for help into the help.

    Raises:
        UsageError: IPython shows it as one line and marks the cell as failed.
    """
    from paijupyter.errors import PaiJupyterError

    try:
        yield
    except PaiJupyterError as error:
        from paijupyter.client.job import JobFailed

        if isinstance(error, JobFailed):
            raise  # It shows itself as one line, and says that not the use of the magic was wrong.
        raise UsageError(str(error)) from error


def matcher_for(ipython: Any) -> Callable[[Any], Any]:
    """Return the completion of this shell, which imports its parts when a line of ours is completed."""
    from IPython.core.completer import context_matcher

    @context_matcher()  # type: ignore[untyped-decorator, unused-ignore]
    def paijob_matcher(context: Any) -> Any:
        if "%paijob" not in context.line_with_cursor and "%paijob" not in context.full_text[:200]:
            return {"completions": []}
        from paijupyter.magics.completion import complete

        return complete(ipython, context)

    return paijob_matcher
