"""Packages that a git remote has already: the commit whose tree holds the same files, or nearly the same.

The remote's commits are mirrored without contents: the names that git gives contents tell what is the same.
What a package has beside the commit (a notebook without its outputs, a file not committed yet) travels in the
job; what the commit has beside the package is left out in the task.
"""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from paijupyter.backends import ring
from paijupyter.backends.base import Package
from paijupyter.backends.delivery.archive import contents
from paijupyter.backends.delivery.stores import GitRemote
from paijupyter.errors import PaiJupyterError

_COMMITS = 100  # of all branches, the newest
_FRESH = 60.0  # seconds for which the remote is not asked again, also if it was silent
_HEARD = 10.0  # seconds within which it says what it has; a plan waits for that
_SECONDS = 120.0  # until a fetch from one that has answered is given up
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",  # no ext::, which would run a command
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
_NOTHING = f"it has said nothing for {_HEARD:.0f} seconds"
_NOBODY: Mapping[str, str] = {}
_BLOB_MODES = {b"100664": "100644"}  # what git wrote in its first years


class Content(NamedTuple):
    """A file as git knows it: its mode, the name of its content, its bytes (0 in a tree)."""

    mode: str
    name: str
    size: int = 0


Files = Mapping[str, Content]


@dataclass(frozen=True, slots=True)
class Match:
    """A commit that has most of a package, by bytes.

    Attributes:
        commit: its hash.
        ref: a branch or tag that has it.
        beside: paths that the package has otherwise, or that the commit has not.
        size: bytes of those.
        left_out: what the commit has and the package has not; a folder ends with ``/``.
    """

    commit: str
    ref: str
    beside: tuple[str, ...]
    size: int
    left_out: tuple[str, ...]


class Mirror:
    """The commits of one remote, on this host. Blocking, for several threads.

    Args:
        remote: where they come from.
        folder: for mirrors.
    """

    def __init__(self, remote: GitRemote, folder: Path) -> None:
        self._remote = remote
        self._folder = folder / hashlib.sha256(remote.url.encode()).hexdigest()[:16]
        self._lock = threading.Lock()
        self._asked_at = -_FRESH
        self._silent = False

    def nearest(self, package: Package) -> Match | None:
        """Return the commit that has most of the package; None where none has anything of it.

        The remote is asked if no commit that is known here has all of it. One that says nothing is given up
        after seconds, and for a while not asked again.

        Raises:
            PaiJupyterError: ``git-remote`` if it cannot be asked.
        """
        files = _files(package)
        try:
            with self._lock:
                found = self._among(files) if (self._folder / "HEAD").exists() else None
                if found is not None and not found.beside:
                    return found
                if time.monotonic() - self._asked_at >= _FRESH:
                    self._ask()
                    found = self._among(files)
                elif self._silent:
                    raise self._failed(_NOTHING)
                return found
        except FileNotFoundError:
            raise self._failed("git is not installed on this host") from None
        except subprocess.CalledProcessError as error:
            raise self._failed(_said(error.stderr)) from None
        except subprocess.TimeoutExpired:
            raise self._failed(_NOTHING if self._silent else f"it took more than {_SECONDS:.0f} s") from None
        except OSError as error:
            raise self._failed(str(error)) from None

    def place(self) -> dict[str, str]:
        """Return how the tasks reach the remote: ``uri`` and ``secret``.

        Raises:
            PaiJupyterError: ``git-remote`` if the secret cannot be had.
        """
        return {"uri": self._remote.inside or self._remote.url, "secret": self._secret()}

    def _ask(self) -> None:
        refs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
        fetch = ["fetch", "--quiet", "--prune", "--no-auto-gc"]
        login = self._login()
        if not (self._folder / "HEAD").exists():
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            subprocess.run(
                ["git", "init", "--quiet", "--bare", "--", self._folder], check=True, capture_output=True
            )
        self._listen(login)
        try:
            self._git([*fetch, "--filter=blob:none", "--", self._remote.url, *refs], login=login)
        except subprocess.CalledProcessError:  # a server without filters, most often
            self._git([*fetch, "--", self._remote.url, *refs], login=login)
        self._asked_at = time.monotonic()

    def _listen(self, login: Mapping[str, str]) -> None:
        """Ask what the remote has, which it says at once, or is silent."""
        try:
            self._git(["ls-remote", "--quiet", "--", self._remote.url], login=login, seconds=_HEARD)
        except subprocess.TimeoutExpired:
            self._silent, self._asked_at = True, time.monotonic()
            raise
        self._silent = False

    def _among(self, files: Files) -> Match | None:
        best: tuple[int, str, tuple[str, ...], Files] | None = None
        for commit, tree in self._trees():
            there = self._listed(tree)
            beside = tuple(path for path, content in files.items() if not _same(there.get(path), content))
            size = sum(files[path].size for path in beside)
            if best is None or size + len(beside) < best[0]:
                best = (size + len(beside), commit, beside, there)
            if not beside:
                break
        if best is None or len(best[2]) == len(files):
            return None
        cost, commit, beside, there = best
        return Match(commit, self._branch(commit), beside, cost - len(beside), tuple(left_out(there, files)))

    def _trees(self) -> Iterator[tuple[str, str]]:
        """Yield commit and tree of each tree that the folder has had, the newest first."""
        newest = ["rev-list", "--branches", "--tags", "--date-order", f"--max-count={_COMMITS}"]
        commits = self._git(newest).decode("ascii").split()
        place = "%s:" + self._remote.folder
        asked = "".join(f"{place % commit}\n" for commit in commits).encode()
        answers = self._git(["cat-file", "--batch-check"], asked).decode("utf-8", "replace").splitlines()
        seen: set[str] = set()
        for commit, answer in zip(commits, answers, strict=True):
            tree, _, kind = answer.partition(" ")
            if kind.startswith("tree") and tree not in seen:
                seen.add(tree)
                yield commit, tree

    def _listed(self, tree: str) -> Files:
        found = {}
        for line in self._git(["ls-tree", "-r", "-z", "--full-tree", tree]).split(b"\0"):
            facts, _, path = line.partition(b"\t")
            mode, kind, name = (*facts.split(), b"", b"", b"")[:3]
            if kind == b"blob":
                read = _BLOB_MODES.get(mode, mode.decode("ascii"))
                found[path.decode("utf-8", "surrogateescape")] = Content(read, name.decode("ascii"))
        return found

    def _branch(self, commit: str) -> str:
        refs = ["for-each-ref", "--count=1", "--format=%(refname)", "--contains", commit]
        return self._git(refs).decode("utf-8", "replace").strip() or "HEAD"

    def _secret(self) -> str:
        kind, _, name = self._remote.secret.partition(":")
        if kind == "env":
            return os.environ.get(name, "").strip()
        if kind == "keyring":
            try:
                found = ring.used(name, lambda keyring: keyring.get_password(ring.SERVICE, name))
            except PaiJupyterError as error:
                raise self._failed(error.message.rstrip(".")) from None
            return str(found or "")
        return ""

    def _git(
        self,
        arguments: Sequence[str],
        given: bytes = b"",
        login: Mapping[str, str] = _NOBODY,
        seconds: float = _SECONDS,
    ) -> bytes:
        words = ["git", "--git-dir", str(self._folder), *arguments]
        environment = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **os.environ, **_ENVIRONMENT, **login}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        ) as process:
            try:
                answer, said = process.communicate(given, timeout=seconds)
            except subprocess.TimeoutExpired:
                # What git has started to speak to the remote holds its pipes open for as long as it waits.
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, words, answer, said)
        return answer

    def _login(self) -> Mapping[str, str]:
        """Return what git's environment has more where the remote is asked: an argument is no secret."""
        secret = self._secret()
        if not secret:
            return _NOBODY
        basic = base64.b64encode(secret.encode()).decode("ascii")
        header = f"Basic {basic}" if ":" in secret else f"Bearer {secret}"
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{self._remote.url}.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: {header}",
        }

    def _failed(self, why: str) -> PaiJupyterError:
        return PaiJupyterError(
            "git-remote",
            f"Git remote {self._remote.url} cannot be asked: {why}.",
            "Correct `packageGit` of the profile, or take `git` out of its `packageWays`.",
            502,
        )


def left_out(there: Files, wanted: Iterable[str]) -> Iterator[str]:
    """Yield what a tree has beside the wanted paths: whole folders by their name and ``/``.

    >>> tree = dict.fromkeys(["a", "b/c", "b/d/e", "f/g", "f/h"], Content("100644", ""))
    >>> list(left_out(tree, ["a", "f/g"]))
    ['b/', 'f/h']
    """
    kept_paths = set(wanted)
    kept = {path[: end + 1] for path in kept_paths for end, char in enumerate(path) if char == "/"}
    said: set[str] = set()
    for path in sorted(there):
        if path in kept_paths:
            continue
        folders = (path[: end + 1] for end, char in enumerate(path) if char == "/")
        name = next((folder for folder in folders if folder not in kept), path)
        if name not in said:
            said.add(name)
            yield name


@lru_cache(maxsize=8)
def _files(package: Package) -> Files:
    found = {}
    for entry, pieces in contents(package):
        digest = hashlib.sha1(b"blob %d\0" % entry.size, usedforsecurity=False)
        for piece in pieces:
            digest.update(piece)
        found[entry.path] = Content(entry.mode, digest.hexdigest(), entry.size)
    return found


def _same(there: Content | None, content: Content) -> bool:
    return there is not None and (there.mode, there.name) == (content.mode, content.name)


def _said(error: bytes) -> str:
    lines = error.decode("utf-8", "replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines or ["no reason given"]
    return fatal[0].rstrip(".")
