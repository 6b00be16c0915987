"""PaddleJob: a job in the words of PaddlePaddle's design for submitting a distributed training job (2017).

The names of the design and those of its implementation, the job server of PaddlePaddle/cloud, are both read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from paijupyter.errors import InvalidDocument, Problem, UsageProblem
from paijupyter.protocol.build import JobOptions, build_document
from paijupyter.protocol.parameters import check_env_name
from paijupyter.protocol.quantities import parse_memory
from paijupyter.protocol.roles import SERVICE_ROLE, RoleSpec, parse_role

TRAINER_ROLE = "trainer"
# The implementation's names of the design's fields.
_ALIASES = {
    "name": "job_name",
    "entry": "entry_point",
    "jobPackage": "trainer_package",
    "job_package": "trainer_package",
    "parallelism": "trainers",
    "cpu": "trainer_cpu",
    "gpu": "trainer_gpu",
    "memory": "trainer_mem",
    "pscpu": "pserver_cpu",
    "psmemory": "pserver_mem",
    "envs": "env",
}
_NOT_HERE = {
    "topology": "Write the command that starts a trainer as `entry_point`.",
    "passes": "Pass it to the script: give it as `env`, or in `entry_point`.",
    "registry": "Name the credentials in the profile.",
    "faulttolerant": "Use `jobRetryCount` of a job document.",
    "min_instance": "The number of trainers is `trainers`.",
    "minInstance": "The number of trainers is `trainers`.",
    "max_instance": "The number of trainers is `trainers`.",
    "maxInstance": "The number of trainers is `trainers`.",
    "datacenter": "The place where jobs run is a profile.",
    "volumes": "Storages are named in the profile.",
}


@dataclass(frozen=True, slots=True)
class PaddleJob:
    """What the design's ``PaddleJob`` says of a job; every field has a default (P5, P17, P21, P22, P25).

    Attributes:
        job_name: short name; a suffix is added. Default: made from the script's or notebook's name.
        entry_point: shell command that starts a trainer, and a parameter server, in the package folder.
            Default: this script, or the notebook cell that submits.
        trainer_package: folder that travels with the job; in requests its sha256. Default: the
            script's folder.
        image: container image; the local profile runs without one.
        trainers: number of trainers.
        pservers: number of parameter servers; None: computed, none for a single trainer or for trainers with
            GPUs, which train collectively, else as many as trainers; 0: none.
        trainer_cpu: cores of each trainer.
        trainer_gpu: GPUs of each trainer; 0: it trains on the CPU.
        trainer_mem: memory of each trainer, ``10G``, ``512Mi``.
        pserver_cpu: cores of each parameter server.
        pserver_mem: memory of each parameter server.
        env: environment variables of every task.
        profile: the place where it runs.
    """

    job_name: str | None = None
    entry_point: str | None = None
    trainer_package: str | None = None
    image: str | None = None
    trainers: int = 1
    pservers: int | None = None
    trainer_cpu: int = 1
    trainer_gpu: int = 0
    trainer_mem: str = "1Gi"
    pserver_cpu: int = 1
    pserver_mem: str = "1Gi"
    env: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None

    def __post_init__(self) -> None:
        """Refuse values that cannot be.

        Raises:
            InvalidDocument: with every wrong field.
        """
        problems = [*self._wrong_numbers(), *self._wrong_texts(), *self._wrong_memory(), *self._wrong_env()]
        if problems:
            raise InvalidDocument(problems)

    @property
    def parameter_servers(self) -> int:
        """The number of parameter servers, computed where it was left out (P25)."""
        if self.pservers is not None:
            return self.pservers
        return 0 if self.trainers == 1 or self.trainer_gpu else self.trainers

    @property
    def roles(self) -> tuple[str, ...]:
        """The task roles, as options ``--role`` have them; those of no instance are left out."""
        trainer = _role_text(
            TRAINER_ROLE, self.trainers, self.trainer_cpu, self.trainer_gpu, self.trainer_mem
        )
        if not self.parameter_servers:
            return (trainer,)
        servers = _role_text(SERVICE_ROLE, self.parameter_servers, self.pserver_cpu, 0, self.pserver_mem)
        return (servers, trainer)

    @property
    def size(self) -> str:
        """How many tasks there will be, in words; says which number was computed."""
        computed = " (computed)" if self.pservers is None else ""
        servers = _count(self.parameter_servers, "parameter server")
        return f"{_count(self.trainers, 'trainer')}, {servers}{computed}"

    def document(self) -> dict[str, Any]:
        """Return the job document of a job whose package is in the store and whose entry point is given.

        Raises:
            InvalidDocument: it has no entry point.
        """
        if not self.entry_point:
            hint = "Give the command that starts a trainer, for example `python train.py`."
            raise InvalidDocument([_problem("entry_point", "is missing", hint)])
        roles: list[RoleSpec] = [parse_role(text) for text in self.roles]
        return build_document(
            JobOptions(
                name=self.job_name or "paddle-job",
                commands=[self.entry_point],
                roles=roles,
                image=self.image,
                env=dict(self.env),
                package=self.trainer_package,
            )
        )

    def _wrong_numbers(self) -> list[Problem]:
        least = {"trainers": 1, "pservers": 0, "trainer_cpu": 1, "trainer_gpu": 0, "pserver_cpu": 1}
        found = []
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is None and name == "pservers":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not smallest <= value < 10**9:
                found.append(_problem(name, f"must be a whole number of at least {smallest}"))
        return found

    def _wrong_texts(self) -> list[Problem]:
        names = ("job_name", "entry_point", "trainer_package", "image", "profile")
        wrong = [name for name in names if not isinstance(getattr(self, name), str | None)]
        return [_problem(name, "must be text") for name in wrong]

    def _wrong_memory(self) -> list[Problem]:
        found = []
        for name in ("trainer_mem", "pserver_mem"):
            try:
                parse_memory(str(getattr(self, name)))
            except UsageProblem as error:
                found.append(_problem(name, f"is not an amount of memory: {error.message}", error.hint))
        return found

    def _wrong_env(self) -> list[Problem]:
        given: Any = self.env
        if not isinstance(given, Mapping):
            return [_problem("env", "must be a mapping of names to values")]
        found = []
        for name in given:
            try:
                check_env_name(str(name))
            except UsageProblem as error:
                found.append(_problem("env", f"has a wrong name: {error.message}", error.hint))
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PaddleJob:
        """Read a request's fields, in the design's names or the implementation's.

        Raises:
            InvalidDocument: with every field that is unknown, given twice or wrong.
        """
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {}
        problems = []
        for name, value in data.items():
            own = _ALIASES.get(name, name)
            if own not in known:
                problems.append(_problem(name, "is not known here", _NOT_HERE.get(name, "")))
            elif own in values:
                problems.append(_problem(own, f"is given twice, also as `{name}`"))
            else:
                values[own] = value
        try:
            job = cls(**values)
        except InvalidDocument as error:
            raise InvalidDocument([*problems, *error.problems]) from None
        if problems:
            raise InvalidDocument(problems)
        return job


def _role_text(name: str, instances: int, cpu: int, gpu: int, memory: str) -> str:
    gpus = f",gpu={gpu}" if gpu else ""
    return f"{name}:{instances},cpu={cpu}{gpus},mem={memory},launcher=paddle"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _problem(name: str, words: str, hint: str = "") -> Problem:
    message = f"Field `{name[:60]}` {words}" + ("" if words.endswith(".") else ".")
    return Problem("error", "paddle-job", message, f"/{name[:60]}", hint=hint)
