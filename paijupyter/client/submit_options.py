"""Options of ``submit`` and ``plan``, in the order of the form: what, where, with what, how, and then.

Some of them serve other verbs too.
"""

from __future__ import annotations

from paijupyter.client.parser import Option

PROFILE = Option(
    "--profile",
    "Profile, a named place where jobs run; `profile list` shows them",
    metavar="NAME",
    default="local",
)

PARAM = Option(
    "--param",
    "Parameter, public: <% $parameters.NAME %> in commands, a variable in a Python cell",
    kind="list",
    metavar="NAME=VALUE",
    short="-p",
    default="none",
)
SECRET = Option(
    "--secret",
    "Secret by reference: NAME=keyring:KEY, NAME=env:VARIABLE, NAME=ask (asks without showing it)",
    kind="list",
    metavar="NAME=REFERENCE",
    default="none",
)
FILE = Option(
    "--file",
    "Submit this job document; it is kept byte for byte",
    metavar="JOB.YAML",
    short="-f",
    default="a document made from the options",
)

_WHAT = (
    Option(
        "--name",
        "Short name of the job; a suffix is added",
        metavar="NAME",
        default="made from the file name",
    ),
    Option("--sh", "Read the cell as shell script", kind="flag", default="Python", surfaces=("magic",)),
    Option(
        "--yaml", "Read the cell as a whole job document", kind="flag", default="Python", surfaces=("magic",)
    ),
    FILE,
    Option(
        "--command",
        "Shell command that tasks run, for all roles or as ROLE=COMMAND for one",
        kind="list",
        metavar="[ROLE=]COMMAND",
        default="the cell or script",
    ),
    PROFILE,
    Option(
        "--virtual-cluster",
        "Share of the cluster the job takes its resources from",
        metavar="NAME",
        default="the profile's",
        field=True,
    ),
)
_WHERE = (
    Option(
        "--role",
        "Task role with its instances and resources: worker:4,gpu=1,cpu=2,mem=8Gi,port=tb:1",
        kind="list",
        metavar="ROLE[:N][,KEY=VALUE]",
        default="worker:1",
    ),
    Option("--gpu", "GPUs of each instance, where there is one role", metavar="N", default="0"),
    Option("--cpu", "CPU cores of each instance, where there is one role", metavar="N", default="1"),
    Option(
        "--mem",
        "Memory of each instance, where there is one role: 512M, 8Gi; what takes more is ended",
        metavar="SIZE",
        default="1Gi in the queue, and no limit",
    ),
    Option(
        "--image",
        "Container image; the local profile runs without one",
        metavar="IMAGE",
        default="python:3.11-slim",
        field=True,
    ),
)
_WITH = (
    PARAM,
    Option(
        "--env",
        "Environment variable of every task",
        kind="list",
        metavar="NAME=VALUE",
        short="-e",
        default="none",
    ),
    SECRET,
    Option(
        "--package",
        "Folder that travels with the job and is its working directory",
        metavar="DIR",
        default="the folder of the notebook (command line: this folder)",
    ),
    Option(
        "--requirements",
        "Requirements file in the package, installed where something of it is missing",
        metavar="FILE",
        default="requirements.txt if there",
        field=True,
    ),
    Option(
        "--install",
        "Whether requirements are installed in the task",
        choices=("never", "if-missing", "always"),
        default="if-missing on this machine, never on clusters",
        field=True,
    ),
    Option(
        "--build",
        "Build an image that has the requirements, on the cluster, once",
        kind="flag",
        default="the image as it is",
        field=True,
    ),
    Option(
        "--data",
        "Data by name: a file, http(s), git, storage, s3, webhdfs … URI; it is in $PAI_DATA_<NAME>",
        kind="list",
        metavar="NAME=URI[,path=DIR][,sha256=SUM][,ref=REF]",
        default="none",
    ),
    Option(
        "--storage",
        "Storage of the profile that the tasks get in $PAI_STORAGE_<NAME>",
        kind="list",
        metavar="NAME[:MOUNT]",
        default="the profile's default ones",
    ),
    Option(
        "--output",
        "Files below the working directory to keep when a task ends: 'checkpoints/**'",
        kind="list",
        metavar="GLOB",
        default="what the task writes to $PAI_OUTPUT_DIR",
    ),
)
RESUME_FROM = Option(
    "--resume-from",
    "Begin with a copy of the checkpoints of this job, which has ended; they are in $PAI_CHECKPOINT_DIR",
    metavar="JOB",
    default="an empty folder",
)
CELLS = Option(
    "--cells",
    "Of a notebook: cells to run as a script with all that they need: tags, numbers 3,5-7, all",
    kind="list",
    metavar="TAG|N",
    default="the whole notebook runs",
)
CARRY = Option(
    "--carry",
    "Object of this kernel that travels with the cells, in the safest format it has",
    kind="list",
    metavar="NAME",
    default="none",
    surfaces=("magic",),
)
ORDER = Option(
    "--order",
    "Which order of the cells holds where they ran in another than that of the page",
    choices=("page", "run"),
    default="asked where it matters",
)
_HOW = (
    RESUME_FROM,
    CELLS,
    Option(
        "--with-cells",
        "Take along what the cell below needs of the cells above it",
        kind="flag",
        default="the cell alone",
        surfaces=("magic",),
    ),
    CARRY,
    ORDER,
    Option(
        "--until",
        "Of a notebook: the last cell that runs, by its number, id or tag",
        metavar="CELL",
        default="all of it",
    ),
    Option(
        "--timeout",
        "Of a notebook: longest time of one cell: 45s, 30m",
        metavar="TIME",
        default="none",
    ),
    Option("--time-limit", "Longest run time: 45s, 30m, 2h30m", metavar="TIME", default="none", field=True),
    Option(
        "--retry",
        "How often a failed job is tried again by itself",
        metavar="N",
        default="0",
        field=True,
    ),
    Option(
        "--kernel-free",
        "Run `python` as found on PATH",
        kind="flag",
        default="the interpreter of this kernel, on the local profile",
        surfaces=("magic",),
    ),
    Option(
        "--again",
        "Submit although an unfinished job of the same cell and code exists",
        kind="flag",
        default="that job is shown",
        surfaces=("magic",),
    ),
    Option(
        "--replace",
        "First stop what is unfinished of the same cell (command line: of the same name and folder)",
        kind="flag",
        default="it runs on",
    ),
)
FORM = Option(
    "--form",
    "Open a form with all this in it, and submit nothing by itself",
    kind="flag",
    default="submit",
    surfaces=("magic",),
)
AFTER = (
    Option("--plan", "Show what would be submitted, and submit nothing", kind="flag", default="submit"),
    Option(
        "--wait",
        "Stay until the job ends and show its log; interrupting leaves the job running",
        kind="flag",
        default="return at once",
    ),
    Option(
        "--as",
        "Variable that gets the job's handle",
        metavar="NAME",
        default="none",
        dest="variable",
        surfaces=("magic",),
    ),
    Option(
        "--json",
        "Print JSON for machines",
        kind="flag",
        default="text for people",
        surfaces=("cli",),
    ),
)
_SCRIPT = (
    Option(
        "script",
        "What to run of the package: .py with python, .sh with bash, a whole .ipynb (`this-notebook`: this)",
        kind="word",
        default="none, then --command or -f says what runs",
    ),
    Option(
        "arguments",
        "Arguments of the script; all that follows it is passed on as it is",
        kind="rest",
        default="none",
    ),
)
SUBMIT_OPTIONS = (*_WHAT, *_WHERE, *_WITH, *_HOW, FORM, *AFTER, *_SCRIPT)
FORM_OPTIONS = (
    Option(
        "--from",
        "Begin with the document of this job",
        metavar="JOB",
        default="what the other options say",
        dest="start",
    ),
    Option(
        "--widgets",
        "Show widgets, also where JupyterLab has a form of its own",
        kind="flag",
        default="JupyterLab's form where there is one",
    ),
    *_WHAT,
    *_WHERE,
    *_WITH,
    *_HOW,
    Option(
        "--as",
        "Variable that gets the form of widgets",
        metavar="NAME",
        default="none",
        dest="variable",
    ),
    *_SCRIPT,
)
