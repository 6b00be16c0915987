"""The handle of a group of experiments: what ``%%paijob sweep --as group`` gives to people."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client import group_card, words
from paijupyter.client.groups import is_settled
from paijupyter.client.job import Job
from paijupyter.errors import PaiJupyterError, UsageProblem

if TYPE_CHECKING:
    from pandas import DataFrame

    from paijupyter.client.client import JobsClient
    from paijupyter.client.plots import Plot

_TOLD = 5


class GroupFailed(PaiJupyterError):
    """Not all experiments of a group succeeded; ``experiments`` are those that did not."""

    def __init__(self, view: Mapping[str, Any], experiments: tuple[Mapping[str, Any], ...]) -> None:
        said = []
        for each in experiments[:_TOLD]:
            why = str(each.get("message") or "").split("\n")[0]
            said.append(f"{each['key']} {each['state']}" + (f" ({why})" if why else ""))
        more = f"; {len(experiments) - _TOLD} more" if len(experiments) > _TOLD else ""
        message = f"Group `{view['name']}`: {group_card.counted(view)}. {'; '.join(said)}{more}"
        hint = f"Run them again: retry --group {view['name']}."
        super().__init__("group-failed", message, hint, 409)
        self.view = view
        self.experiments = experiments


class Group:
    """A group of experiments.

    Attributes:
        view: its view as last seen; :meth:`refresh` looks again.
    """

    def __init__(self, view: Mapping[str, Any], client: JobsClient | None = None) -> None:
        self.view: Mapping[str, Any] = view
        self._client = client

    @classmethod
    def attach(cls, ref: str, client: JobsClient | None = None) -> Group:
        """Return the handle of a group by name or id.

        Raises:
            NotFound: there is no such group.
        """
        found = client or _connect()
        return cls(found.groups.get(ref), found)

    @property
    def client(self) -> JobsClient:
        """The client that this handle speaks through; connects on first use."""
        if self._client is None:
            self._client = _connect()
        return self._client

    @property
    def id(self) -> str:
        """The id, unique for ever."""
        return str(self.view["id"])

    @property
    def name(self) -> str:
        """The name."""
        return str(self.view["name"])

    @property
    def state(self) -> str:
        """``waiting``, ``running``, ``succeeded``, ``failed`` or ``stopped``, as last seen."""
        return str(self.view["state"])

    @property
    def counts(self) -> dict[str, int]:
        """How many experiments are in each state, as last seen."""
        return dict(self.view["counts"])

    @property
    def is_final(self) -> bool:
        """Whether all of it has ended."""
        return is_settled(self.view)

    @property
    def experiments(self) -> list[dict[str, Any]]:
        """All experiments, looked up now: key, values, state, reason, metrics, last line and more."""
        return list(self.client.groups.experiments(self.id))

    def job(self, key: str | int) -> Job:
        """Return the job of an experiment.

        Raises:
            UsageProblem: there is no such experiment, or it has no job yet.
        """
        for each in self.experiments:
            if each["key"] == str(key) and each["job"] is not None:
                return Job.attach(str(each["job"]), self.client)
        raise UsageProblem(f"Experiment `{key}` of group `{self.name}` has no job.", "See `experiments`.")

    def refresh(self) -> Group:
        """Look up the state; return this handle."""
        self.view = self.client.groups.get(self.id)
        return self

    def wait(self, timeout: float | None = None) -> Group:
        """Wait until all of it has ended; return this handle. Interrupting leaves it running.

        Args:
            timeout: seconds to wait at most.

        Raises:
            PaiJupyterError: the time is up.
        """
        self.view = self.client.groups.wait(self.id, timeout)
        return self

    def check(self, keys: Collection[str] | None = None) -> Group:
        """Return this handle if all experiments succeeded.

        Args:
            keys: look only at these experiments.

        Raises:
            GroupFailed: some did not; it says which and why.
        """
        chosen = [each for each in self.experiments if keys is None or each["key"] in keys]
        bad = tuple(each for each in chosen if each["state"] in ("failed", "stopped"))
        if bad:
            raise GroupFailed(self.refresh().view, bad)
        return self

    def stop(self) -> Group:
        """Stop all of it; records and logs stay. Return this handle."""
        self.view = self.client.groups.stop(self.id)
        return self

    def retry(self, only: str = "", *, resume: bool = False) -> Group:
        """Run experiments once more, with the code they had; return this handle.

        Secrets of ``ask`` are asked for, those of ``env:`` read from this process's environment.

        Args:
            only: keys; by default those that failed.
            resume: begin with the checkpoints that they left.
        """
        from paijupyter.client.submission import again

        secrets = again(self.view.get("secretReferences") or {}, (), getpass.getpass)
        self.view = self.client.groups.retry(self.id, only=only, resume=resume, secrets=secrets)
        return self

    def delete(self) -> None:
        """Delete the group, which has ended, with all of its jobs, logs and outputs."""
        self.client.groups.delete(self.id)

    def pull(self, dest: str | Path = ".") -> list[Path]:
        """Bring document, log and outputs of each experiment into a folder; return their paths there."""
        return list(self.client.groups.pull(self.id, Path(dest)))

    def to_frame(self) -> DataFrame:
        """Return all experiments as a data frame: one row each, values and metrics as columns.

        Raises:
            UsageProblem: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise UsageProblem("Data frame needs pandas.", "Install it with: pip install pandas") from None
        rows = [
            {
                "experiment": each["key"],
                **each["values"],
                **{name: each[name] for name in ("state", "reason", "seconds", "node", "restarts", "name")},
                **{f"metric.{name}": value for name, value in each["metrics"].items()},
                "lastLine": each["lastLine"],
            }
            for each in self.experiments
        ]
        return pandas.DataFrame(rows).set_index("experiment") if rows else pandas.DataFrame()

    def plot(self, metric: str, parameter: str) -> Plot:
        """Return a picture of the last value of a metric against a parameter.

        Raises:
            UsageProblem: no experiment has both.
        """
        from paijupyter.client.plots import scatter

        points = [
            (each["values"][parameter], each["metrics"][metric], each["key"])
            for each in self.experiments
            if parameter in each["values"] and metric in each["metrics"]
        ]
        return scatter(points, parameter, metric)

    def curves(self, metric: str) -> Plot:
        """Return a picture of the course of a metric in every experiment.

        Raises:
            UsageProblem: no experiment has it.
        """
        from paijupyter.client.plots import lines

        found = self.client.groups.experiments(self.id, series=True)
        courses = {
            each["key"]: each["series"][metric] for each in found if metric in (each.get("series") or {})
        }
        return lines(courses, metric)

    def __repr__(self) -> str:
        return f"<Group {self.name} {group_card.counted(self.view)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Show the table, as HTML and as text."""
        # A job server that does not answer now must not keep a notebook from showing what was seen last.
        with contextlib.suppress(PaiJupyterError, OSError):
            self.refresh()
            return group_card.bundle(self.view, self.experiments)
        return {"text/plain": f"{words.ICONS.get(self.state, '○')} {self!r}"}


def _connect() -> JobsClient:
    from paijupyter.client.client import JobsClient

    return JobsClient.connect()
