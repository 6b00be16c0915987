"""The writing model: what documents of ours look like, as pydantic models. Imported only where needed.

Stricter than what is read: the intersection of what the public validators accept. The form's schema, the
reference documentation and the check of ``extras.paijupyter`` are made from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]+$", min_length=1, max_length=255)]
RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,62}$")]
PortLabel = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
DataName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$")]
Launcher = Literal["plain", "torchrun", "tensorflow", "paddle", "jax", "mpi"]
Count = Annotated[int, Field(ge=-1)]
Commands = Annotated[list[str], Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=False, frozen=True
    )


class _Open(_Model):
    model_config = ConfigDict(extra="allow")


class Auth(_Model):
    """Credentials of a registry; each usually a reference to a secret."""

    username: str | None = None
    password: str | None = None
    registryuri: str | None = None


class DockerImage(_Model):
    """A container image."""

    protocol_version: Literal[2] = 2
    name: Name
    type: Literal["dockerimage"]
    version: str | None = None
    contributor: str | None = None
    description: str | None = None
    auth: Auth | None = None
    uri: str


class Bag(_Open):
    """A script or an output that commands refer to."""

    protocol_version: Literal[2] = 2
    name: Name
    type: Literal["script", "output"]
    version: str | None = None
    contributor: str | None = None
    description: str | None = None
    plugin: str | None = None
    require: list[str] | None = None
    uri: str | None = None


class Data(_Open):
    """Data that commands refer to."""

    protocol_version: Literal[2] = 2
    name: Name
    type: Literal["data"]
    version: str | None = None
    contributor: str | None = None
    description: str | None = None
    plugin: str | None = None
    require: list[str] | None = None
    uri: Annotated[list[str], Field(min_length=1)] | None = None


class Completion(_Model):
    """How many ended tasks of the role end the job."""

    min_failed_instances: Count = 1
    min_succeeded_instances: Count | None = None


class ContainerOptions(_Open):
    """Further options of the container."""

    shm_mb: Annotated[int, Field(ge=1)] | None = Field(None, alias="shmMB")
    infiniband: bool = False


class Resources(_Model):
    """What one instance gets."""

    cpu: Annotated[int, Field(ge=1)]
    memory_mb: int = Field(ge=1, alias="memoryMB")
    gpu: Annotated[int, Field(ge=0)]
    ports: Annotated[dict[PortLabel, Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None


class TaskRole(_Model):
    """Equal tasks of a job."""

    instances: Annotated[int, Field(ge=1)]
    completion: Completion | None = None
    task_retry_count: Annotated[int, Field(ge=0)] = 0
    prerequisites: list[str] | None = None
    docker_image: str
    data: str | None = None
    output: str | None = None
    script: str | None = None
    extra_container_options: ContainerOptions | None = None
    resource_per_instance: Resources
    commands: Commands


class DeployedRole(_Model):
    """Commands around those of a role."""

    pre_commands: Commands | None = None
    post_commands: Commands | None = None


class Deployment(_Model):
    """A set of commands around those of the roles, chosen by ``defaults.deployment``."""

    name: Name
    task_roles: Annotated[dict[RoleName, DeployedRole], Field(min_length=1)]


class Defaults(_Open):
    """What the cluster is told."""

    virtual_cluster: str | None = None
    deployment: str | None = None


class RoleExtras(_Model):
    """What paijupyter adds to a role."""

    env: dict[EnvName, str] = Field(default_factory=dict)
    launcher: Launcher = "plain"
    service: bool | None = None
    limit_memory: bool = True


class Notebook(_Model):
    """The notebook a job came from, with its cell; ``run``: the notebook itself is what the tasks run."""

    path: str
    cell: str | None = None
    run: bool = False


class DataItem(_Model):
    """A source of data that every task finds in ``$PAI_DATA_<NAME>``."""

    name: DataName
    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")] | None = None
    uri: Annotated[str, StringConstraints(min_length=1)]
    path: str | None = None
    sha256: str | None = None
    ref: str | None = None
    secret: str | None = None


class KubernetesExtras(_Open):
    """Options of the pods; what else there is, the backend checks."""

    priority_class: str | None = None


class PaiJupyterExtras(_Model):
    """All that the protocol has no field for, in ``extras.paijupyter``."""

    version: Literal[1]
    package: Sha256 | None = None
    env: dict[EnvName, str] = Field(default_factory=dict)
    roles: dict[RoleName, RoleExtras] = Field(default_factory=dict)
    outputs: list[str] = Field(default_factory=list)
    notebook: Notebook | None = None
    requirements: str | None = None
    install: Literal["never", "if-missing", "always"] | None = None
    build: bool = False
    time_limit: Annotated[int, Field(ge=1)] | None = None
    barrier_timeout: Annotated[int, Field(ge=1)] | None = None
    python: str | None = None
    data: list[DataItem] = Field(default_factory=list)
    kubernetes: KubernetesExtras | None = None
    openpai: dict[str, Any] | None = None


class StorageUse(_Open):
    """A storage that the tasks are given."""

    name: str
    mount_path: str | None = None


class _Plugin(_Open):
    failure_policy: Annotated[
        Literal["fail", "ignore"], Field(description="Whether its failure is one of the task.")
    ] = "fail"
    taskroles: Annotated[
        list[RoleName] | None, Field(description="Roles that get it, one a line; else all.")
    ] = None


class UserSsh(_Open):
    """Public key of who may log in."""

    type: Literal["custom"] = "custom"
    value: Annotated[str, Field(description="Your public key, as in `~/.ssh/id_ed25519.pub`.")]


class SshParameters(_Open):
    """Of the plug-in ssh."""

    jobssh: Annotated[
        bool, Field(description="Tasks can log in to each other by name, as `ssh worker-0`.")
    ] = False
    sshbarrier: Annotated[bool, Field(description="Commands wait until all tasks can be logged in to.")] = (
        False
    )
    sshbarrier_timeout: Annotated[int | None, Field(ge=1, description="Minutes that they wait.")] = None
    userssh: UserSsh | None = None


class SshPlugin(_Plugin):
    """Logins between tasks, and from outside."""

    plugin: Literal["ssh"]
    parameters: Annotated[SshParameters | None, Field(examples=[{"jobssh": True}])] = None


class TensorboardParameters(_Open):
    """Of the plug-in tensorboard."""

    port: Annotated[int, Field(ge=1, le=65535, description="Port of the node; must be free there.")]
    logdir: Annotated[dict[DataName, str], Field(description="Folders of logs in the task, by name.")]


class TensorboardPlugin(_Plugin):
    """TensorBoard beside the first task of the first role."""

    plugin: Literal["tensorboard"]
    parameters: Annotated[
        TensorboardParameters,
        Field(examples=[{"port": 10000, "logdir": {"tensorboard": "/mnt/tensorboard"}}]),
    ]


class StorageParameters(_Open):
    """Of the plug-in teamwise_storage."""

    storage_config_names: Annotated[list[str], Field(description="Names of storages, one a line.")]


class StoragePlugin(_Plugin):
    """Storages of the team, by the older way; today ``extras.storages``."""

    plugin: Literal["teamwise_storage"]
    parameters: StorageParameters | None = None


class GitParameters(_Open):
    """Of the plug-in git."""

    repo_uri: str = Field(alias="repo_uri", description="Address of the repository.")
    options: Annotated[list[str] | None, Field(description="Options of `git clone`, one a line.")] = None
    clone_dir: str | None = Field(None, alias="clone_dir", description="Folder in the task.")


class GitPlugin(_Plugin):
    """A repository that is cloned before the commands."""

    plugin: Literal["git"]
    parameters: GitParameters


class CmdParameters(_Open):
    """Of the plug-in cmd."""

    pre_commands: Annotated[list[str] | None, Field(description="Commands before those of the roles.")] = None
    post_commands: Annotated[list[str] | None, Field(description="Commands after them.")] = None


class CmdPlugin(_Plugin):
    """Commands around those of the roles, in a shell of their own."""

    plugin: Literal["cmd"]
    parameters: CmdParameters | None = None


class HivedRole(_Open):
    """What a role asks of HiveD."""

    sku_type: str | None = None
    sku_num: Annotated[int, Field(ge=1)] | None = None
    pinned_cell_id: str | None = None
    affinity_group_name: str | None = None


class Hived(_Open):
    """What a job asks of HiveD."""

    job_priority_class: Literal["prod", "test", "oppo"] | None = None
    task_roles: dict[RoleName, HivedRole] = Field(default_factory=dict)


class Notification(_Open):
    """Changes of the job's state that are told by e-mail."""

    running: bool = False
    succeeded: bool = False
    failed: bool = False
    stopped: bool = False
    retried: bool = False


Plugin = Annotated[
    SshPlugin | TensorboardPlugin | StoragePlugin | GitPlugin | CmdPlugin, Field(discriminator="plugin")
]


class Extras(_Open):
    """Free for everyone; ours is ``paijupyter``."""

    storages: list[StorageUse] | None = None
    gang_allocation: bool = True
    tags: list[str] | None = None
    hived_scheduler: Hived | None = None
    job_status_change_notification: Notification | None = None
    plugins: list[Plugin] | None = Field(None, alias="com.microsoft.pai.runtimeplugin")
    paijupyter: PaiJupyterExtras | None = None


class JobDocument(_Model):
    """A job document of Pai Job Protocol v2, as paijupyter writes it."""

    protocol_version: Literal[2]
    name: Name
    type: Literal["job"]
    version: str | None = None
    contributor: str | None = None
    description: str | None = None
    prerequisites: Annotated[
        list[Annotated[DockerImage | Bag | Data, Field(discriminator="type")]], Field(min_length=1)
    ]
    parameters: dict[str, Any] | None = None
    secrets: dict[str, Any] | None = None
    job_retry_count: Annotated[int, Field(ge=0)] = 0
    task_roles: Annotated[dict[RoleName, TaskRole], Field(min_length=1)]
    deployments: Annotated[list[Deployment], Field(min_length=1)] | None = None
    defaults: Defaults | None = None
    extras: Extras | None = None


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of a job document as we write it."""
    return JobDocument.model_json_schema(by_alias=True)


def extras_errors(value: Any) -> list[tuple[tuple[str, ...], str, Any, dict[str, Any]]]:
    """Return what is wrong with an ``extras.paijupyter``: place, pydantic's kind of error, value, context."""
    try:
        PaiJupyterExtras.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [(tuple(map(str, e["loc"])), e["type"], e.get("input"), e.get("ctx") or {}) for e in found]
    return []
