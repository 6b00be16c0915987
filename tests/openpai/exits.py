"""What OpenPAI's exit catalogue says of the codes that the scripted server can give.

The facts (code, phrase, who issued it, what kind, retried or not) are those measured; the sentences are ours,
but for those that a client may want to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
# code: phrase, issuer, causer, type, stage, behavior, reaction, reason
_SPECS: Mapping[int, tuple[str, str, str, str, str, str, str, str]] = {
    0: ("Succeeded", "USER_CONTAINER", "USER_CONTAINER", "USER_SUCCESS", "COMPLETING", "UNKNOWN",
        "NEVER_RETRY", ""),
    1: ("PAIRuntimeExitAbnormally", "PAI_RUNTIME", "PAI_RUNTIME", "PLATFORM_FAILURE", "UNKNOWN", "UNKNOWN",
        "RETRY_TO_MAX", "The runtime exited in a way that it does not know"),
    137: ("ContainerSigKillReceived", "OS", "UNKNOWN", "UNKNOWN_FAILURE", "UNKNOWN", "TRANSIENT_NORMAL",
          "ALWAYS_RETRY", "Container was killed"),
    139: ("ContainerSigSegvReceived", "OS", "UNKNOWN", "UNKNOWN_FAILURE", "UNKNOWN", "UNKNOWN",
          "RETRY_TO_MAX", "Container accessed memory that it has not"),
    143: ("ContainerSigTermReceived", "OS", "UNKNOWN", "UNKNOWN_FAILURE", "UNKNOWN", "TRANSIENT_NORMAL",
          "ALWAYS_RETRY", "Container was told to end"),
    220: ("UserCommandExitWithError", "USER_CONTAINER", "USER_CONTAINER", "USER_FAILURE", "RUNNING",
          "PERMANENT", "NEVER_RETRY", "User command failed"),
    232: ("ContainerImportError", "PAI_RUNTIME", "USER_CONTAINER", "USER_FAILURE", "RUNNING", "PERMANENT",
          "NEVER_RETRY", "A Python module could not be imported"),
    251: ("JobGangAllocationTimeout", "PAI_RUNTIME", "RESOURCE_ALLOCATION_TIMEOUT",
          "RESOURCE_ALLOCATION_TIMEOUT", "ALLOCATING", "TRANSIENT_CONFLICT", "ALWAYS_BACKOFF_RETRY",
          "All requested resources of all tasks in the job cannot be satisfied in time"),
    254: ("PAIRuntimeImageNotFound", "PAI_RUNTIME", "USER_SUBMISSION", "USER_FAILURE", "LAUNCHING",
          "PERMANENT", "NEVER_RETRY", "The image is not there"),
    255: ("PAIRuntimeUnknownFailed", "PAI_RUNTIME", "UNKNOWN", "UNKNOWN_FAILURE", "UNKNOWN", "UNKNOWN",
          "RETRY_TO_MAX", "User command failed but the failure cannot be recognized by PAI Runtime"),
    -200: ("PodCreationPermanentError", "PAI_FC", "USER_SUBMISSION", "USER_FAILURE", "CREATING", "PERMANENT",
           "NEVER_RETRY", "Pod was refused"),
    -210: ("StopFrameworkRequested", "PAI_FC", "USER_STOP", "USER_STOP", "UNKNOWN", "PERMANENT",
           "NEVER_RETRY", "Job was stopped by its user"),
    -220: ("FrameworkAttemptCompletion", "PAI_FC", "USER_STOP", "USER_STOP", "UNKNOWN", "PERMANENT",
           "NEVER_RETRY", "Stop to complete current job attempt"),
    -1000: ("PodEvicted", "K8S_KUBELET", "OTHERS", "PLATFORM_FAILURE", "UNKNOWN", "TRANSIENT_NORMAL",
            "ALWAYS_RETRY", "Pod was evicted by its node"),
    -1100: ("CreateFrameworkPermanentFailed", "PAI_DB_CONTROLLER", "USER_SUBMISSION", "USER_FAILURE",
            "SUBMITTING", "PERMANENT", "NEVER_RETRY",
            "Job is submitted to database, but cannot be created in ApiServer due to permanent failures"),
    -1200: ("UserContainerDockerOOMKilled", "PAI_DOCKER", "USER_CONTAINER", "USER_FAILURE", "RUNNING",
            "PERMANENT", "NEVER_RETRY", "Container used more memory than it asked for"),
}  # fmt: skip
_KEYS = ("code", "phrase", "issuer", "causer", "type", "stage", "behavior", "reaction")
_BY_LAUNCHER = {
    0: "Pod succeeded",
    -210: "User has requested to stop the Framework",
    -220: "Stop to complete current FrameworkAttempt",
    -1100: "Job is submitted to database, but cannot be created in ApiServer due to permanent failures.",
}


def spec(code: int | None) -> Json | None:
    """Return what the catalogue says of a code, None while there is none."""
    if code is None:
        return None
    *facts, reason = _SPECS.get(code, _SPECS[255])
    shown: Json = dict(zip(_KEYS, (code, *facts), strict=True))
    if code == 0:
        return {**shown, "repro": ["User program exits with exitcode 0"]}
    solution = [] if code in (-210, -220) else ["Check container log and find root cause"]
    return {**shown, "reason": reason, "repro": [], **({"solution": solution} if solution else {})}


def messages(code: int | None, said: Mapping[str, Any]) -> Json | None:
    """Return `appExitMessages`: of the runtime if the user's command ran, else of the launcher."""
    if code is None:
        return None
    if "origin" not in said:
        return {"container": None, "runtime": None, "launcher": diagnostics(code, said)}
    runtime: Json = {
        "exitCode": 137 if code == -1200 else code,
        "originUserExitCode": said["origin"],
        "errorLogs": {"user": said.get("user", ""), "platform": "[openpai-runtime] USER COMMAND START\n"},
        "name": "app",
    }
    if "matched" in said:
        runtime["matchedUserLogString"] = said["matched"]
    return {"container": None, "runtime": runtime, "launcher": None}


def diagnostics(code: int | None, said: Mapping[str, Any]) -> str | None:
    """Return the text of the exit, None while there is none."""
    if code is None:
        return None
    if code in _BY_LAUNCHER:
        return _BY_LAUNCHER[code]
    if "diagnostics" in said:
        return str(said["diagnostics"])
    if "origin" not in said:
        return f"Pod failed: PodPattern unmatched: code {code}"
    lines = "".join(f"          {line}\n" for line in str(said.get("user", "")).splitlines())
    return (
        "Pod failed: PodPattern matched:\ncontainers:\n  - name: app\n    message: |-\n"
        f"      [PAI_RUNTIME_ERROR_START]\n      exitCode: {code}\n"
        f"      originUserExitCode: {said['origin']}\n      errorLogs:\n        user: |\n{lines}"
        f"      [PAI_RUNTIME_ERROR_END]\n    code: {code}\n"
    )
