"""Cards that follow their jobs after their cells have ended.

One thread per kernel watches all jobs of its cards through a client of its own. It updates a card when the
job's state changes, never for progress, and ends with the last job.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.client.card import bundle
from paijupyter.client.client import JobsClient
from paijupyter.client.job import Job
from paijupyter.client.words import FINAL
from paijupyter.errors import PaiJupyterError, Problem
from paijupyter.magics.show import Display

_REMEMBERED = 200  # Jobs of others whose latest view is kept, for a card that comes just after an event.
_PAUSE = 2.0
_TRIES = 30


@dataclass
class _Card:
    job: Job
    display: Display
    problems: tuple[Problem, ...]
    parent: Mapping[str, Any]
    shown: tuple[Any, ...]


class Follower:
    """Keeps the cards of one kernel up to date."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._lock = threading.Lock()
        self._cards: dict[str, list[_Card]] = {}
        self._seen: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._rest = threading.Event()

    def follow(
        self,
        job: Job,
        display: Display,
        problems: tuple[Problem, ...] = (),
        parent: Mapping[str, Any] | None = None,
    ) -> None:
        """Update a display until its job has ended; returns at once.

        Args:
            job: its ``view`` is kept up to date too.
            display: it shows the job's card already.
            problems: what the plan found; the card shows them folded.
            parent: the request of the cell that the card belongs to; None: that of the cell that runs now.
        """
        if job.is_final:
            return
        card = _Card(job, display, problems, self._parent() if parent is None else parent, _key(job.view))
        with self._lock:
            self._cards.setdefault(job.id, []).append(card)
            later = self._seen.get(job.id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="paijupyter-cards", daemon=True)
                self._thread.start()
        if later is not None:
            self._see(later)

    def _parent(self) -> Mapping[str, Any]:
        get_parent = getattr(self._shell, "get_parent", None)
        return dict(get_parent()) if get_parent is not None else {}

    def _run(self) -> None:
        tries = 0
        while tries < _TRIES:
            try:
                if self._watch(JobsClient.connect()):
                    return
                tries = 0
            except (PaiJupyterError, OSError):
                # The engine may be handing over; the job goes on without us, and so may its card.
                tries += 1
                self._rest.wait(_PAUSE)
        with self._lock:
            self._thread = None

    def _watch(self, client: JobsClient) -> bool:
        """Follow events until no card is left (True) or the stream ends (False)."""
        events = client.events(follow=True)
        for job_id in list(self._cards):
            self._look_up(client, job_id)
        if self._is_done():
            return True
        for event in events:
            if event["type"] == "job":
                self._see(event["job"])
            elif event["type"] == "deleted":
                self._let_go(str(event["id"]))
            elif event["type"] == "reset":
                return False  # The stream begins anew; what happened meanwhile has to be looked up.
            if self._is_done():
                return True
        return False

    def _look_up(self, client: JobsClient, job_id: str) -> None:
        try:
            self._see(client.get(job_id))
        except PaiJupyterError as error:
            if error.status != 404:
                raise
            self._let_go(job_id)

    def _let_go(self, job_id: str) -> None:
        with self._lock:
            self._cards.pop(job_id, None)

    def _is_done(self) -> bool:
        with self._lock:
            if self._cards:
                return False
            self._thread = None
            return True

    def _see(self, view: Mapping[str, Any]) -> None:
        job_id = str(view["id"])
        with self._lock:
            self._seen[job_id] = view
            self._seen.move_to_end(job_id)
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            cards = list(self._cards.get(job_id, ()))
            if view["state"] in FINAL:
                self._cards.pop(job_id, None)
        for card in cards:
            if _key(view) != card.shown:
                card.shown = _key(view)
                self._update(card, view)
            card.job.view = view  # Last: who sees the job's end may rely on the card.

    def _update(self, card: _Card, view: Mapping[str, Any]) -> None:
        content = bundle(view, card.problems)
        # A kernel that shuts down has closed its sockets; there is nobody to tell.
        with contextlib.suppress(OSError, RuntimeError):
            with pinned(self._shell, card.parent) as is_pinned:
                card.display.show(content)
            if is_pinned and view["state"] in FINAL:
                # nbclient takes an update only from the cell that runs now; all others go by the display id.
                card.display.show(content)


def _key(view: Mapping[str, Any]) -> tuple[Any, ...]:
    return view["state"], view.get("reason"), view.get("attempt")


@contextlib.contextmanager
def pinned(shell: Any, parent: Mapping[str, Any]) -> Iterator[bool]:
    """Let what this thread publishes belong to the cell that submitted the job; say whether it can be undone.

    ipykernel 7.4 pins a thread; 7.0.2 to 7.3 have a context variable that ``set_parent`` sets for the calling
    thread. In 6 the parent is one for all threads, and setting it here would move the output of the cell
    that runs now; there an update finds its place by its display id alone.
    """
    if not parent or threading.current_thread() is threading.main_thread():
        yield False
    elif hasattr(shell, "set_thread_parent"):
        token = shell.set_thread_parent(parent)
        try:
            yield True
        finally:
            with contextlib.suppress(AttributeError, TypeError, ValueError):
                shell.reset_thread_parent(token)
    else:
        from ipykernel._version import version_info

        if tuple(version_info[:1]) >= (7,):
            shell.set_parent(parent)
        yield False
