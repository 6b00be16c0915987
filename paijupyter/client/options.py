"""The one table of verbs and options that ``%paijob`` and ``paijob`` share.

A verb is added here once; its parser, its ``--help`` on both surfaces and its completion follow from the row.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from paijupyter.client.data_options import DATA_VERB
from paijupyter.client.entering_options import ENTERING_VERBS
from paijupyter.client.export_options import EXPORT_VERB
from paijupyter.client.history_options import HISTORY_VERBS
from paijupyter.client.parser import Option, Surface, Verb, VerbParser, build, parse
from paijupyter.client.settings_options import LOGIN_VERB, PROFILE_VERB, SECRET_VERB
from paijupyter.client.submit_options import (
    AFTER,
    FILE,
    FORM_OPTIONS,
    PARAM,
    RESUME_FROM,
    SECRET,
    SUBMIT_OPTIONS,
)
from paijupyter.client.sweep_options import GROUP, ONLY, SWEEP_OPTIONS
from paijupyter.errors import UsageProblem

REF = Option(
    "job",
    "Job by its name, its name without suffix (the latest of that name), its id, or `last`",
    kind="word",
    default="`last`, this kernel's (command line: this folder's) latest job",
)
JSON = Option("--json", "Print JSON for machines", kind="flag", default="text for people")
VERBS: tuple[Verb, ...] = (
    Verb(
        "submit",
        "Submit a job: a script, a job document, or (as %%paijob) a cell.",
        SUBMIT_OPTIONS,
        (
            "submit train.py --epochs 20",
            "submit --role worker:4,gpu=1,mem=8Gi --param lr=0.1 --wait train.py",
            "submit -f job.yaml",
        ),
    ),
    Verb(
        "plan",
        "Show what would be submitted: package, roles, document and every problem. Submits nothing.",
        SUBMIT_OPTIONS,
        ("plan --role worker:4,gpu=1 train.py", "plan -f job.yaml"),
    ),
    Verb(
        "form",
        "Open a form for a job: every field, its plan beside it, and a button that asks before it submits.",
        FORM_OPTIONS,
        ("form", "form --role worker:4 train.py", "form -f job.yaml", "form --from last"),
        surfaces=("magic",),
    ),
    Verb(
        "sweep",
        "Run one template, script or cell as many experiments, each a job of one group.",
        SWEEP_OPTIONS,
        (
            "sweep template.yaml --experiments experiments.yaml --wait",
            "sweep train.py --grid lr=0.1,0.01 --grid batch=32,64 --at-once 2",
            "sweep template.yaml -x experiments.yaml --only 1,3-5 --print",
        ),
    ),
    Verb(
        "list",
        "List jobs, the latest first.",
        (
            Option("--groups", "List groups of experiments", kind="flag", default="jobs"),
            Option("--all", "Also each job of a group", kind="flag", default="a group is one row"),
            GROUP,
            Option(
                "--state",
                "Only jobs in this state",
                choices=("waiting", "running", "succeeded", "failed", "stopped"),
                default="all",
            ),
            Option("--profile", "Only jobs of this profile", metavar="NAME", default="all"),
            Option("--here", "Only jobs of this folder", kind="flag", default="all folders"),
            Option("--limit", "How many at most", metavar="N", default="20"),
            JSON,
        ),
        ("list", "list --state running", "list --json"),
    ),
    Verb(
        "get",
        "Show one job: its state and reason, roles, parameters, outputs, and why it failed.",
        (REF, GROUP, JSON),
        ("get last", "get mnist-k3f9qd --json", "get --group sweep-lr"),
        aliases=("describe", "status"),
    ),
    Verb(
        "logs",
        "Show the log of a job, each line with its task, and end.",
        (
            REF,
            Option("--follow", "Go on until the job ends", kind="flag", short="-f", default="show and end"),
            Option("--task", "Only this task, for example worker-0", metavar="ROLE-N", default="all tasks"),
            Option("--tail", "Only the last lines of each task", metavar="N", short="-n", default="all"),
            GROUP,
            ONLY,
        ),
        ("logs last -f", "logs mnist --task worker-0 -n 50"),
    ),
    Verb(
        "stop",
        "Stop a job. Its record and logs stay.",
        (REF, GROUP, JSON),
        ("stop last", "stop --group sweep-lr"),
    ),
    Verb(
        "retry",
        "Submit the same document and package once more, as a new job.",
        (
            REF,
            Option("--resume", "Begin with the checkpoints that the job left", kind="flag", default="anew"),
            GROUP,
            ONLY,
            SECRET,
            *AFTER[1:],
        ),
        ("retry last --wait", "retry last --resume", "retry --group sweep-lr"),
    ),
    Verb(
        "clone",
        "Submit a copy of a job with other parameters, or another document.",
        (
            REF,
            Option("--name", "Short name of the copy", metavar="NAME", default="the same"),
            PARAM,
            FILE,
            RESUME_FROM,
            SECRET,
            *AFTER[1:],
        ),
        ("clone last --param lr=0.01",),
    ),
    Verb(
        "delete",
        "Delete the record, logs and outputs of a job that has ended. This cannot be undone.",
        (REF, GROUP),
        ("delete mnist-k3f9qd", "delete --group sweep-lr"),
    ),
    EXPORT_VERB,
    Verb(
        "pull",
        "Bring the outputs of a job into a folder; files of these names there are replaced.",
        (
            REF,
            Option("--to", "Folder they go to", metavar="DIR", default="<job name> in this folder"),
            Option("--path", "Only this output file or glob", kind="list", metavar="GLOB", default="all"),
            GROUP,
        ),
        ("pull last --to results",),
    ),
    Verb(
        "wait",
        "Wait until a job ends; its end decides the exit code.",
        (
            REF,
            Option("--timeout", "Give up waiting after this time: 45s, 30m", metavar="TIME", default="never"),
            GROUP,
            JSON,
        ),
        ("wait last",),
    ),
    *ENTERING_VERBS,
    Verb("version", "Show the version here and of the engine.", (JSON,)),
    Verb(
        "doctor",
        "Check engine, folders, disk, keyring, profiles, clock, interpreter, Jupyter; say what mends each.",
        (JSON,),
    ),
    *HISTORY_VERBS,
    DATA_VERB,
    PROFILE_VERB,
    LOGIN_VERB,
    SECRET_VERB,
)
EXIT_CODES: Mapping[int, str] = {
    0: "success",
    1: "the job failed",
    2: "usage: an option, a name or a document is wrong",
    3: "the job was stopped",
    4: "the engine or the job server has a problem",
    130: "interrupted; a job that was waited for goes on",
    141: "the reader of the output left",
}
_BY_NAME = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}


def verb_named(name: str) -> Verb:
    """Return a verb by name or alias.

    Raises:
        UsageProblem: there is none of that name.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    from difflib import get_close_matches

    near = get_close_matches(name, list(_BY_NAME), 1)
    hint = (
        f"`{near[0]}` is near." if near else "The verbs are: " + ", ".join(verb.name for verb in VERBS) + "."
    )
    raise UsageProblem(f"Verb `{name}` does not exist.", hint)


def field_help() -> Mapping[str, str]:
    """Return the help of the job document's fields by their flag."""
    from paijupyter.protocol.fields import FIELDS

    return {field.flag: field.help for field in FIELDS if field.flag}


def parser_for(verb: Verb, surface: Surface, prog: str = "") -> VerbParser:
    """Make the parser of a verb as it is called on a surface."""
    start = "%paijob" if surface == "magic" else "paijob"
    return build(verb, surface, prog or f"{start} {verb.name}", field_help())


def parse_verb(name: str, words: Sequence[str], surface: Surface, prog: str = "") -> argparse.Namespace:
    """Parse the words after a verb; the result also has ``verb``, its canonical name.

    Raises:
        UsageProblem: the verb, an option or a value is wrong.
        HelpAsked: help was asked for.
    """
    verb = verb_named(name)
    if surface not in verb.surfaces:
        raise UsageProblem(
            f"Verb `{verb.name}` works in a notebook only.", f"Write it there as: %paijob {name}."
        )
    parsed = parse(verb, parser_for(verb, surface, prog), words)
    parsed.verb = verb.name
    for option in verb.options:  # An option of the other surface reads as not given.
        if not hasattr(parsed, option.attribute):
            empty = {"flag": False, "list": [], "words": [], "rest": []}.get(option.kind)
            setattr(parsed, option.attribute, empty)
    return parsed


def overview(surface: Surface) -> str:
    """Return the help of the whole command: its verbs, each with its sentence."""
    start = "%paijob" if surface == "magic" else "paijob"
    width = max(len(verb.name) for verb in VERBS)
    lines = [f"usage: {start} VERB [options]"]
    if surface == "magic":
        lines.append("       %%paijob [options of submit]   the cell below is what the job runs")
    lines += [
        "",
        "Train for real from a notebook: submit a job, watch it, get its results back.",
        "",
        "verbs:",
    ]
    lines += [f"  {verb.name:<{width}}  {verb.summary}" for verb in VERBS if surface in verb.surfaces]
    lines += ["", f"`{start} VERB --help` shows the options of a verb, each with its default."]
    if surface == "cli":
        lines += ["", "exit codes:", *(f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items())]
    return "\n".join(lines) + "\n"
