"""What may be set of a job's pods: by the profile, then by the document, then for one role of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.backends import reading
from paijupyter.backends.base import Job, Profile
from paijupyter.backends.reading import Reader
from paijupyter.errors import Problem

_POINTER = "/extras/paijupyter/kubernetes"


@dataclass(frozen=True, slots=True)
class PodOptions:
    """Options of a pod; later ones are laid over earlier ones by :meth:`over`.

    Attributes:
        python: the interpreter in the image that runs the boot file, 3.6 or newer.
        pull_policy: of the image; "" leaves it to Kubernetes.
        pull_secrets: names of Secrets of the namespace with registry credentials.
        node_selector: labels that a node must have.
        affinity: as in a pod's spec.
        tolerations: as in a pod's spec.
        priority_class: name of a PriorityClass, or "".
        runtime_class: name of a RuntimeClass, or "".
        scheduler: name of the scheduler, or "".
        service_account: whose rights admission looks at; pods never get its token.
        security: ``restricted`` (no capabilities), ``baseline`` (those of the runtime).
        run_as_user: user id of the container; None: the image's.
        fs_group: group that owns the volumes; None: nothing is changed.
        resources: extended resources of each task, amounts as texts.
        templates: patches of the pod template, in this order.
    """

    python: str = "python3"
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Mapping[str, Any] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str = ""
    runtime_class: str = ""
    scheduler: str = ""
    service_account: str = ""
    security: str = "restricted"
    run_as_user: int | None = None
    fs_group: int | None = None
    resources: Mapping[str, str] = field(default_factory=dict)
    templates: tuple[Mapping[str, Any], ...] = ()

    def over(self, later: Mapping[str, Any]) -> PodOptions:
        """Return these with others laid over them: mappings by key, lists one after the other."""
        changed: dict[str, Any] = {}
        for name, value in later.items():
            mine = getattr(self, name)
            if isinstance(mine, Mapping) and name != "affinity":
                changed[name] = {**mine, **value}
            elif isinstance(mine, tuple):
                changed[name] = (*mine, *(each for each in value if each not in mine))
            else:
                changed[name] = value
        return replace(self, **changed)


OPTIONS: Mapping[str, tuple[str, Reader, str]] = {
    "pythonPath": ("python", reading.text, "interpreter in the image that starts a task; default: python3"),
    "imagePullPolicy": (
        "pull_policy",
        reading.one_of("Always", "IfNotPresent", "Never"),
        "Always, IfNotPresent or Never; default: Kubernetes' own rule",
    ),
    "imagePullSecrets": (
        "pull_secrets",
        reading.list_of(reading.name),
        "names of Secrets in the namespace with credentials of registries",
    ),
    "nodeSelector": ("node_selector", reading.texts, "labels that a node must have"),
    "affinity": ("affinity", reading.mapping, "affinity, as in a pod's spec"),
    "tolerations": (
        "tolerations",
        reading.list_of(reading.mapping),
        "tolerations, as in a pod's spec",
    ),
    "priorityClass": ("priority_class", reading.name, "name of a PriorityClass"),
    "runtimeClass": ("runtime_class", reading.name, "name of a RuntimeClass"),
    "scheduler": ("scheduler", reading.text, "name of the scheduler"),
    "serviceAccount": (
        "service_account",
        reading.name,
        "service account of the pods; they never get its token",
    ),
    "security": (
        "security",
        reading.one_of("restricted", "baseline"),
        "restricted (default: a container without capabilities) or baseline, for images that need to be root",
    ),
    "runAsUser": (
        "run_as_user",
        reading.whole,
        "user id of the tasks; default: the image's, and 1000 where the namespace refuses root",
    ),
    "fsGroup": ("fs_group", reading.whole, "group that volumes are given to; default: none"),
    "resources": ("resources", reading.counts, "extended resources of each task: {rdma/hca: 1}"),
    "podTemplate": (
        "templates",
        reading.list_of(reading.mapping),
        "patch of the pod template, for what has no setting: {spec: {topologySpreadConstraints: …}}",
    ),
}
"""Key → field of :class:`PodOptions`, reader, and words for people."""

_TABLE = {key: (field_name, reader) for key, (field_name, reader, _) in OPTIONS.items()}
_OF_DOCUMENT = frozenset(
    {*OPTIONS, "roles", "queue", "restartPolicy", "backoffLimit", "activeDeadlineSeconds", "manifest"}
)


def of_profile(profile: Profile) -> tuple[PodOptions, list[tuple[str, str]]]:
    """Return the options of a profile, and which of its settings cannot be used."""
    found, wrong = reading.read(_TABLE, profile.settings)
    return PodOptions().over(found), wrong


def of_role(options: PodOptions, job: Job, role: str) -> PodOptions:
    """Return the options of a role: the profile's, the document's, then the role's own.

    What cannot be used is left out: :func:`problems` says so in the plan.
    """
    ours = of_document(job)
    for values in (ours, _mapping(_mapping(ours.get("roles")).get(role))):
        found, _ = reading.read(_TABLE, values)
        options = options.over(found)
    return options


def of_document(job: Job) -> Mapping[str, Any]:
    """Return the document's ``extras.paijupyter.kubernetes``, or {}."""
    return _mapping(job.extras.get("kubernetes"))


def problems(job: Job) -> Iterator[Problem]:
    """Yield what is wrong with ``extras.paijupyter.kubernetes``."""
    ours = of_document(job)
    yield from _problems(ours, _POINTER, _OF_DOCUMENT)
    for role, values in _mapping(ours.get("roles")).items():
        if role not in job.roles:
            yield Problem(
                "error",
                "unknown-role",
                f"Role `{role}` of the Kubernetes options is not one of the job.",
                f"{_POINTER}/roles/{role}",
                hint=f"Its roles: {', '.join(job.roles)}.",
            )
        else:
            yield from _problems(_mapping(values), f"{_POINTER}/roles/{role}", frozenset(OPTIONS))


def _problems(values: Mapping[str, Any], pointer: str, known: frozenset[str]) -> Iterator[Problem]:
    for key in values:
        if key not in known:
            yield Problem(
                "error",
                "unknown-option",
                f"Kubernetes option `{key}` is not known.",
                f"{pointer}/{key}",
                hint=f"Known are: {', '.join(sorted(known))}.",
            )
    for key, why in reading.read(_TABLE, values)[1]:
        yield Problem("error", "bad-option", f"Kubernetes option `{key}` {why}.", f"{pointer}/{key}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
