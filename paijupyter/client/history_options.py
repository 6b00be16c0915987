"""Rows of the table of verbs for what jobs were made of: repeat one, compare two, lay many side by side."""

from __future__ import annotations

from paijupyter.client.parser import Option, Verb
from paijupyter.client.submit_options import AFTER, SECRET

_JSON = Option("--json", "Print JSON for machines", kind="flag", default="text for people")
_JOB = Option(
    "job",
    "Job by its name, its name without suffix (the latest of that name), its id, or `last`",
    kind="word",
    default="`last`, this kernel's (command line: this folder's) latest job",
)

HISTORY_VERBS = (
    Verb(
        "rerun",
        "Repeat exactly a job: the same package, document, parameters and secrets; say what may differ.",
        (_JOB, SECRET, *AFTER[1:]),
        ("rerun last --wait", "rerun mnist-k3f2qd"),
    ),
    Verb(
        "diff",
        "Show what changed between two jobs: code by file and cell, parameters, environment, data, results.",
        (
            Option("before", "The earlier job", kind="word", required=True),
            Option("after", "The later job", kind="word", default="`last`"),
            _JSON,
        ),
        ("diff mnist-k3f2qd mnist-a2b3c4", "diff mnist-k3f2qd last --json"),
    ),
    Verb(
        "report",
        "Write a notebook that shows jobs side by side: parameters, states, metrics, tagged cells.",
        (
            Option("jobs", "Jobs or groups, in the order of the columns", kind="words", default="`last`"),
            Option(
                "--output",
                "The notebook to write; one that is there is replaced only if it is a report",
                metavar="FILE",
                short="-o",
                default="report.ipynb",
            ),
            Option(
                "--cells",
                "Show the cells with this tag",
                metavar="TAG",
                default="pai:report; if no cell has it, those that have drawn something",
            ),
            Option("--title", "First line of the report", metavar="TEXT", default="its file name"),
        ),
        ("report lr-a2b3c4 lr-d5e6f7 -o report.ipynb",),
    ),
    Verb(
        "provenance",
        "Show what a job was made of: package, cells, parameters, environment lock, images, versions.",
        (_JOB, _JSON),
        ("provenance last", "provenance last --json"),
    ),
)
