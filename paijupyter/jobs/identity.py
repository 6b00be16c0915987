"""Job ids: unique, safe as a file name, and in the order of submission when sorted as text."""

from __future__ import annotations

import hashlib
import secrets
import time

_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"  # base32, in the order of their code points
_TIME_LENGTH = 10
_RANDOM_LENGTH = 8
_last = 0


def new_id() -> str:
    """Return an id of 18 characters: the time in milliseconds, then 40 random bits.

    Ids made by one process always increase, also when the clock stands still or goes back.
    """
    global _last
    _last = max(_last + 1, int(time.time() * 1000))
    return _base32(_last, _TIME_LENGTH) + _base32(secrets.randbits(40), _RANDOM_LENGTH)


def id_for(name: str, seconds: float) -> str:
    """Return the id of a job that had none of ours: the same for the same name and time.

    Args:
        name: what it is known by elsewhere.
        seconds: since the epoch, of its submission.
    """
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:5], "big")
    return _base32(int(seconds * 1000), _TIME_LENGTH) + _base32(digest, _RANDOM_LENGTH)


def not_before(job: str) -> None:
    """Make the next ids larger than one that is known: the clock may have been set back since."""
    global _last
    number = 0
    for digit in job[:_TIME_LENGTH]:
        number = number * 32 + _DIGITS.index(digit)
    if number < 32**_TIME_LENGTH // 2:  # one that nobody made by a clock must not use up all ids
        _last = max(_last, number)


def is_id(text: str) -> bool:
    """Say whether a text has the form of an id; names on disk that have not are not job folders."""
    return len(text) == _TIME_LENGTH + _RANDOM_LENGTH and not set(text) - set(_DIGITS)


def _base32(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
