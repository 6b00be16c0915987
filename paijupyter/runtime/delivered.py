"""What was delivered to a task as parcels, put where its spec speaks of it."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


def delivered(spec: "Dict[str, Any]", run: str) -> "Dict[str, Any]":
    """Return ``package`` and ``data`` of a spec as boot understands them, with each parcel in its place.

    Args:
        spec: of a whole job: it names parcels by their numbers.
        run: a folder that is this task's own.
    """
    parcels = [
        dict(parcel, target=os.path.join(run, "parcels", str(number)))
        for number, parcel in enumerate(spec.get("parcels") or ())
    ]
    found = {}
    if spec.get("package") is not None:
        found["package"] = {"parcel": parcels[spec["package"]]}
    if spec.get("data"):
        found["data"] = _data(spec["data"], run, parcels)
    return found


def _data(data: "Dict[str, Any]", run: str, parcels: "List[Dict[str, Any]]") -> "Dict[str, Any]":
    sources = []
    for source in data["sources"]:
        package = source.get("package")
        if package:
            source = dict(source, package=dict(package, parcel=parcels[package["parcel"]]))
        sources.append(dict(source, place=os.path.join(run, source["place"])))  # an absolute one stays
    found = {"cache": os.path.join(run, "datasets"), "resolved": os.path.join(run, "resolved")}
    return dict(data, sources=sources, **found)
