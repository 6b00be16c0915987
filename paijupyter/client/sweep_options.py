"""Options of ``sweep``: what varies, which of it, how many at once; the rest are those of ``submit``."""

from __future__ import annotations

from paijupyter.client.parser import Option
from paijupyter.client.submit_options import SUBMIT_OPTIONS

GROUP = Option(
    "--group",
    "Group of experiments, by name or id, in place of a job",
    metavar="NAME",
    default="a job",
)
ONLY = Option(
    "--only",
    "Only these experiments: keys and ranges, 4 or 1,3-5",
    metavar="KEYS",
    default="all",
)

_WHAT = (
    Option(
        "template",
        "Job document or Job manifest with {placeholders}, or a .py, .sh or .ipynb that gets parameters",
        kind="word",
        default="the cell below it",
    ),
    Option(
        "--experiments",
        "List of experiments: YAML, JSON, or a CSV table; see the reference",
        metavar="FILE",
        short="-x",
        default="the cell below it, where a template is named",
    ),
    Option(
        "--grid",
        "Values of a name; of several, every combination",
        kind="list",
        metavar="NAME=V1,V2",
        default="none",
    ),
    Option("--rows", "Table of experiments: a CSV file, or rows as JSON", metavar="FILE", default="none"),
    Option(
        "--set",
        "Constant that placeholders of this name get",
        kind="list",
        metavar="NAME=VALUE",
        default="none",
        dest="constants",
    ),
    Option("--group", "Name of the group", metavar="NAME", default="that of the list or template"),
    Option(
        "--names",
        "Pattern of the jobs' names: {model}-{lr}",
        metavar="PATTERN",
        default="<group>-<key>, or as the template says",
    ),
)
_WHICH = (
    ONLY,
    Option(
        "--specific-experiment",
        "The same as --only; -1 means all",
        metavar="N",
        default="all",
        dest="only",
    ),
    Option("--failed", "Only those whose last job failed", kind="flag", default="all"),
    Option("--again", "Run also those that succeeded and were not changed", kind="flag", default="kept"),
    Option(
        "--replace",
        "First stop and delete the former jobs of the chosen experiments",
        kind="flag",
        default="kept",
    ),
    Option(
        "--delete-only",
        "Stop and delete the jobs of the chosen experiments, and submit nothing",
        kind="flag",
        default="submit",
    ),
    Option("--resume", "Begin with the checkpoints that the former jobs left", kind="flag", default="anew"),
)
_HOW_MANY = (
    Option("--at-once", "How many may run at the same time", metavar="N", default="all"),
    Option(
        "--stop-after",
        "So many failures end the group: what waits is stopped, what runs goes on",
        metavar="N",
        default="never",
    ),
    Option("--limit", "How many experiments there may be", metavar="N", default="1000"),
    Option("--print", "Show every filled document, and submit nothing", kind="flag", default="submit"),
    Option(
        "--verbose", "Show every filled document, and submit", kind="flag", short="-v", default="headers only"
    ),
)
# What has no meaning for many jobs, or another one.
_NOT_OURS = frozenset(
    ["--name", "--file", "--yaml", "--again", "--replace", "--resume-from", "script", "arguments"]
)
_SUBMIT = tuple(option for option in SUBMIT_OPTIONS if option.name not in _NOT_OURS)
SWEEP_OPTIONS = (*_WHAT, *_WHICH, *_HOW_MANY, *_SUBMIT)
