"""Options of ``export``: a job's document, or a notebook as script, document and package."""

from __future__ import annotations

from paijupyter.client.parser import Option, Verb
from paijupyter.client.submit_options import SUBMIT_OPTIONS

_OF_A_JOB = (
    "--name",
    "--role",
    "--gpu",
    "--cpu",
    "--mem",
    "--image",
    "--param",
    "--env",
    "--secret",
    "--package",
)
_MORE = ("--requirements", "--install", "--data", "--storage", "--output", "--time-limit", "--retry")
_OF_CELLS = ("--cells", "--carry", "--order", "--virtual-cluster")

EXPORT_VERB = Verb(
    "export",
    "Print the job document; of a notebook: the script of its cells, or a folder to submit later.",
    (
        Option(
            "job",
            "Job by name, id or `last`; or a notebook, NAME.ipynb or `this-notebook`",
            kind="word",
            default="`last`, this kernel's (command line: this folder's) latest job",
        ),
        Option(
            "--what",
            "`source` is your text byte for byte, `submitted` what the profile made of it",
            choices=("source", "submitted"),
            default="source",
        ),
        Option("--to", "File to write document or script to", metavar="FILE", default="shown"),
        Option(
            "--folder",
            "Of a notebook: new folder for job document, package and script; submit it with -f DIR/job.yaml",
            metavar="DIR",
            short="-o",
            default="the script alone",
        ),
        *(option for option in SUBMIT_OPTIONS if option.name in (*_OF_CELLS, *_OF_A_JOB, *_MORE)),
    ),
    (
        "export last --to job.yaml",
        "export train.ipynb --cells pai:export --to train.py",
        "export train.ipynb -o job",
    ),
)
