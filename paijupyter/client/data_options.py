"""The row of the table of verbs for files in storages."""

from __future__ import annotations

from paijupyter.client.parser import Option, Verb

DATA_VERB = Verb(
    "data",
    "Put files into a storage of a profile, list them, remove them.",
    (
        Option("action", "What to do", kind="word", choices=("ls", "put", "rm"), default="ls"),
        Option(
            "first",
            "With ls and rm: STORAGE:path; with put: the file or folder",
            kind="word",
            default="ls: all storages",
        ),
        Option("second", "With put: where it goes, STORAGE:path", kind="word", default="none"),
        Option(
            "--recursive", "With rm: a folder and all in it", kind="flag", short="-r", default="files only"
        ),
        Option(
            "--profile", "Profile whose storages are meant", metavar="NAME", default="the default profile"
        ),
        Option("--json", "Print JSON for machines", kind="flag", default="text for people"),
    ),
    ("data ls", "data put sets/mnist team:sets", "data ls team:sets/mnist", "data rm team:sets/mnist -r"),
)
