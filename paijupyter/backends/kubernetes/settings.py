"""Settings of a profile of kind ``kubernetes``: read once, all that is wrong with them in one error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paijupyter.backends import reading
from paijupyter.backends.base import Profile
from paijupyter.backends.delivery.stores import ObjectStore, object_store
from paijupyter.backends.kubernetes import layout, pod_options, storages
from paijupyter.backends.kubernetes.pod_options import OPTIONS, PodOptions
from paijupyter.backends.kubernetes.storages import ClusterStorage
from paijupyter.backends.reading import Reader
from paijupyter.errors import PaiJupyterError, Problem

WAYS = ("configmap", "claim", "object", "image")
"""The ladder of ways by which a package reaches pods, in the order in which they are tried."""
GANGS = ("auto", "none", "kueue", "jobset", "volcano", "coscheduling")


@dataclass(frozen=True, slots=True)
class ClaimStore:
    """A claim that this host has mounted too.

    Attributes:
        claim: name of the PersistentVolumeClaim.
        path: where this host has the same volume.
        folder: folder in the volume for packages, "" for its top.
    """

    claim: str
    path: str
    folder: str = "paijupyter-packages"


@dataclass(frozen=True, slots=True)
class ImageStore:
    """A registry that takes packages as images, which pods mount as volumes (Kubernetes 1.36 or its gate).

    Attributes:
        repository: host, port and name, for example ``registry.example:5000/team/packages``.
        plain_http: whether the registry has no TLS.
    """

    repository: str
    plain_http: bool = False


@dataclass(frozen=True, slots=True)
class ImageBuilds:
    """Where images are built for jobs that want it, and pushed to.

    Attributes:
        repository: host, port and name that the images are pushed to and pulled from.
        plain_http: whether the registry has no TLS.
        secret: name of a Secret (``kubernetes.io/dockerconfigjson``) to push with and to pull with, or "".
        builder: image with rootless BuildKit.
        memory_mb: that a build may use; 0: no limit.
    """

    repository: str
    plain_http: bool = False
    secret: str = ""
    builder: str = "moby/buildkit:rootless"
    memory_mb: int = 0


@dataclass(frozen=True, slots=True)
class KubeSettings:
    """What a profile says; the attributes are described in :data:`SETTINGS`."""

    name: str
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    image: str = ""
    gpu_resource: str = "nvidia.com/gpu"
    infiniband_resource: str = ""
    shm_mb: int = 512
    queue: str = ""
    priority: str = ""
    gang: str = "auto"
    ways: tuple[str, ...] = WAYS
    claim_store: ClaimStore | None = None
    object_store: ObjectStore | None = None
    image_store: ImageStore | None = None
    build: ImageBuilds | None = None
    storages: Mapping[str, ClusterStorage] = field(default_factory=dict)
    allow_host_path: bool = False
    install: str = "never"
    index_url: str = ""
    cache_claim: str = ""
    keep_claim: str = ""
    keep_folder: str = "paijupyter-jobs"
    barrier_timeout: int = 1800
    stuck_after: int = 180
    indexed_from: int = 10
    outputs_wait: int = 600
    grace_seconds: int = 10
    log_limit_bytes: int = 2**33
    default_fs_uri: str = ""
    default_gpu: int = 0
    autoscaling: bool = False
    pods: PodOptions = field(default_factory=PodOptions)

    def told(self) -> dict[str, Any]:
        """Return what ``spec.json`` is made from, by the keys of the profile."""
        return {
            "pythonPath": self.pods.python,
            "install": self.install,
            "indexUrl": self.index_url,
            "environments": f"{layout.CACHE}/environments" if self.cache_claim else None,
            "barrierTimeout": self.barrier_timeout,
            "outputsWait": self.outputs_wait,
            "logLimitBytes": self.log_limit_bytes,
            "defaultFsUri": self.default_fs_uri,
            "graceSeconds": self.grace_seconds,
        }


def _claim_store(value: Any) -> ClaimStore:
    table: Mapping[str, tuple[str, Reader]] = {
        "claim": ("claim", reading.name),
        "path": ("path", reading.path),
        "folder": ("folder", reading.folder),
    }
    return ClaimStore(**reading.part(value, table, "claim", "path"))


def _image_store(value: Any) -> ImageStore:
    table: Mapping[str, tuple[str, Reader]] = {
        "repository": ("repository", reading.text),
        "plainHttp": ("plain_http", reading.switch),
    }
    return ImageStore(**reading.part(value, table, "repository"))


def _image_builds(value: Any) -> ImageBuilds:
    table: Mapping[str, tuple[str, Reader]] = {
        "repository": ("repository", reading.text),
        "plainHttp": ("plain_http", reading.switch),
        "secret": ("secret", reading.name),
        "builder": ("builder", reading.text),
        "memoryMB": ("memory_mb", reading.memory),
    }
    return ImageBuilds(**reading.part(value, table, "repository"))


_OWN: Mapping[str, tuple[str, Reader, str]] = {
    "kubeconfig": (
        "kubeconfig",
        reading.text,
        "file with the cluster's address and credentials; default: KUBECONFIG, ~/.kube/config, or the "
        "service account of the pod that the engine runs in",
    ),
    "context": ("context", reading.text, "context of that file; default: its current one"),
    "namespace": (
        "namespace",
        reading.name,
        "namespace of the jobs; default: the context's, or the pod's own",
    ),
    "image": ("image", reading.text, "image of jobs that name none"),
    "gpuResource": (
        "gpu_resource",
        reading.resource,
        "what a GPU is called on the nodes; default: nvidia.com/gpu",
    ),
    "infinibandResource": (
        "infiniband_resource",
        reading.resource,
        "what tasks get that ask for InfiniBand, for example rdma/hca",
    ),
    "gpu": ("default_gpu", reading.whole, "GPUs of a task in forms; default: 0"),
    "autoscaling": (
        "autoscaling",
        reading.switch,
        "whether the cluster adds larger nodes when they are asked for; default: false",
    ),
    "shmMB": ("shm_mb", reading.memory, "size of /dev/shm where a job does not say; default: 512"),
    "queue": ("queue", reading.name, "Kueue LocalQueue of jobs that name no virtual cluster"),
    "queuePriority": ("priority", reading.name, "Kueue WorkloadPriorityClass of the jobs"),
    "gang": (
        "gang",
        reading.one_of(*GANGS),
        "how the tasks of a job get their nodes together: auto (default), none, kueue, jobset, volcano or "
        "coscheduling",
    ),
    "packageWays": (
        "ways",
        reading.list_of(reading.one_of(*WAYS)),
        f"ways by which packages travel, the first that fits is taken; default: {', '.join(WAYS)}",
    ),
    "packageClaim": (
        "claim_store",
        _claim_store,
        "claim for packages that this host has mounted too: {claim, path, folder}",
    ),
    "packageObject": (
        "object_store",
        object_store,
        "bucket for packages: {bucket, prefix, endpoint, endpointInCluster, region, awsProfile}",
    ),
    "packageImage": (
        "image_store",
        _image_store,
        "registry for packages as image volumes: {repository, plainHttp}",
    ),
    "buildImage": (
        "build",
        _image_builds,
        "registry for images of jobs with `build: true`: {repository, plainHttp, secret, builder, memoryMB}",
    ),
    "allowHostPath": (
        "allow_host_path",
        reading.switch,
        "whether storages and pod templates may be folders of the nodes; default: false",
    ),
    "install": (
        "install",
        reading.one_of("never", "if-missing", "always"),
        "whether requirements are installed: never (default: they are checked), if-missing or always",
    ),
    "indexUrl": ("index_url", reading.address, "package index that tasks install from"),
    "cacheClaim": (
        "cache_claim",
        reading.name,
        "claim where environments with requirements stay for later tasks; default: each pod makes its own",
    ),
    "keepClaim": (
        "keep_claim",
        reading.name,
        "claim where checkpoints and outputs of each job stay; default: none, the engine fetches outputs "
        "before a task ends",
    ),
    "keepFolder": ("keep_folder", reading.folder, "folder of that claim; default: paijupyter-jobs"),
    "barrierTimeout": (
        "barrier_timeout",
        reading.seconds,
        "how long the tasks of a job wait for each other at the start; default: 30m",
    ),
    "outputsWait": (
        "outputs_wait",
        reading.seconds,
        "how long a task waits until its outputs were fetched; default: 10m",
    ),
    "stuckAfter": (
        "stuck_after",
        reading.seconds,
        "after how long something that never ends by itself is called stuck; default: 3m",
    ),
    "indexedFrom": (
        "indexed_from",
        reading.whole,
        "so many experiments that differ by values only are one Indexed Job; default: from 10 on, 0: never",
    ),
    "graceSeconds": (
        "grace_seconds",
        reading.seconds,
        "time between TERM and KILL for the commands of a job that is stopped; default: 10",
    ),
    "logLimitBytes": ("log_limit_bytes", reading.whole, "size at which a task's log is cut off"),
    "defaultFsUri": ("default_fs_uri", reading.text, "PAI_DEFAULT_FS_URI of the tasks"),
}
SETTINGS: Mapping[str, str] = {
    **{key: words for key, (_, _, words) in _OWN.items()},
    "storages": "volumes that tasks get by name: {team: {pvc: NAME, readOnly, mount, subPath, default, "
    "path}}, or nfs, csi, hostPath in place of pvc",
    **{key: words for key, (_, _, words) in OPTIONS.items()},
}
"""What a profile may set, each in words; others are named as unknown."""


def settings_of(profile: Profile) -> KubeSettings:
    """Return the settings of a profile.

    Raises:
        PaiJupyterError: ``bad-setting``; its problems name everything that cannot be used.
    """
    table = {key: (field_name, reader) for key, (field_name, reader, _) in _OWN.items()}
    found, wrong = reading.read(table, profile.settings)
    pods, more = pod_options.of_profile(profile)
    wrong += more
    volumes, more = storages.read(
        profile.settings.get("storages"), host_path=bool(found.get("allow_host_path"))
    )
    wrong += more
    if wrong:
        raise _bad(profile, wrong)
    return KubeSettings(name=profile.name, pods=pods, storages=volumes, **found)


def _bad(profile: Profile, wrong: list[tuple[str, str]]) -> PaiJupyterError:
    sentences = [f"Setting `{key}` of profile `{profile.name}` {why}." for key, why in wrong]
    hint = f"Correct it; where it stands says: paijob profile show {profile.name}"
    more = f" ({len(wrong) - 1} more)" if len(wrong) > 1 else ""
    problems = [Problem("error", "bad-setting", sentence, hint=hint) for sentence in sentences]
    return PaiJupyterError("bad-setting", sentences[0] + more, hint, 422, problems)
