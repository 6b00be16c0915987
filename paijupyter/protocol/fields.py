"""The table of fields: one row per thing a person can set, for form, option help and reference.

Types come from the writing model (``models.py``); a test holds each row to it. Plain Python on purpose:
surfaces read this table without loading pydantic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from paijupyter.protocol.roles import DEFAULT_CPU, DEFAULT_MEMORY_MB

Level = Literal["basic", "advanced"]
Widget = Literal["text", "number", "select", "switch", "lines", "table", "roles", "memory", "duration"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a job.

    Attributes:
        path: JSON Pointer into the document; ``*`` stands for each name of a role, parameter or label.
        label: the words beside it in the form, sentence case.
        help: one sentence on what it does.
        unit: of a number, or "".
        level: whether the form shows it at once or when unfolded.
        flag: the option of magic and command line, or "" where it is part of another (``--role``).
        widget: how the form shows it.
        default: what happens when it is left out, as a value or in words; None: nothing is set.
        required: whether a job cannot do without.
    """

    path: str
    label: str
    help: str
    unit: str = ""
    level: Level = "basic"
    flag: str = ""
    widget: Widget = "text"
    default: Any = None
    required: bool = False


_ROLE = "/taskRoles/*"
_RESOURCES = f"{_ROLE}/resourcePerInstance"
_EXTRAS = "/extras/paijupyter"

FIELDS: tuple[Field, ...] = (
    Field(
        "/name",
        "Name",
        "Short name of the job; a suffix makes it unique.",
        flag="--name",
        default="made from the notebook or script",
    ),
    Field(
        "/description",
        "Description",
        "What the job is for; nothing depends on it.",
        level="advanced",
        widget="lines",
    ),
    Field(
        "/taskRoles",
        "Roles",
        "Groups of equal tasks, for example `worker:4,gpu=1`; `ps:0` leaves a role out.",
        flag="--role",
        widget="roles",
        default="worker:1",
    ),
    Field(
        f"{_ROLE}/instances",
        "Instances",
        "How many tasks the role has.",
        unit="tasks",
        widget="number",
        default=1,
    ),
    Field(
        f"{_ROLE}/commands",
        "Commands",
        "Lines that one bash runs in every task of the role; the first that fails ends it.",
        flag="--command",
        widget="lines",
        required=True,
    ),
    Field(
        f"{_RESOURCES}/gpu",
        "GPUs",
        "GPUs of each task.",
        unit="GPUs",
        widget="number",
        default=0,
    ),
    Field(
        f"{_RESOURCES}/cpu",
        "CPUs",
        "CPU cores of each task.",
        unit="cores",
        level="advanced",
        widget="number",
        default=DEFAULT_CPU,
    ),
    Field(
        f"{_RESOURCES}/memoryMB",
        "Memory",
        "Memory of each task, for example 8Gi.",
        unit="MB",
        level="advanced",
        widget="memory",
        default=DEFAULT_MEMORY_MB,
    ),
    Field(
        f"{_ROLE}/extraContainerOptions/shmMB",
        "Shared memory",
        "Size of /dev/shm in each task.",
        unit="MB",
        level="advanced",
        widget="memory",
        default="the backend's, 512 on OpenPAI",
    ),
    Field(
        f"{_RESOURCES}/ports",
        "Ports",
        "Labels and how many ports each gets; the numbers are in PAI_PORT_LIST_….",
        level="advanced",
        widget="table",
    ),
    Field(
        "/prerequisites/*/uri",
        "Image",
        "Container image of the tasks; the local backend runs without one.",
        level="advanced",
        flag="--image",
        default="the profile's",
    ),
    Field(
        f"{_ROLE}/completion/minFailedInstances",
        "Failed tasks that end the job",
        "So many failed tasks of the role end the job as failed; -1: never.",
        unit="tasks",
        level="advanced",
        widget="number",
        default=1,
    ),
    Field(
        f"{_ROLE}/completion/minSucceededInstances",
        "Succeeded tasks that end the job",
        "So many succeeded tasks of the role end the job as succeeded; -1: only all of the job's.",
        unit="tasks",
        level="advanced",
        widget="number",
        default="all instances; never for a service",
    ),
    Field(
        "/parameters",
        "Parameters",
        "Public values for `<% $parameters.name %>` in commands and PAI_PARAM_<NAME> in the tasks.",
        flag="--param",
        widget="table",
    ),
    Field(
        "/secrets",
        "Secrets",
        "Names of private values and where they come from: `keyring:entry`, `env:VARIABLE` or `ask`.",
        flag="--secret",
        widget="table",
    ),
    Field(
        f"{_EXTRAS}/env",
        "Environment",
        "Environment variables of every task.",
        flag="--env",
        widget="table",
    ),
    Field(
        f"{_EXTRAS}/roles/*/env",
        "Environment of the role",
        "Environment variables of the tasks of one role.",
        level="advanced",
        widget="table",
    ),
    Field(
        f"{_EXTRAS}/roles/*/launcher",
        "Launcher",
        "Whose rendezvous variables the tasks get.",
        level="advanced",
        widget="select",
        default="plain",
    ),
    Field(
        f"{_EXTRAS}/roles/*/service",
        "Service",
        "The role never ends by itself and does not decide success.",
        level="advanced",
        widget="switch",
        default="true for a role named ps, else false",
    ),
    Field(
        f"{_EXTRAS}/roles/*/limitMemory",
        "Limit memory",
        "Whether a task that takes more than its memory is ended; else memory is only counted in the queue.",
        level="advanced",
        widget="switch",
        default="true; false where nobody said how much memory",
    ),
    Field(
        f"{_EXTRAS}/data",
        "Data",
        "Data by name, for example `train=https://host/train.csv`; each task finds it in $PAI_DATA_<NAME>.",
        flag="--data",
        widget="table",
    ),
    Field(
        "/extras/storages",
        "Storages",
        "Storages of the profile that the tasks get; each is in $PAI_STORAGE_<NAME>.",
        flag="--storage",
        widget="table",
        default="the profile's default ones",
    ),
    Field(
        f"{_EXTRAS}/outputs",
        "Outputs",
        "Patterns of files that are kept when a task ends; PAI_OUTPUT_DIR is kept anyway.",
        flag="--output",
        widget="lines",
    ),
    Field(
        f"{_EXTRAS}/requirements",
        "Requirements",
        "Requirements file of the package.",
        level="advanced",
        flag="--requirements",
        default="requirements.txt, if there is one",
    ),
    Field(
        f"{_EXTRAS}/install",
        "Install",
        "Whether requirements are installed in the task.",
        level="advanced",
        flag="--install",
        widget="select",
        default="if-missing on this machine, never on clusters",
    ),
    Field(
        f"{_EXTRAS}/timeLimit",
        "Time limit",
        "Longest time one attempt may run, for example 2h30m.",
        unit="s",
        level="advanced",
        flag="--time-limit",
        widget="duration",
    ),
    Field(
        f"{_EXTRAS}/barrierTimeout",
        "Start limit",
        "How long tasks wait for each other at the start.",
        unit="s",
        level="advanced",
        widget="duration",
        default=600,
    ),
    Field(
        "/jobRetryCount",
        "Retries",
        "How often the whole job is tried again after a failure.",
        level="advanced",
        flag="--retry",
        widget="number",
        default=0,
    ),
    Field(
        "/defaults/virtualCluster",
        "Virtual cluster",
        "Share of the cluster the job takes its resources from.",
        level="advanced",
        flag="--virtual-cluster",
        default="the profile's",
    ),
)
