"""The only task of its job: nobody to wait for, nobody to tell.

What is here is what a pod has to do with the others; :mod:`.host` and :mod:`.member` have the same.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict


class Alone:
    """A task on its own.

    Attributes:
        orders: what the board told last, see :meth:`.board.Board.orders`.
        trouble: why the board cannot be reached, "" if it can.
        is_lost: whether it could be reached and has been gone for so long that it is given up.
        is_alone: whether there is no board, not yet or not any more.
        is_needed: whether the others need this pod after its task has ended.
    """

    trouble = ""
    is_lost = False
    is_alone = True
    is_needed = False

    def __init__(self) -> None:
        self.orders: "Dict[str, Any]" = {"go": True, "stop": "", "over": True}

    def tell(self, state: "Dict[str, Any]") -> None:
        """Say how this task is, see :meth:`.board.Board.hear`."""

    def tick(self, now: float) -> None:
        """Do what is due."""

    def may_leave(self, now: float) -> bool:
        """Say whether this task, all done, is needed no more and all it said has been heard."""
        return True
