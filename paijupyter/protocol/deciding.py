"""When a job has ended, and how: one pure decision.

This file also goes into the archive that tasks boot from (:mod:`paijupyter.backends.boot`), where the board
of a job decides with it when nothing of ours runs outside the cluster. So: Python 3.6, standard library only.
"""

from typing import TYPE_CHECKING, Mapping, NamedTuple, Optional

if TYPE_CHECKING:
    from typing import Literal


class Policy(NamedTuple):
    """Effective completion policy of a role; a number below 1 never decides anything.

    Attributes:
        instances: number of tasks of the role.
        min_failed: this many failed tasks end the job as failed.
        min_succeeded: this many succeeded tasks end the job as succeeded.
    """

    instances: int
    min_failed: int = 1
    min_succeeded: int = -1


class Counts(NamedTuple):
    """How many tasks of a role have ended, each way."""

    succeeded: int = 0
    failed: int = 0


class Verdict(NamedTuple):
    """How a job ended.

    Attributes:
        state: ``succeeded`` or ``failed``.
        role: the role whose policy decided; "" when all tasks had ended and no policy ever did.
        message: one sentence for people.
    """

    state: "Literal['succeeded', 'failed']"
    role: str
    message: str


def decide(policy: Mapping[str, Policy], counts: Mapping[str, Counts]) -> Optional[Verdict]:
    """Say whether the attempt has ended, from the policy of every role and its ended tasks.

    A failure wins over a success that happens at the same moment. Without any policy reached, the attempt
    ends as succeeded when all tasks have ended, also when some failed (``minFailedInstances: -1``).

    Args:
        policy: role → its effective policy (:func:`paijupyter.protocol.completion.policies`), in the order of
            the document.
        counts: role → how many of its tasks have ended each way; a role may be absent.

    Returns:
        The verdict, or None while the attempt goes on.
    """
    ended = [(name, role, counts.get(name, Counts())) for name, role in policy.items()]
    for name, role, count in ended:
        if 1 <= role.min_failed <= count.failed:
            return Verdict("failed", name, _sentence(count.failed, role.instances, name, "failed"))
    for name, role, count in ended:
        if 1 <= role.min_succeeded <= count.succeeded:
            return Verdict("succeeded", name, _sentence(count.succeeded, role.instances, name, "succeeded"))
    if all(count.failed + count.succeeded >= role.instances for _, role, count in ended):
        return Verdict("succeeded", "", "All tasks have ended.")
    return None


def _sentence(count: int, instances: int, role: str, word: str) -> str:
    return f"{count} of {instances} {'task' if instances == 1 else 'tasks'} of `{role}` {word}."
