"""The rows of the table of fields for what only OpenPAI heeds (openpai.md 1.3, 1.6, 1.7)."""

from __future__ import annotations

from paijupyter.protocol.field import Field

_ROLE = "/taskRoles/*"
_HIVED = "/extras/hivedScheduler"
_HIVED_ROLE = f"{_HIVED}/taskRoles/*"
_OPENPAI = ("openpai",)

ORIGINAL_FIELDS: tuple[Field, ...] = (
    Field(
        f"{_ROLE}/taskRetryCount",
        "Task retries",
        "How often a failed task is tried again by itself, if `gangAllocation` is false.",
        unit="times",
        level="advanced",
        widget="number",
        default=0,
        profiles=_OPENPAI,
    ),
    Field(
        f"{_HIVED_ROLE}/skuType",
        "SKU type",
        "Kind of cell that HiveD gives each task; needs a cluster with HiveD.",
        level="advanced",
        default="any that fits",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_HIVED_ROLE}/skuNum",
        "SKUs",
        "How many cells of that type each task gets; kept for the portal, the cluster counts by resources.",
        unit="cells",
        level="advanced",
        widget="number",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_HIVED_ROLE}/pinnedCellId",
        "Pinned cell",
        "Cell that an administrator has reserved, instead of a SKU type.",
        level="advanced",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_HIVED_ROLE}/affinityGroupName",
        "Affinity group",
        "Roles of the same group get cells near each other; they must name the same SKU type.",
        level="advanced",
        default="one for the whole job",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_ROLE}/prerequisites",
        "Prerequisites of the role",
        "Names of prerequisites whose commands run around those of the role, in this order.",
        level="advanced",
        widget="lines",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_ROLE}/script",
        "Script",
        "Name of the prerequisite that `<% $script %>` stands for in commands.",
        level="advanced",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_ROLE}/data",
        "Data prerequisite",
        "Name of the prerequisite that `<% $data %>` stands for in commands.",
        level="advanced",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_ROLE}/output",
        "Output prerequisite",
        "Name of the prerequisite that `<% $output %>` stands for in commands.",
        level="advanced",
        profiles=_OPENPAI,
    ),
    Field(
        f"{_HIVED}/jobPriorityClass",
        "Priority",
        "Whether other jobs give way to it (prod), or it gives way to them (oppo).",
        level="advanced",
        widget="select",
        default="test",
        profiles=_OPENPAI,
    ),
    Field(
        "/extras/com.microsoft.pai.runtimeplugin",
        "Plug-ins",
        "What the cluster adds to each task. For ssh the image has openssh-server, or a network to get it: "
        "else each task fails after some seconds.",
        level="advanced",
        widget="kinds",
        profiles=_OPENPAI,
    ),
    Field(
        "/prerequisites",
        "Prerequisites",
        "Scripts, data and outputs that roles name; nothing is downloaded by itself.",
        level="advanced",
        widget="kinds",
        profiles=_OPENPAI,
        elsewhere=("dockerimage",),
    ),
    Field(
        "/extras/tags",
        "Tags",
        "Words that the job is found by; one a line.",
        level="advanced",
        widget="lines",
        profiles=_OPENPAI,
    ),
    Field(
        "/extras/jobStatusChangeNotification",
        "E-mail",
        "When the cluster writes to you; needs OpenPAI 1.8 with mail set up.",
        level="advanced",
        widget="flags",
        profiles=_OPENPAI,
    ),
)
