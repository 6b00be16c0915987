"""Choosing experiments by their keys: ``4``, ``1,3-5``, ``small,large`` (T4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from paijupyter.errors import UsageProblem

_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
ALL = "-1"  # what the article's own option means by "all of them"


def select(keys: Sequence[str], only: str) -> list[str]:
    """Return the keys that a selection names, in the order of the experiments.

    Args:
        keys: the keys of all experiments.
        only: keys and ranges of numbers, separated by commas; ``-1`` or nothing means all.

    Raises:
        UsageProblem: for a key that there is not; it lists those there are.

    >>> select(["1", "2", "3", "4", "5"], "1,3-5")
    ['1', '3', '4', '5']
    """
    words = [word.strip() for word in only.split(",") if word.strip()]
    if not words or words == [ALL]:
        return list(keys)
    known, wanted, unknown = set(keys), set[str](), list[str]()
    for word in words:
        match = _RANGE.fullmatch(word)
        if word in known:
            wanted.add(word)
        elif match and int(match[1]) <= int(match[2]):
            inside = [key for key in keys if key.isdecimal() and int(match[1]) <= int(key) <= int(match[2])]
            # A range may have gaps, but both of its ends are meant.
            unknown += [end for end in (match[1], match[2]) if str(int(end)) not in known]
            wanted.update(inside)
        else:
            unknown.append(word)
    if unknown:
        named = ", ".join(f"`{each}`" for each in dict.fromkeys(unknown))
        raise UsageProblem(f"Experiment {named} does not exist.", f"There are: {spans(keys)}.")
    return [key for key in keys if key in wanted]


def spans(keys: Iterable[str], most: int = 20) -> str:
    """Say which keys these are, numbers in a row as a range.

    >>> spans(["1", "2", "3", "7", "small"])
    '1-3, 7, small'
    """
    said: list[list[str]] = []
    for key in keys:
        last = said[-1] if said else None
        if last and key.isdecimal() and last[-1].isdecimal() and int(key) == int(last[-1]) + 1:
            said[-1] = [last[0], key]
        else:
            said.append([key])
    shown = ["-".join(each) for each in said[:most]]
    return ", ".join(shown) + (f" and {len(said) - most} more" if len(said) > most else "")
