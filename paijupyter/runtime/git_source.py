"""Data from a git repository: one commit of it, without its history."""

import os
import re
import subprocess

from .fetch import Unfetched, write_progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from .cache import Cache

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_PROTOCOLS = "file:git:http:https:ssh"  # no ext::, which would run a command


def fetch(source: "Dict[str, Any]", cache: "Cache", secret: str) -> str:
    """Have the commit in the cache; return its key.

    Raises:
        Unfetched: with the reason.
    """
    git = Git(source["uri"], secret)
    commit = git.resolve(source.get("ref") or "HEAD")
    key = cache.key("git", git.uri, source["base"], commit)
    with cache.lock(key):
        if cache.content(key, source["base"]):
            return key
        cache.discard(key)  # half a repository is not worth going on with
        target = os.path.join(cache.draft(key), "content", source["base"])
        write_progress(source, "commit %s" % commit[:12])
        git.clone(commit, source.get("ref") or "HEAD", target)
        cache.publish(key, source["base"], {"uri": source["shown"], "commit": commit})
    return key


class Git:
    """Runs git on a repository elsewhere; the secret stands in no argument.

    Attributes:
        uri: of the repository.
        environment: for git.
    """

    def __init__(self, uri: str, secret: str) -> None:
        self.uri = re.sub(r"^git\+", "", uri)
        self.environment = dict(
            os.environ, GIT_TERMINAL_PROMPT="0", GIT_ALLOW_PROTOCOL=_PROTOCOLS, LC_ALL="C"
        )
        self.environment.setdefault("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        if secret:
            from .http_source import authorization

            # By environment: an argument could be read by everybody on this machine.
            self.environment.update(
                GIT_CONFIG_COUNT="1",
                GIT_CONFIG_KEY_0="http.%s.extraHeader" % self.uri,
                GIT_CONFIG_VALUE_0="Authorization: " + authorization(secret),
            )

    def resolve(self, ref: str) -> str:
        """Return the commit of a branch, tag or commit."""
        if _COMMIT.match(ref):
            return ref
        lines = self._run(["ls-remote", "--", self.uri, ref, ref + "^{}"]).splitlines()
        found = {name: commit for commit, name in (line.split("\t", 1) for line in lines if "\t" in line)}
        # A tag before a branch of that name, as git checkout would; what an annotated tag points to first.
        for name in ("refs/tags/%s^{}", "refs/tags/%s", "refs/heads/%s", "%s^{}", "%s"):
            if name % ref in found:
                return found[name % ref]
        raise Unfetched("the repository has no branch or tag `%s`" % ref)

    def clone(self, commit: str, ref: str, target: str) -> None:
        """Check out a commit."""
        self._run(["init", "--quiet", "--", target])
        wanted = [commit, ref] if ref != commit else [commit]
        for name in wanted:  # some servers give no commit by its hash, but then the ref that it has
            try:
                self._run(
                    ["-C", target, "fetch", "--quiet", "--depth", "1", "--no-tags", "--", self.uri, name]
                )
                break
            except Unfetched:
                if name == wanted[-1]:
                    raise
        self._run(["-C", target, "checkout", "--quiet", "--detach", commit])

    def _run(self, arguments: "List[str]") -> str:
        return self.output(arguments).decode("utf-8", "replace")

    def output(self, arguments: "List[str]") -> bytes:
        """Run git and return what it writes.

        Raises:
            Unfetched: with what it says.
        """
        try:
            done = subprocess.run(
                ["git", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
            )
        except FileNotFoundError:
            raise Unfetched("git is not installed where the task runs") from None
        if done.returncode:
            raise Unfetched(self.reason(done.stderr))
        return done.stdout

    def reason(self, said: bytes) -> str:
        """Return the line that says why it failed."""
        lines = said.decode("utf-8", "replace").strip().splitlines()
        fatal = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
        text = (fatal or ["no reason given"])[0]
        return "git says: " + (text.partition(": ")[2] or text)
