"""Requirements of a package: check them, or make an environment that has them, one per set of them."""

import json
import os
import re
import time

from .failure import Failure
from .files import remove_tree, write_atomic
from .missing import MARK
from .process import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    from .process import Runner
    from .transcript import Transcript
    from .watch import Watch

DEFAULT_FILE = "requirements.txt"
_COMPLETE = "complete"  # written last: an environment without it is nobody's
_LOCK_PERIOD = 0.1
_GRACE = 5.0
# `-m` would put the package folder first on sys.path, where a file of the user's may hide a module of pip's.
_AS_MODULE = """
import runpy, sys
sys.path[:] = filter(None, sys.path)
runpy.run_module(sys.argv.pop(1), None, "__main__", True)
"""
_PIP = ["install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]


NOTEBOOKS = ("nbclient>=0.10", "ipykernel>=6.29,!=7.0.0,!=7.0.1")


def for_notebooks(requirements: "Requirements", python: "Optional[str]", private: str) -> "Optional[str]":
    """Return an interpreter that can run notebooks: the given one, or an environment that also sees its own.

    Where nothing may be installed it is the given one: what runs the notebook says then what is missing.

    Raises:
        Failure: ``requirements`` if they cannot be installed.
    """
    path = os.path.join(private, "notebooks.txt")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("".join(line + "\n" for line in NOTEBOOKS))
    return requirements.if_missing(path, python)


class Requirements:
    """What is needed to look after the requirements of one task.

    Args:
        settings: ``requirements`` of the spec: ``file`` (default ``requirements.txt`` if the package has it),
            ``policy`` (``never``, ``if-missing``, ``always``), ``environments`` (folder), ``index`` (URL of
            the package index, if not pip's own).
        work: the package folder.
        variables: the environment of the user's command.
        runner: runs the tools.
        watch: what may end the task early.
        transcript: where progress goes.
    """

    def __init__(
        self,
        settings: "Dict[str, Any]",
        work: str,
        variables: "Dict[str, str]",
        runner: "Runner",
        watch: "Watch",
        transcript: "Transcript",
    ) -> None:
        self._policy = settings.get("policy") or "if-missing"
        self._file = settings.get("file")
        self._environments = settings.get("environments")
        self._index = ["--index-url", settings["index"]] if settings.get("index") else []
        self._work = work
        self._runner = runner
        self._watch = watch
        self._transcript = transcript
        # Tools see what the user's command sees, but not the package's own modules.
        self._variables = {name: value for name, value in variables.items() if name != "PYTHONPATH"}
        if os.environ.get("PYTHONPATH"):
            self._variables["PYTHONPATH"] = os.environ["PYTHONPATH"]

    def provide(self, python: "Optional[str]") -> "Optional[str]":
        """Return the interpreter to use: the given one if it has everything, else that of an environment.

        Raises:
            Failure: ``requirements`` if something is missing and may not or cannot be installed.
        """
        path = os.path.join(self._work, self._file or DEFAULT_FILE)
        if not os.path.isfile(path):
            if self._file:
                raise Failure(
                    "requirements", "The requirements file `%s` is not in the package." % self._file
                )
            return python
        python = python or self._on_path()
        report = self._report(python, path)
        lacking = report["missing"] + report["unchecked"]
        if self._policy != "always" and not lacking:
            return python
        if self._policy == "never":
            if report["unchecked"]:
                self._transcript.note(
                    "Requirements that cannot be checked: %s" % ", ".join(report["unchecked"])
                )
            if not report["missing"]:
                return python
            words = "The requirements are not all installed: %s." % ", ".join(report["missing"])
            raise Failure("requirements", words + " This job does not install them (install: never).")
        return self._environment(python, path, report)

    def if_missing(self, path: str, python: "Optional[str]") -> "Optional[str]":
        """Return an interpreter that has what a file asks for; the given one where nothing is installed.

        Args:
            path: a requirements file of ours.
            python: the interpreter so far.

        Raises:
            Failure: ``requirements`` if something is missing and cannot be installed.
        """
        python = python or self._on_path()
        report = self._report(python, path)
        if not report["missing"] or self._policy == "never":
            return python
        return self._environment(python, path, report)

    def _environment(self, python: str, path: str, report: "Dict[str, Any]") -> str:
        lacking = report["missing"] + report["unchecked"]
        environment = os.path.join(self._environments or "", self._name(report))
        if not self._environments:
            raise Failure("requirements", "The requirements have no folder to be installed in.")
        if not os.path.exists(os.path.join(environment, _COMPLETE)):
            os.makedirs(self._environments, exist_ok=True)
            self._locked(
                environment + ".lock", lambda: self._build(environment, python, path, report, lacking)
            )
        return os.path.join(environment, "bin", "python")

    def _on_path(self) -> str:
        for name in ("python3", "python"):
            found = find(name, self._variables.get("PATH") or os.defpath)
            if found:
                return found
        raise Failure("requirements", "The requirements need a Python, and none is on the PATH of this task.")

    def _report(self, python: str, path: str) -> "Dict[str, Any]":
        """Ask the interpreter what is missing."""
        said = bytearray()
        archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        status = self._run([python, archive, "missing", path], said.extend)
        for line in reversed(said.decode("utf-8", "replace").splitlines()):
            if status == 0 and line.startswith(MARK):
                return json.loads(line[len(MARK) :])  # type: ignore[no-any-return]
        lines = said.decode("utf-8", "replace").splitlines()[-5:]
        raise Failure("requirements", "The requirements could not be checked with `%s`." % python, lines)

    def _name(self, report: "Dict[str, Any]") -> str:
        """Return the hash that names the environment: the same needs on the same interpreter share one."""
        from hashlib import sha256

        facts = [1, report["interpreter"], report["texts"], report["unchecked"]]
        facts.append("always" if self._policy == "always" else report["missing"])
        if report["unchecked"]:
            facts.append(self._work)  # a path in this very package, perhaps: not to be shared
        return sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()[:32]

    def _locked(self, path: str, build: "Callable[[], None]") -> None:
        """Build while no other task does; a task that waited finds the work done."""
        import fcntl

        environment = path[: -len(".lock")]
        said = False
        with open(path, "ab") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not said:
                        self._transcript.note("Another task installs the same requirements; waiting for it.")
                        said = True
                    self._watch.check()
                    self._watch.sleep(_LOCK_PERIOD)
            if not os.path.exists(os.path.join(environment, _COMPLETE)):
                build()

    def _build(
        self, environment: str, python: str, path: str, report: "Dict[str, Any]", lacking: "List[str]"
    ) -> None:
        begin = time.monotonic()
        self._transcript.note("Installing requirements: %s" % (", ".join(lacking) or "all, as asked"))
        remove_tree(environment)
        try:
            self._make(environment, python, report["interpreter"])
            own = os.path.join(environment, "bin", "python")
            if self._run([own, "-c", "import pip"], lambda _: None) != 0:
                self._tool([own, "-c", _AS_MODULE, "ensurepip"], "pip is missing and could not be added")
            self._tool(
                [own, "-c", _AS_MODULE, "pip", *_PIP, *self._index, "-r", path],
                "The requirements could not be installed",
            )
            write_atomic(os.path.join(environment, _COMPLETE), b"")
        except BaseException:
            remove_tree(environment)
            raise
        self._transcript.note("Requirements are installed (%.1f s)." % (time.monotonic() - begin))

    def _make(self, environment: str, python: str, interpreter: "Dict[str, Any]") -> None:
        """Make an empty environment that sees what the interpreter sees.

        It is built under its final name, because scripts in it hold that name.
        """
        options = ["--without-pip"] + (["--system-site-packages"] if interpreter["system"] else [])
        self._tool(
            [python, "-c", _AS_MODULE, "venv", *options, environment], "The environment could not be made"
        )
        if not interpreter["environment"]:
            return
        # An environment made from an environment sees the system's packages, not those of its parent.
        library = os.path.join(environment, "lib")
        (name,) = [entry for entry in os.listdir(library) if re.match(r"py", entry)]
        lines = ["import site; site.addsitedir(%r)\n" % place for place in interpreter["places"]]
        with open(os.path.join(library, name, "site-packages", "paijupyter-parent.pth"), "w") as stream:
            stream.write("".join(lines))

    def _tool(self, argv: "List[str]", complaint: str) -> None:
        """Run a tool with its output in the log."""
        if self._run(argv, self._transcript.tool_output) != 0:
            said = self._transcript.tool_lines(2)
            raise Failure("requirements", "%s: %s" % (complaint, " ".join(said) or "no reason was given."))

    def _run(self, argv: "List[str]", sink: "Callable[[bytes], None]") -> int:
        """Run a command of ours; return its exit status, 128 and more after a signal."""
        outcome = self._runner.run(argv, self._variables, self._work, sink, _GRACE)
        if outcome.verdict:
            raise Failure(outcome.verdict, self._watch.explain(outcome.verdict))
        if outcome.error:
            raise Failure("requirements", "`%s` cannot be run: %s." % (argv[0], outcome.error.strerror))
        return 128 if outcome.code is None else outcome.code
