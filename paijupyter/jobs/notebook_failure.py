"""What is said when a notebook, or a cell of it, failed: its runner says in the log which one and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paijupyter.jobs.failure import Explanation, Facts, last


def of_cell(facts: Facts, others: Sequence[Callable[[Facts], Explanation | None]]) -> Explanation | None:
    """A cell of a notebook failed, or ended its kernel; what else is known of it says what to do."""
    found = last(r"^\[paijupyter\] (Cell (?:\d+|of the parameters) (?:raised|took|was running) .*)$", facts)
    if found is None or facts.reason == "stopped":
        return None
    said = found[1].rstrip(".") + "."
    known = next((answer for rule in others if (answer := rule(facts))), None)
    if facts.reason == "out-of-memory" and known:
        return Explanation(f"{known.message} {said}", known.advice)
    if " asks for input" in facts.text and "StdinNotImplementedError" in facts.text:
        where = said.partition(" raised ")[0]
        return Explanation(
            f"{where} asks for input, and nobody answers in a job.",
            "Make it a parameter (--param), or a secret (--secret) if it is one.",
        )
    if known is not None and known.advice:
        return Explanation(said, known.advice)
    return Explanation(said, "Read the traceback in the executed notebook or at the end of the log.")


def refused(facts: Facts) -> Explanation | None:
    """The runner of a notebook said that it cannot be run."""
    found = last(r"^\[paijupyter\] (Notebook (?:`[^`]*` )?(?:cannot|is |has |asks).*)$", facts)
    if found is None or facts.code != 2:
        return None
    sentence, _, advice = found[1].partition(". ")
    return Explanation(sentence.rstrip(".") + ".", advice or "Correct the notebook, and submit it again.")
