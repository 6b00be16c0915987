"""The life of a task, from its spec to its exit record."""

import errno
import json
import os
import sys
import time

from . import barrier, exits, files, launchers, library, memory, ports, process, reports, tree
from .environment import current_role, drop_too_long, environment, key_file, library_folder, work_folder
from .failure import Failure
from .interpreter import put_first
from .logfile import Log
from .memory_limit import MemoryLimit
from .secret_files import fill, read_secrets, write_secrets
from .transcript import Transcript
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from .data import DataFolder
    from .unpack import State

_BASH = ["-o", "errexit", "-o", "nounset", "-o", "pipefail"]
_DEFAULT_GRACE = 10.0  # seconds between TERM and KILL


def main(argv: "List[str]") -> int:
    """Run the task of the spec file ``argv[1]``; its result is in ``exit.json``, not in the status."""
    try:
        os.setsid()
    except OSError:
        pass  # the spawner has done it
    _keep_files_to_ourselves()
    with open(argv[1], "rb") as stream:
        spec = json.loads(stream.read().decode("utf-8"))
    limit, floor = int(spec.get("logLimitBytes") or 0), int(spec.get("logFloorBytes") or 0)
    Boot(spec, Log(spec["folder"], limit, floor)).run()
    return 0


def _keep_files_to_ourselves() -> None:
    """Let no command inherit a file that our spawner left open for us, such as its lock on this task."""
    try:
        descriptors = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return
    for descriptor in descriptors:
        try:
            if descriptor > 2:
                os.set_inheritable(descriptor, False)
        except OSError:
            pass  # the one that listed the folder


class Boot:
    """One task.

    Args:
        spec: all there is to know of it (see the package's docstring).
        log: where what it says goes.
    """

    def __init__(self, spec: "Dict[str, Any]", log: Log) -> None:
        self._spec = spec
        self._folder = spec["folder"]
        self._private = spec["private"]
        self._work = work_folder(spec)
        self._started = time.time()
        self._watch = Watch(spec.get("timeLimit"))
        self._transcript = Transcript(log)
        self._reports = reports.of_task(spec, log, self._transcript.clean)
        self._secrets: "Dict[str, str]" = {}
        self._unpacked: "Dict[bytes, State]" = {}
        self._data: "Optional[DataFolder]" = None
        self._ran = False

    def run(self) -> None:
        """Do everything, and whatever happens: clean up, close the log, write ``exit.json`` last."""
        try:
            result = self._result()
        finally:
            files.remove_tree(self._private)
        log = self._transcript.log
        last_lines = log.last_lines()  # before notes on outputs: the last words are the command's
        self._keep_outputs()
        if self._spec.get("fetch"):
            self._announce_outputs()
        files.remove_tree(os.fsencode(self._work))
        files.remove_tree(os.path.join(self._folder, "data"))  # links only; what they lead to is shared
        log.close()
        result.message = self._transcript.clean(result.message)
        if log.problem:
            result.message = ("%s The log is not complete: %s." % (result.message, log.problem)).lstrip()
        record = result.to_json(self._started, time.time(), last_lines)
        exits.write(os.path.join(self._folder, "exit.json"), record)

    def _result(self) -> exits.Exit:
        try:
            return self._steps()
        except Failure as failure:
            return self._fail(failure)
        except Exception as error:  # a mistake of ours must leave an exit record too
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                return self._fail(Failure("package", "The disk is full (%s)." % error))
            import traceback

            words = "The boot process failed (%s: %s)." % (type(error).__name__, error)
            return self._fail(Failure("internal", words, traceback.format_exc().splitlines()))

    def _fail(self, failure: Failure) -> exits.Exit:
        """Say in the log, too, why the command never ran."""
        for line in failure.lines:
            self._transcript.note(line)
        self._transcript.note(failure.message)
        return exits.of_failure(failure)

    def _steps(self) -> exits.Exit:
        spec = self._spec
        self._write_started()
        files.make_private(self._private)
        self._secrets = read_secrets(spec.get("secrets"))
        self._transcript.hide(value.encode("utf-8", "surrogateescape") for value in self._secrets.values())
        self._runner = process.Runner(self._watch, tree.adopt_orphans())
        self._unpack()
        variables = environment(spec, os.environ)
        variables.update(self._secrets)
        self._provide_data(variables)
        if spec.get("earlier"):
            from .earlier import bring

            bring(spec, self._watch)
        python = self._notebook_environment(self._install(variables), variables)
        self._list_environment(python, variables)
        files.write_atomic(os.path.join(self._folder, "ready"), b"%d\n" % int(time.time() * 1000))
        if spec.get("barrier"):
            barrier.wait(spec["barrier"], self._watch, self._transcript)
        put_first(python, self._private, variables)
        for name in drop_too_long(variables):
            self._transcript.note("The variable %s is too long for an environment and is left out." % name)
        return self._command(variables)

    def _unpack(self) -> None:
        package = self._spec.get("package")
        files.remove_tree(self._work)
        if package:
            from .unpack import unpack

            self._unpacked = unpack(package, self._work, self._watch)
        else:
            os.mkdir(self._work)

    def _provide_data(self, variables: "Dict[str, str]") -> None:
        """Have the data of the job where the task looks for it."""
        if (self._spec.get("data") or {}).get("sources"):
            from .data import DataFolder

            # Kept: as long as it is there, nobody removes what it has brought.
            self._data = DataFolder(self._spec, self._work, self._runner, self._watch, self._transcript)
            self._data.provide(variables, self._secrets)

    def _install(self, variables: "Dict[str, str]") -> "Optional[str]":
        """Return the interpreter for the command, one that has the package's requirements."""
        python = self._spec.get("python")
        settings = self._spec.get("requirements")
        if not settings or not self._spec.get("package"):
            return python
        if not os.path.exists(os.path.join(self._work, settings.get("file") or "requirements.txt")):
            if not settings.get("file"):
                return python
        from .requirements import Requirements

        requirements = Requirements(
            settings, self._work, variables, self._runner, self._watch, self._transcript
        )
        found = requirements.provide(python)
        if found and found != python:
            variables["VIRTUAL_ENV"] = os.path.dirname(os.path.dirname(found))
        return found

    def _notebook_environment(self, python: "Optional[str]", variables: "Dict[str, str]") -> "Optional[str]":
        """Return the interpreter for the command, one that can run notebooks if the command is one."""
        if not self._spec.get("runsNotebook"):
            return python
        from .requirements import Requirements, for_notebooks

        settings = self._spec.get("requirements") or {}
        requirements = Requirements(
            settings, self._work, variables, self._runner, self._watch, self._transcript
        )
        found = for_notebooks(requirements, python, self._private)
        if found and found != python:
            variables["VIRTUAL_ENV"] = os.path.dirname(os.path.dirname(found))
        return found

    def _list_environment(self, python: "Optional[str]", variables: "Dict[str, str]") -> None:
        """Record what is installed; tasks of one role have the same."""
        spec = self._spec
        found = python or process.find("python3", variables.get("PATH") or os.defpath)
        if spec["index"] != 0 or not found:
            return
        from . import freeze

        target = os.path.join(self._folder, "environment.json")
        kept = (spec.get("requirements") or {}).get("environments")

        def run(argv: "List[str]") -> int:
            code = self._runner.run(argv, variables, self._work, lambda _: None, 1.0).code
            return 1 if code is None else code

        try:
            freeze.provide(found, target, kept, run)
            if self._reports:
                self._reports.environment(target)
        except OSError as error:
            self._transcript.note("What is installed could not be listed: %s." % error)

    def _command(self, variables: "Dict[str, str]") -> exits.Exit:
        spec = self._spec
        os.makedirs(spec["output"], exist_ok=True)
        if spec.get("checkpoints"):
            os.makedirs(spec["checkpoints"], exist_ok=True)
        library.write(library_folder(spec))
        variables["PAI_BOOT"] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        if spec.get("key"):
            files.write_private(key_file(spec), spec["key"].encode("ascii"))
        for path, text in launchers.files(spec, current_role(spec)).items():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            files.write_private(path, text.encode("utf-8"))
        write_secrets(variables["PAI_SECRETS_DIR"], self._secrets)
        files.write_private(
            variables["PAI_PARAMETERS_FILE"], json.dumps(spec.get("parameters") or {}).encode("ascii")
        )
        script = os.path.join(self._private, "user.sh")
        text = fill(spec["command"], self._secrets)
        files.write_private(script, (text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
        bash = process.find("bash", variables.get("PATH") or os.defpath)
        if bash is None:
            raise Failure("no-shell", "The task has no bash on its PATH, which its command needs.")
        self._watch.check()
        held = ports.taken(ports.of_task(spec))
        if held:
            raise Failure("ports", "The task lost its port %s to another program." % held)
        before = memory.kills()
        grace = spec.get("graceSeconds")
        grace = _DEFAULT_GRACE if grace is None else float(grace)
        self._ran = True
        output = self._transcript.output
        limit = self._memory_limit()
        try:
            argv = [bash, *_BASH, script]
            outcome = self._runner.run(argv, variables, self._work, output, grace, limit, self._reports)
            self._transcript.flush()
            if self._reports:
                self._reports.finish()
            return self._judge(outcome, memory.kills() - before, limit)
        finally:
            limit.close()

    def _memory_limit(self) -> MemoryLimit:
        spec = self._spec
        megabytes = int(spec.get("memoryLimitMB") or 0)
        job = spec["job"]
        name = "paijupyter-%s-%s-%d-%s" % (job["id"], spec["role"], spec["index"], job.get("attempt") or 0)
        return MemoryLimit(megabytes, spec.get("memoryLimit") or "none", name, self._folder)

    def _judge(self, outcome: process.Outcome, kills: int, limit: MemoryLimit) -> exits.Exit:
        if outcome.error:
            raise Failure("no-shell", "The task's bash could not be started: %s." % outcome.error.strerror)
        why = self._watch.explain(outcome.verdict) if outcome.verdict else ""
        if outcome.verdict == exits.OUT_OF_MEMORY:
            why = limit.words
        if why:
            self._transcript.note(why)
        result = exits.of_command(outcome, why, kills, self._transcript.log.last_lines(), limit)
        if result.reason == "user" and ports.in_use(self._transcript.log.last_lines()):
            held = ports.taken(ports.of_task(self._spec))
            if held:
                result.reason = "ports"
                result.message = "The task lost its port %s to another program." % held
        return result

    def _keep_outputs(self) -> None:
        """Bring declared outputs home, also after a failure: a checkpoint is worth most then."""
        patterns = self._spec.get("outputs") or []
        if not self._ran or not patterns:
            return
        from .outputs import collect

        try:
            notes = collect(patterns, self._work, self._spec["output"], self._unpacked)
        except OSError as error:
            notes = ["The outputs could not be kept: %s." % error]
        for note in notes:
            self._transcript.note(note)

    def _announce_outputs(self) -> None:
        """Say in the log that outputs wait, to a backend that cannot look into our folders."""
        from .outgoing import announced

        line = announced(self._spec["output"])
        if line:
            self._transcript.note(line)

    def _write_started(self) -> None:
        pid = os.getpid()
        try:
            with open("/proc/sys/kernel/random/boot_id") as stream:
                boot_id = stream.read().strip()
        except OSError:
            boot_id = ""
        facts = {"pid": pid, "startTime": tree.start_time(pid), "bootId": boot_id, "at": self._started}
        files.write_json(os.path.join(self._folder, "started.json"), facts)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
