"""The data of a task: fetched into the cache of this machine, then linked to where the task looks for it."""

import json
import os
import sys

from .cache import Cache
from .failure import Failure
from .files import remove_file, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, List

    from .process import Runner
    from .transcript import Transcript
    from .watch import Watch

_GRACE = 2.0


class DataFolder:
    """Provides what ``data`` of the spec lists.

    Args:
        spec: the task's spec.
        work: the package folder.
        runner: runs what fetches.
        watch: what may end the task early.
        transcript: where progress goes.
    """

    def __init__(
        self, spec: "Dict[str, Any]", work: str, runner: "Runner", watch: "Watch", transcript: "Transcript"
    ) -> None:
        self._settings: "Dict[str, Any]" = spec["data"]
        self._private = spec["private"]
        self._job = spec["job"]["id"]
        self._work = work
        self._runner = runner
        self._watch = watch
        self._transcript = transcript
        self._used: "List[IO[bytes]]" = []

    def provide(self, variables: "Dict[str, str]", secrets: "Dict[str, str]") -> None:
        """Have every source at its place; what is in the cache stays there while this task runs.

        Raises:
            Failure: ``data`` if one cannot be had, or its place is taken.
        """
        for source in self._settings["sources"]:
            if source.get("link"):
                target = source["link"]
            else:
                target = self._cached(source, variables, secrets)
            self._link(source, target)

    def _cached(
        self, source: "Dict[str, Any]", variables: "Dict[str, str]", secrets: "Dict[str, str]"
    ) -> str:
        cache = Cache(self._settings["cache"])
        for _ in range(3):
            key = source.get("key") or self._fetch(source, variables, secrets)
            # Shared only now: whoever sweeps or fetches again needs the lock for himself.
            used = cache.share(key)
            content = cache.content(key, source["base"])
            if content:
                self._used.append(used)
                return content
            used.close()
            if source.get("key"):
                break
        raise Failure("data", "The data `%s` is no longer in the cache of this machine." % source["name"])

    def _fetch(self, source: "Dict[str, Any]", variables: "Dict[str, str]", secrets: "Dict[str, str]") -> str:
        """Run the process that fetches; return the key of what it fetched."""
        request, result = (os.path.join(self._private, "fetch-%s" % word) for word in ("request", "result"))
        secret = source.get("secret") or ""
        told = {
            "source": dict(source, job=self._job),
            "cache": self._settings["cache"],
            "resolved": os.path.join(self._settings["resolved"], source["name"] + ".json"),
            "result": result,
            "secrets": {secret: secrets.get(secret, "")} if secret else {},
        }
        write_private(request, json.dumps(told).encode("ascii"))
        archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        argv = [sys.executable, "-I", "-S", archive, "fetch", request]
        try:
            outcome = self._runner.run(argv, variables, self._work, self._transcript.tool_output, _GRACE)
        finally:
            remove_file(request)
        if outcome.verdict:
            raise Failure(outcome.verdict, self._watch.explain(outcome.verdict))
        lines = self._transcript.tool_lines(3)
        try:
            with open(result, "rb") as stream:
                found = json.loads(stream.read().decode("utf-8"))
        except (OSError, ValueError):
            raise Failure("data", "The data `%s` could not be fetched." % source["name"], lines) from None
        remove_file(result)
        if found.get("error"):
            words = (source["name"], source["shown"], found["error"])
            raise Failure("data", "The data `%s` could not be fetched from %s: %s." % words)
        return str(found["key"])

    def _link(self, source: "Dict[str, Any]", target: str) -> None:
        """Make the data appear at its place, under its base name."""
        place = source["place"]
        link = os.path.join(place, source["base"])
        try:
            os.makedirs(place, exist_ok=True)
            if source.get("inside") and not _inside(self._work, place):
                raise Failure("data", "The data `%s` would leave the package folder." % source["name"])
            if os.path.islink(link) and os.readlink(link) == target:
                return
            os.symlink(target, link)
        except FileExistsError:
            raise Failure(
                "data", "The data `%s` finds its place taken: `%s`." % (source["name"], link)
            ) from None
        except OSError as error:
            words = (source["name"], place, error.strerror or error)
            raise Failure("data", "The data `%s` cannot be put into `%s` (%s)." % words) from error


def _inside(root: str, path: str) -> bool:
    real, base = os.path.realpath(path), os.path.realpath(root)
    return real == base or real.startswith(base + os.sep)
