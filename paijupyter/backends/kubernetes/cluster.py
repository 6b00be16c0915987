"""What is known of a cluster and of our place in it. Pure; ``capabilities.py`` asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Cluster:
    """Facts of a cluster, as far as this user may see them; what may not be seen is empty.

    Attributes:
        version: major and minor number.
        text: the version in full.
        namespace: where the jobs lie.
        groups: API groups that are served.
        queues: Kueue LocalQueues of the namespace, each with the ClusterQueue behind it.
        storage_classes: names of StorageClasses.
        claims: PersistentVolumeClaims of the namespace by name, each with its phase; None: may not be listed.
        rules: what this user may do in the namespace, as SelfSubjectRulesReview lists it.
        rules_incomplete: whether that list has gaps.
        pod_security: what the namespace enforces: ``restricted``, ``baseline`` or "".
        quotas: ResourceQuotas of the namespace.
        limits: LimitRanges of the namespace.
        nodes: what each node has to give, by name of resource; None: may not be listed.
        silent: whether none of the nodes answers.
        unreachable: why nothing of this is known, "" if it is.
    """

    version: tuple[int, int] = (0, 0)
    text: str = ""
    namespace: str = ""
    groups: frozenset[str] = frozenset()
    queues: Mapping[str, str] = field(default_factory=dict)
    storage_classes: tuple[str, ...] = ()
    claims: Mapping[str, str] | None = None
    rules: tuple[Mapping[str, Any], ...] = ()
    rules_incomplete: bool = True
    pod_security: str = ""
    quotas: tuple[Mapping[str, Any], ...] = ()
    limits: tuple[Mapping[str, Any], ...] = ()
    nodes: tuple[Mapping[str, str], ...] | None = None
    silent: bool = False
    unreachable: str = ""

    @property
    def has_kueue(self) -> bool:
        """Whether Kueue is there."""
        return "kueue.x-k8s.io" in self.groups

    @property
    def has_jobset(self) -> bool:
        """Whether JobSet is there."""
        return "jobset.x-k8s.io" in self.groups

    @property
    def has_volcano(self) -> bool:
        """Whether Volcano is there."""
        return "scheduling.volcano.sh" in self.groups

    @property
    def refuses_root(self) -> bool:
        """Whether the namespace admits no container of root."""
        return self.pod_security == "restricted"

    def may(self, verb: str, resource: str, group: str = "") -> bool | None:
        """Say whether this user may do something in the namespace; None: not known.

        Args:
            verb: of the API, for example ``create``.
            resource: plural, with its subresource (``pods/log``).
            group: its API group, "" for the core.
        """
        for rule in self.rules:
            if (
                _has(rule.get("verbs"), verb)
                and _has(rule.get("apiGroups"), group)
                and _has(rule.get("resources"), resource)
                and not rule.get("resourceNames")
            ):
                return True
        return None if self.rules_incomplete else False


def _has(values: Any, wanted: str) -> bool:
    if not values:
        return False
    sub = wanted.partition("/")[2]
    return wanted in values or "*" in values or (bool(sub) and f"*/{sub}" in values)
