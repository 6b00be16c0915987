"""Which block who has."""

import time
from collections import Counter, deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, List, Optional, Set, Tuple


class Board:
    """Blocks by number: free, leased to a holder, put aside, or done. Not locked.

    Args:
        count: how many blocks there are.
        done: those that are done; it grows by the hands of others.
        lease: seconds until a block is taken from a holder that is silent.
        tries: a block that was given back so often is put aside.

    Attributes:
        aside: the blocks put aside.
    """

    def __init__(self, count: int, done: "Set[int]", lease: float, tries: float) -> None:
        self.lease = lease
        self.aside: "List[int]" = []
        self._count = count
        self._done = done
        self._tries = tries
        # May hold blocks that are leased or done by now: `take` skips them, so that nobody has to search.
        self._free: "Deque[int]" = deque(block for block in range(count) if block not in done)
        self._leases: "Dict[int, Tuple[Any, float]]" = {}
        self._given_back: "Counter[int]" = Counter()

    @property
    def is_settled(self) -> bool:
        """Say whether no block is free or leased."""
        return len(self._done) + len(self.aside) == self._count

    def take(self, holder: "Any") -> "Optional[int]":
        """Lease a block to a holder; None if there is none at this moment."""
        now = time.monotonic()
        for block in [block for block, (_, until) in self._leases.items() if until <= now]:
            self._return(block)
        while self._free:
            block = self._free.popleft()
            if block not in self._done and block not in self._leases:
                self._leases[block] = (holder, now + self.lease)
                return block
        return None

    def until_next_expiry(self) -> float:
        """Return the seconds until a lease may end by itself."""
        first = min((until for _, until in self._leases.values()), default=0.0)
        return max(first - time.monotonic(), 0.01)

    def renew(self, holder: "Any", block: int) -> None:
        """Prolong a lease; one that was lost comes back unless the block is done, aside or another's."""
        if block in self._done or block in self.aside:
            return
        if self._leases.get(block, (holder,))[0] is holder:
            self._leases[block] = (holder, time.monotonic() + self.lease)

    def finish(self, block: int) -> None:
        """Take a block that is done off the board, whoever has it."""
        self._leases.pop(block, None)
        if block in self.aside:
            self.aside.remove(block)

    def give_back(self, holder: "Any") -> None:
        """Free what a holder has."""
        for block in [block for block, (other, _) in self._leases.items() if other is holder]:
            self._return(block)

    def _return(self, block: int) -> None:
        del self._leases[block]
        self._given_back[block] += 1
        (self._free if self._given_back[block] < self._tries else self.aside).append(block)
