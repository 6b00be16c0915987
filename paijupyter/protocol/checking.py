"""All checks of a job document, in one list."""

from __future__ import annotations

from paijupyter.errors import Problem, in_order
from paijupyter.protocol.document import Document
from paijupyter.protocol.extras import check_extras
from paijupyter.protocol.findings import Findings, Target
from paijupyter.protocol.original import check_original
from paijupyter.protocol.references import check_references
from paijupyter.protocol.structure import check_structure
from paijupyter.protocol.traps import check_traps


def check(document: Document, target: Target = "paijupyter") -> list[Problem]:
    """Return everything that is wrong or odd with a document, errors first, each with its place.

    Args:
        document: the document, with its corrections made; those are not in the list again.
        target: ``paijupyter`` for our backends; ``openpai`` for the original server, where some things
            that are only odd here make a job fail.
    """
    found = Findings(document, target)
    check_structure(found)
    check_references(found)
    check_traps(found)
    check_extras(found)
    check_original(found)
    return in_order(found.problems)
