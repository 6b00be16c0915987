"""Why no node has a place for a pod, in words. Pure."""

from __future__ import annotations

import re

from paijupyter.backends.kubernetes.amounts import in_words
from paijupyter.backends.kubernetes.findings import Asked, Event, Finding


def unschedulable(said: str, asked: Asked) -> Finding:
    """Say why no node has a place, from the scheduler's words (``0/3 nodes are available: …``)."""
    claim = re.search(r'persistentvolumeclaim "([^"]+)" (not found|is being deleted)', said)
    if claim:
        how = "does not exist" if claim[2] == "not found" else "is being deleted"
        return Finding("unschedulable", f"its volume claim `{claim[1]}` {how}", _CLAIM, for_ever=True)
    if "unbound immediate PersistentVolumeClaims" in said:
        return Finding("unschedulable", "its volume claim has no volume yet", _UNBOUND, for_ever=True)
    head = said.partition(" preemption:")[0]
    found = re.search(r"(\d+)/(\d+) nodes are available: (.*)", head, re.S)
    if not found:
        return Finding("unschedulable", f"no node has a place for it: {said.rstrip('.')}")
    causes_said = found[3].partition(". ")[0].rstrip(". ")
    causes = [_cause(int(count), what, asked) for count, what in _COUNTED.findall(causes_said)]
    if not causes:
        return Finding("unschedulable", f"no node has a place for it: {causes_said}")
    words = "; ".join(words for words, _, _ in causes)
    advice = next((advice for _, advice, _ in causes if advice), "")
    return Finding(
        "unschedulable",
        f"none of {found[2]} nodes has a place for it: {words}",
        advice,
        for_ever=all(for_ever for _, _, for_ever in causes),
    )


def unbound(told: Event) -> Finding:
    """Say why a volume claim has no volume, from the newest event of it."""
    advice = f"See `kubectl describe pvc {told.about}`; who runs the cluster's storage can tell more."
    if re.search(r'storageclass\S* "[^"]*" not found', told.message):
        advice = "Make the claim anew with a storage class that there is: kubectl get storageclass."
    elif "no storage class is set" in told.message:
        advice = "Make the claim anew with a storage class (kubectl get storageclass), or ask for a volume."
    message = f"its volume claim `{told.about}` has no volume yet: {told.message.strip()}"
    return Finding("unschedulable", message, advice, for_ever=told.reason != "Provisioning")


_CLAIM = "Create the claim, or correct its name in the profile's `storages`."
_UNBOUND = "See `kubectl describe pvc`: most often its storage class does not exist or makes no volumes."
# "1 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {a: b, c}, …"
_COUNTED = re.compile(r"(\d+) ((?:Insufficient|Too many|node\(s\)|Preemption)[^,{]*(?:\{[^}]*\})?[^,{]*)")


def _cause(count: int, what: str, asked: Asked) -> tuple[str, str, bool]:
    """Return words, advice, and whether it does not end by itself."""
    nodes = "1 node" if count == 1 else f"{count} nodes"
    short = re.match(r"Insufficient (\S+)", what)
    if short:
        return _shortage(nodes, short[1], asked)
    taint = re.search(r"taint(?:\(s\))? ?\{([^}]*)\}", what)
    if taint:
        key, _, value = taint[1].partition(":")
        label = f"{key.strip()}={value.strip()}" if value.strip() else key.strip()
        if key.startswith("node.kubernetes.io/"):
            return f"{nodes} cannot take pods now ({key.strip()})", "", False
        advice = f"Use other nodes, or tolerate it: `tolerations` with key {key.strip()}."
        return f"{nodes} kept for others (taint {label})", advice, True
    for pattern, words, advice, for_ever in _PLACES:
        if re.search(pattern, what):
            return words.format(nodes=nodes), advice, for_ever
    return f"{nodes}: {what.strip()}", "", False


def _shortage(nodes: str, resource: str, asked: Asked) -> tuple[str, str, bool]:
    words = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "disk"}.get(resource, resource)
    wanted, most = asked.amounts.get(resource), asked.largest.get(resource)
    if resource not in asked.largest and asked.largest and "/" in resource:
        most = 0.0  # nodes were read, and none has any of it
    if wanted is not None and most is not None and wanted > most:
        has = f"the largest node has {in_words(resource, most)}" if most else "no node has any"
        advice = (
            f"Ask for at most {in_words(resource, most)}."
            if most
            else "Ask for none, or use another cluster."
        )
        return f"it asks {in_words(resource, wanted)} {words} for a task, {has}", advice, True
    asks = f" (it asks {in_words(resource, wanted)})" if wanted is not None else ""
    return (
        f"{nodes} with too little {words} free{asks}",
        "It starts once others have ended; or ask for less.",
        False,
    )


_SELECTOR = "Correct `nodeSelector` or `affinity`."
_PLACES: tuple[tuple[str, str, str, bool], ...] = (
    (r"node affinity/selector|node selector", "{nodes} without the labels it asks for", _SELECTOR, True),
    # Since 1.34 the scheduler does not say which: it may be a node that is not ready.
    (
        r"untolerated taint",
        "{nodes} kept for others or not ready (taints)",
        "Use other nodes, or tolerate their taints: `tolerations`.",
        False,
    ),
    (r"pod anti-affinity|pod affinity", "{nodes} against its pod affinity", "Correct `affinity`.", False),
    (r"volume node affinity conflict", "{nodes} where its volume cannot be", "Use another volume.", True),
    (r"were unschedulable", "{nodes} closed for new pods", "", False),
    (r"free ports", "{nodes} with its port taken", "", False),
    (r"Too many pods", "{nodes} full of pods", "", False),
)
