"""A task of a job on OpenPAI: ``python -I -S FOLDER openpai SPEC``, started by the command of the job itself.

The cluster's own runtime has met the other tasks, knows addresses and ports, keeps the log and the end; what
it does not know of (package, data, secrets, launchers, outputs) is done here. All tasks have one spec; beyond
what :mod:`paijupyter.runtime` describes, or in place of it, it has:

- ``commands``: by role; ``secretNames``: of the values that lie in ``secrets/0``, ``secrets/1`` … beside it
- ``parcels``, ``package``: as in a pod (see :mod:`.pod`); ``folder`` and ``urlFile`` of a parcel,
  ``place`` of data and ``environments`` of requirements may be relative to the spec's folder
- ``kept``: a folder of the job in a storage, for checkpoints and outputs, or null
- ``outputsTo``: a file beside the spec that says where outputs are sent (see :mod:`.returned`), or null
"""

import json
import os
import sys

from . import codes, exits, files
from .delivered import delivered
from .environment import converted
from .failure import Failure
from .stdout import StandardOutput
from .tasks import all_tasks, key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from .tasks import Spec

_INIT_HAS = ("ssh", "http")  # labels that every task has


def main(argv: "List[str]") -> int:
    """Run the task of the spec file ``argv[2]``; return the exit status of the job's command."""
    log = StandardOutput()
    try:
        with open(argv[2], "rb") as stream:
            spec: "Spec" = json.loads(stream.read().decode("utf-8"))
        own = own_spec(spec, os.path.dirname(os.path.abspath(argv[2])), os.environ)
        _run(own)
        _send_outputs(own, log)
        with open(os.path.join(own["folder"], "exit.json"), "rb") as stream:
            return codes.status(dict(json.loads(stream.read().decode("utf-8")), stoppedBy=None))
    except Failure as failure:
        log.note(failure.message)
        return codes.status(dict(exits.of_failure(failure).to_json(0, 0, []), stoppedBy=None))
    except Exception as error:  # a mistake of ours must be told apart from one of the user's
        import traceback

        log.note(traceback.format_exc())
        log.note("The task failed (%s: %s)." % (type(error).__name__, error))
        return codes.INTERNAL


def _run(spec: "Spec") -> None:
    from .boot import Boot

    for folder in (spec["folder"], spec["output"]):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    Boot(spec, StandardOutput(int(spec.get("logLimitBytes") or 0))).run()


def _send_outputs(spec: "Spec", log: StandardOutput) -> None:
    if spec.get("outputsTo"):
        from .returned import send

        task = "%s-%d" % (spec["role"], spec["index"])
        said = send(spec["output"], task, spec["outputsTo"], os.path.join(spec["folder"], "outputs.tar.gz"))
        if said:
            log.note(said)
    elif not spec.get("kept"):
        count = sum(len(names) for _, _, names in os.walk(spec["output"]))
        if count:
            words = "1 file" if count == 1 else "%d files" % count
            log.note("Outputs end with this task: %s. Declare them, and give the profile a way." % words)


def own_spec(spec: "Spec", run: str, variables: "Mapping[str, str]") -> "Spec":
    """Return the spec of this task, as boot understands it.

    Args:
        spec: of the job.
        run: the folder that the job's command has unpacked, this task's own.
        variables: the environment that the cluster's runtime has made.

    Raises:
        Failure: ``internal`` if the variables name no task of the job; ``secret`` without a value.
    """
    role = variables.get("PAI_CURRENT_TASK_ROLE_NAME", "")
    index = int(variables.get("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX") or 0)
    own = "%s-%d" % (role, index)
    if own not in [key(*pair) for pair in all_tasks(spec)]:
        raise Failure("internal", "The task `%s` is none of the job's." % own)
    kept = spec.get("kept")
    job = dict(
        spec["job"],
        user=variables.get("PAI_USER_NAME") or spec["job"]["user"],
        virtualCluster=variables.get("PAI_VIRTUAL_CLUSTER") or spec["job"].get("virtualCluster"),
        attempt=int(variables.get("FC_FRAMEWORK_ATTEMPT_ID") or 0),
    )
    found = dict(
        spec,
        job=job,
        role=role,
        index=index,
        command=spec["commands"][role],
        folder=os.path.join(run, "task"),
        private=os.path.join(run, "private"),
        output=os.path.join(kept, "output", own) if kept else os.path.join(run, "output"),
        checkpoints=os.path.join(kept or run, "checkpoints"),
        secrets=_secrets(spec, run),
        barrier=None,
        outputsTo=os.path.join(run, spec["outputsTo"]) if spec.get("outputsTo") else None,
        parcels=[_placed(parcel, run) for parcel in spec.get("parcels") or ()],
        requirements=_own_environments(spec.get("requirements") or {}, run),
        **addresses(spec, variables),
    )
    found.update(delivered(found, run))
    return found


def addresses(spec: "Spec", variables: "Mapping[str, str]") -> "Dict[str, Dict[str, Any]]":
    """Return ``hosts`` and ``ports`` of all tasks, as far as the variables know them.

    Without gang allocation the addresses of tasks that have no place yet are not among them.
    """
    hosts: "Dict[str, str]" = {}
    ports: "Dict[str, Dict[str, List[int]]]" = {}
    for role, index in all_tasks(spec):
        task, name = key(role, index), "%s_%d" % (converted(role["name"]), index)
        hosts[task] = variables.get("PAI_HOST_IP_" + name, "")
        ports[task] = {}
        for label in [*(role.get("ports") or {}), *_INIT_HAS]:
            text = variables.get("PAI_PORT_LIST_%s_%s" % (name, label), "")
            numbers = [int(number) for number in text.split(",") if number.strip().isdigit()]
            if numbers:
                ports[task][label] = numbers
    return {"hosts": hosts, "ports": ports}


def _placed(parcel: "Dict[str, Any]", run: str) -> "Dict[str, Any]":
    """Return a parcel with the paths of this task; an absolute path stays."""
    places = {name: os.path.join(run, parcel[name]) for name in ("folder", "urlFile") if parcel.get(name)}
    return dict(parcel, **places)


def _own_environments(requirements: "Dict[str, Any]", run: str) -> "Dict[str, Any]":
    """Return the settings for requirements with the folder of this task for environments."""
    return dict(requirements, environments=os.path.join(run, requirements.get("environments") or ""))


def _secrets(spec: "Spec", run: str) -> "Optional[str]":
    """Gather the values of the secrets in the one file that boot reads, and remove the others."""
    names = spec.get("secretNames") or []
    if not names:
        return None
    folder, values = os.path.join(run, "secrets"), {}
    for number, name in enumerate(names):
        try:
            with open(os.path.join(folder, str(number)), "rb") as stream:
                text = stream.read().decode("utf-8", "surrogateescape")
        except OSError:
            raise Failure("secret", "The secret `%s` did not reach the task." % name) from None
        values[name] = text[:-1] if text.endswith("\n") else text
    files.remove_tree(folder)
    path = os.path.join(run, "secrets.json")
    files.write_private(path, json.dumps(values).encode("ascii"))
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv))
