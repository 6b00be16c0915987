"""Options of the verbs that go into running tasks, and that take over jobs of other hosts."""

from __future__ import annotations

from dataclasses import replace

from paijupyter.client.parser import Option, Verb

_TASK = Option("--task", "The task, for example worker-0", metavar="ROLE-N", default="the first that runs")
_JOB = Option("job", "Id, name or short name; `last` is the latest", kind="word", default="`last`")
EXEC_VERB = Verb(
    "exec",
    "Run a command in a running task, where its place can do that (Kubernetes).",
    (
        _TASK,
        _JOB,
        Option(
            "command",
            "The command and its arguments; what is piped in is its input",
            kind="rest",
            required=True,
        ),
    ),
    ("exec last nvidia-smi", "exec --task worker-1 mnist-k3f9qd cat config.json"),
)
FORWARD_VERB = Verb(
    "forward",
    "Bring a port of a running task to this host, until its job ends.",
    (
        _TASK,
        replace(_JOB, required=True, default=""),
        Option("port", "Its number, or a label of the document's ports", kind="word", required=True),
        Option("--json", "Print JSON for machines", kind="flag", default="text for people"),
    ),
    ("forward last 6006", "forward --task worker-0 mnist-k3f9qd tensorboard"),
)
ADOPT_VERB = Verb(
    "adopt",
    "Take over your unfinished jobs that another host submitted (Kubernetes).",
    (
        Option("--profile", "The profile whose place is asked", metavar="NAME", default="the default one"),
        Option("--json", "Print JSON for machines", kind="flag", default="text for people"),
    ),
    ("adopt --profile cluster",),
)
ENTERING_VERBS = (EXEC_VERB, FORWARD_VERB, ADOPT_VERB)
