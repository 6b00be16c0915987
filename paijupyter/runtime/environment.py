"""The environment of a task: OpenPAI's names, the launcher's, the user's, ours. A pure function.

Differences from the original: role names are exported raw *and* converted (``ps_server`` and ``psserver``) in
every name that holds one; ``PAI_WORK_DIR`` is the package folder; ``RUNTIME_LOG_PIPE`` leads nowhere; the
uids among the ``FC_*`` names do not exist.
"""

import os
import re

from . import launchers
from .tasks import all_tasks, key, port_labels
from .values import text_of

LONGEST_VARIABLE = 131072  # bytes of NAME=value and its end (Linux: MAX_ARG_STRLEN)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping

    Spec = Dict[str, Any]


def environment(spec: "Spec", inherited: "Mapping[str, str]") -> "Dict[str, str]":
    """Return all variables of the user's command, except its secrets.

    Args:
        spec: the task's ``spec.json``.
        inherited: the environment of the boot process.

    Raises:
        Failure: ``launcher`` if the role asks for one that does not exist.
    """
    role = current_role(spec)
    chosen = {"PYTHONUNBUFFERED": "1"}
    chosen.update(launchers.variables(spec, role))
    for given in (spec.get("env"), role.get("env")):
        chosen.update({name: text_of(value) for name, value in (given or {}).items()})
    found = dict(inherited)
    found.update(chosen)
    found.update(_job(spec))
    found.update(_roles(spec))
    found.update(_peers(spec))
    found.update(_current(spec, role))
    found.update(_framework_controller(spec, role))
    found.update(_ours(spec))
    path = [work_folder(spec), found.get("PYTHONPATH"), library_folder(spec)]
    found["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    return found


def drop_too_long(variables: "Dict[str, str]") -> "List[str]":
    """Remove variables that no program could be started with; return their names.

    Parameters and secrets of that length can still be read from their files.
    """
    dropped = [
        name
        for name, value in variables.items()
        if len(name) + len(value.encode("utf-8", "surrogateescape")) + 2 > LONGEST_VARIABLE
    ]
    for name in dropped:
        del variables[name]
    return dropped


def current_role(spec: "Spec") -> "Spec":
    """Return this task's role."""
    found: "Dict[str, Spec]" = {role["name"]: role for role in spec["roles"]}
    return found[spec["role"]]


def work_folder(spec: "Spec") -> str:
    """Return the package folder, which is the working directory."""
    return os.path.join(spec["folder"], "work")


def library_folder(spec: "Spec") -> str:
    """Return where the modules are that every script may import."""
    return os.path.join(spec["private"], "library")


def key_file(spec: "Spec") -> str:
    """Return the file of what only the tasks of this job know."""
    return os.path.join(spec["private"], "job.key")


def converted(name: str) -> str:
    """Return a role name as FrameworkController writes it: lower case, letters and digits only."""
    return re.sub("[^a-z0-9]", "", name.lower())


def _job(spec: "Spec") -> "Dict[str, str]":
    job = spec["job"]
    full_name = "%s~%s" % (job["user"], job["name"])
    roles = [role["name"] for role in spec["roles"]]
    task_count = str(len(all_tasks(spec)))
    return {
        "PAI_FRAMEWORK_NAME": full_name,
        "PAI_JOB_NAME": full_name,
        "PAI_USER_NAME": job["user"],
        "PAI_USERNAME": job["user"],
        "PAI_VIRTUAL_CLUSTER": text_of(job.get("virtualCluster")) or "default",
        "PAI_JOB_VC_NAME": text_of(job.get("virtualCluster")) or "default",
        "PAI_DEFAULT_FS_URI": text_of(job.get("defaultFsUri")),
        "PAI_TASK_ROLE_COUNT": str(len(roles)),
        "PAI_TASK_ROLES_NUM": str(len(roles)),
        "PAI_JOB_TASK_ROLE_COUNT": str(len(roles)),
        "PAI_TASK_ROLE_LIST": ",".join(roles),
        "PAI_JOB_TASK_ROLE_LIST": ",".join(roles),
        "PAI_TASKS_NUM": task_count,
        "PAI_JOB_TASK_COUNT": task_count,
        "PAI_TASK_ROLE_INSTANCES": ",".join("%s:%d" % (converted(r["name"]), i) for r, i in all_tasks(spec)),
    }


def _roles(spec: "Spec") -> "Dict[str, str]":
    found = {}
    for role in spec["roles"]:
        for name in spellings(role["name"]):
            found["PAI_TASK_ROLE_TASK_COUNT_" + name] = text_of(role["instances"])
            found["PAI_RESOURCE_" + name] = ",".join(resources(role))
            found["PAI_MIN_FAILED_TASK_COUNT_" + name] = text_of(role["minFailed"])
            found["PAI_MIN_SUCCEEDED_TASK_COUNT_" + name] = text_of(role["minSucceeded"])
    return found


def _peers(spec: "Spec") -> "Dict[str, str]":
    found: "Dict[str, str]" = {}
    for role, index in all_tasks(spec):
        task = key(role, index)
        for name in spellings(role["name"]):
            found["PAI_HOST_IP_%s_%d" % (name, index)] = host(spec, task)
            for label in port_labels(spec, role, index):
                ports = comma(spec["ports"][task][label])
                found["PAI_PORT_LIST_%s_%d_%s" % (name, index, label)] = ports
                found["PAI_%s_%d_%s_PORT" % (name, index, label)] = ports
    for role in spec["roles"]:
        tasks = [key(role, index) for index in range(role["instances"])]
        addresses = ",".join("%s:%s" % (host(spec, task), first_http(spec, task)) for task in tasks)
        for name in spellings(role["name"]):
            found["PAI_TASK_ROLE_%s_HOST_LIST" % name] = addresses
    return found


def _current(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    index = spec["index"]
    task = key(role, index)
    own = (spec.get("ports") or {}).get(task) or {}
    gpu, cpu, memory, shared_memory = resources(role)
    found = {
        "PAI_CURRENT_TASK_ROLE_NAME": role["name"],
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
        "PAI_TASK_INDEX": str(index),
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": text_of(role["instances"]),
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": gpu,
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": cpu,
        "PAI_CURRENT_TASK_ROLE_MEM_MB": memory,
        "PAI_CURRENT_TASK_ROLE_SHM_MB": shared_memory,
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": text_of(role["minFailed"]),
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": text_of(role["minSucceeded"]),
        "PAI_CONTAINER_HOST_IP": host(spec, task),
        "PAI_CURRENT_CONTAINER_IP": host(spec, task),
        "PAI_CONTAINER_HOST_PORT": first_http(spec, task),
        "PAI_CURRENT_CONTAINER_PORT": first_http(spec, task),
        "PAI_CONTAINER_SSH_PORT": comma((own.get("ssh") or [])[:1]),
        "PAI_CONTAINER_HOST_PORT_LIST": "",
        "PAI_WORK_DIR": work_folder(spec),
        "RUNTIME_LOG_PIPE": os.devnull,
    }
    for label in port_labels(spec, role, index):
        found["PAI_CONTAINER_HOST_%s_PORT_LIST" % label] = comma(own[label])
        found["PAI_CONTAINER_HOST_PORT_LIST"] += "%s:%s;" % (label, comma(own[label]))
    if gpu == "0":
        found["NVIDIA_VISIBLE_DEVICES"] = "none"
    return found


def _framework_controller(spec: "Spec", role: "Spec") -> "Dict[str, str]":
    try:  # without OpenSSL, which takes longer to load than everything else here, and may forbid md5
        from _md5 import md5  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import md5

    job = spec["job"]
    digest = md5(("%s~%s" % (job["user"], job["name"])).encode("utf-8")).hexdigest()
    name = converted(role["name"])
    return {
        "FC_FRAMEWORK_NAMESPACE": "default",
        "FC_FRAMEWORK_NAME": digest,
        "FC_FRAMEWORK_ATTEMPT_ID": text_of(job.get("attempt") or 0),
        "FC_CONFIGMAP_NAME": digest + "-attempt",
        "FC_POD_NAME": "%s-%s-%d" % (digest, name, spec["index"]),
        "FC_TASKROLE_NAME": name,
        "FC_TASK_INDEX": str(spec["index"]),
        "FC_TASK_ATTEMPT_ID": "0",
    }


def _ours(spec: "Spec") -> "Dict[str, str]":
    private = spec["private"]
    found = {
        "PAI_PACKAGE_DIR": work_folder(spec),
        "PAI_CODE_DIR": work_folder(spec),
        "PAI_OUTPUT_DIR": spec["output"],
        "PAI_METRICS_FILE": os.path.join(spec["folder"], "metrics.jsonl"),
        "PAI_PARAMETERS_FILE": os.path.join(private, "parameters.json"),
        "PAI_SECRETS_DIR": os.path.join(private, "secrets"),
        "PAI_JOB_ID": spec["job"]["id"],
        "PAI_ATTEMPT": text_of(spec["job"].get("attempt") or 0),
    }
    if spec.get("checkpoints"):
        found["PAI_CHECKPOINT_DIR"] = spec["checkpoints"]
    if spec.get("key"):
        found["PAI_JOB_KEY_FILE"] = key_file(spec)
    for source in (spec.get("data") or {}).get("sources") or ():
        found["PAI_DATA_" + capitals(source["name"])] = source["place"]
    for storage in spec.get("storages") or ():
        found["PAI_STORAGE_" + capitals(storage["name"])] = storage["path"]
    parameters = spec.get("parameters") or {}
    for name in parameters:
        found["PAI_PARAM_" + capitals(name)] = text_of(parameters[name])
    for name in parameters:  # after the upper-case spellings: `lr` beats `LR` only as PAI_PARAM_lr
        found["PAI_PARAM_" + name] = text_of(parameters[name])
    return found


def capitals(name: str) -> str:
    """Return a name as part of a variable's name: capitals, digits and ``_``."""
    return re.sub("[^A-Z0-9_]", "_", name.upper())


def spellings(name: str) -> "List[str]":
    """Return a role name raw and converted; the raw one last, so that it wins where two roles collide."""
    return [spelling for spelling in (converted(name), name) if spelling]


def resources(role: "Spec") -> "List[str]":
    """Return gpu, cpu, memory and shared memory in MB, as ``PAI_RESOURCE_<role>`` lists them."""
    given = role.get("resources") or {}
    return [text_of(given.get(name) or 0) for name in ("gpu", "cpu", "memoryMB", "shmMB")]


def host(spec: "Spec", task: str) -> str:
    """Return the address of a task."""
    return text_of((spec.get("hosts") or {}).get(task))


def first_http(spec: "Spec", task: str) -> str:
    """Return a task's first http port as text, "" if it has none."""
    ports = (spec.get("ports") or {}).get(task) or {}
    return comma((ports.get("http") or [])[:1])


def comma(numbers: "Iterable[int]") -> str:
    """Return a list of ports as text."""
    return ",".join(str(number) for number in numbers)
