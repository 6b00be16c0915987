"""What a client asks of the cluster: its version, who asks, virtual clusters, storages."""

from __future__ import annotations

import asyncio
import getpass
import time
from collections.abc import Mapping
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.openpai.answers import Refused, in_their_words
from paijupyter.engine.route import Reply

VERSION = "v1.8.1"  # of the API that is answered
DEFAULT = "default"


async def openpai_info(call: Call) -> Reply:
    """Say what this is; ``OIDC`` tells clients that the token, the Jupyter server's, comes from elsewhere."""
    return Reply(
        {"name": "PAI RESTful API", "version": VERSION, "launcherType": "k8s", "authnMethod": "OIDC"}
    )


async def openpai_authn(call: Call) -> Reply:
    """Say how to log in: not here."""
    return Reply({"authn_type": "OIDC", "loginURI": "", "loginURIMethod": "get"})


async def openpai_token(call: Call) -> Reply:
    """Say whose token it is; whoever gets here has one that the Jupyter server takes."""
    return Reply(
        {
            "username": getpass.getuser(),
            "application": True,
            "jobSpecific": False,
            "encodedFrameworkName": "",
            "iat": int(time.time()),
            "admin": False,
        }
    )


@in_their_words
async def openpai_user(call: Call) -> Reply:
    """Return the one user that there is."""
    name = call.path["user"]
    if name != getpass.getuser():
        raise Refused(400 if name == "me" else 404, "NoUserError", f"User {name} is not found.")
    storages = await call.service.storages.list()
    return Reply(
        {
            "username": name,
            "grouplist": [DEFAULT],
            "email": "",
            "extension": {},
            "admin": False,
            "virtualCluster": list(clusters(call)),
            "storageConfig": [each["name"] for each in storages["storages"]],
        }
    )


async def openpai_virtual_clusters(call: Call) -> Reply:
    """Return our profiles as virtual clusters, ``default`` first."""
    found = clusters(call)
    told = await asyncio.gather(*(call.service.settings.test_profile(name) for name in found.values()))
    return Reply({name: _cluster(each) for name, each in zip(found, told, strict=True)})


@in_their_words
async def openpai_virtual_cluster(call: Call) -> Reply:
    """Return one of them."""
    profile = profile_of(call, call.path["name"])
    if profile is None:
        message = f"Virtual cluster {call.path['name']} is not found."
        raise Refused(404, "NoVirtualClusterError", message)
    return Reply(_cluster(await call.service.settings.test_profile(profile)))


async def openpai_storages(call: Call) -> Reply:
    """Return the storages of the default profile."""
    found = await call.service.storages.list()
    shown = [
        {"name": each["name"], "share": False, "volumeName": each["name"], "default": each["default"]}
        for each in found["storages"]
        if each["default"] or call.query.get("default") != "true"
    ]
    return Reply({"storages": shown})


@in_their_words
async def openpai_storage(call: Call) -> Reply:
    """Return one storage; what it is made of is for nobody to know here."""
    name = call.path["name"]
    found = await call.service.storages.list()
    for each in found["storages"]:
        if each["name"] == name:
            kind = {"type": "unknown", "data": {}, "readOnly": bool(each["readOnly"]), "mountOptions": []}
            return Reply({"name": name, "share": False, "volumeName": name, **kind})
    raise Refused(404, "NoStorageError", f"Storage {name} is not found.")


@in_their_words
async def openpai_sku_types(call: Call) -> Reply:
    """Return none: there are no SKUs without HiveD, and a virtual cluster has none to tell of."""
    if "vc" in call.query:
        message = f"Cannot get sku types for virtual cluster {call.query['vc']}."
        raise Refused(404, "NoVirtualClusterError", message)
    return Reply({})


def clusters(call: Call) -> dict[str, str]:
    """Return the virtual clusters and the profiles that they are."""
    found = call.service.settings.profiles()
    names = [str(each["name"]) for each in found["profiles"]]
    return {DEFAULT: str(found["default"]), **{name: name for name in names if name != DEFAULT}}


def profile_of(call: Call, cluster: object) -> str | None:
    """Return the profile that a virtual cluster is, or None."""
    return clusters(call).get(DEFAULT if cluster is None else str(cluster))


def _cluster(told: Mapping[str, Any]) -> dict[str, Any]:
    capabilities = told.get("capabilities") or {}
    total, free = capabilities.get("capacity") or {}, capabilities.get("free") or {}
    used = {key: value - free.get(key, value) for key, value in total.items()}
    return {
        "capacity": 100,
        "usedCapacity": _share(used, total),
        "dedicated": False,
        "resourcesUsed": _resources(used),
        "resourcesGuaranteed": _resources(total),
        "resourcesTotal": _resources(total),
        "maxCapacity": 100,
    }


def _resources(amounts: Mapping[str, float]) -> dict[str, float]:
    cpu, gpu = amounts.get("cpu", 0), amounts.get("gpu", 0)
    return {"cpu": cpu, "memory": amounts.get("memoryMB", 0), "gpu": gpu, "vCores": cpu, "GPUs": gpu}


def _share(used: Mapping[str, float], total: Mapping[str, float]) -> float:
    """Return the percentage of what is shortest."""
    return max((100 * used[key] / value for key, value in total.items() if value), default=0)
