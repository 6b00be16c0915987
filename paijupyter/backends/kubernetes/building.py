"""Images that are built for a job (``build: true``, P16): which, of what, and the Job that builds one. Pure.

BuildKit runs without privileges (rootless) in a pod of its own, never by a node's Docker. Its Job is named by
a hash of all that goes into the image, and so is the image's tag: jobs that need the same share both.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import labels, pod_options, registries, written
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.pod import image_of, placement
from paijupyter.backends.kubernetes.settings import ImageBuilds, KubeSettings
from paijupyter.errors import PaiJupyterError, Problem

BUILD = "build"
"""Value of :data:`labels.KIND` of a Job that builds an image, and of its pod."""
WAITS = "paijupyter.io/waits-"
"""Begin of the annotations of such a Job: one for each job that waits for its image."""
FIELD = "/extras/paijupyter/build"
_RECIPE = 1  # another one makes other images of the same
_LARGEST = 100_000  # bytes of requirements: they travel as a variable, and Linux takes 128 KiB in one
_SECONDS = 7200
_KEPT_SECONDS = 3600  # for which a Job that has ended can be looked at
_APPARMOR = (1, 30)  # version of Kubernetes from which it is a field
_DOCKER = "/paijupyter/docker"
_REFERENCE = re.compile(r"[A-Za-z0-9][\w.:/@-]*")
_OF_PACKAGE = re.compile(
    r"\s*(?:-[erc]\b|--(?:editable|requirement|constraint)\b|\.{0,2}/|file:)|.*@\s*file:"
)


@dataclass(frozen=True, slots=True)
class Build:
    """One image that is to be built.

    Attributes:
        base: the image that it begins with.
        requirements: what is installed on top, as a requirements file.
        python: the interpreter that gets it.
        index: package index, "" for pip's own.
        repository: where it is pushed to, without a tag.
    """

    base: str
    requirements: str
    python: str
    index: str
    repository: str

    @property
    def key(self) -> str:
        """The hash of all that goes into it."""
        told = json.dumps([_RECIPE, self.base, self.requirements, self.python, self.index])
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:20]

    @property
    def image(self) -> str:
        """The name under which it is pushed and pulled."""
        return f"{self.repository}:{self.key}"

    @property
    def name(self) -> str:
        """Name of the Job; in another registry the same image is another Job's."""
        return f"paijupyter-build-{hashlib.sha256(self.image.encode()).hexdigest()[:16]}"

    @property
    def dockerfile(self) -> str:
        """What BuildKit makes it from. No shell: words of users are arguments, or content of files."""
        index = ["--index-url", self.index] if self.index else []
        pip = [
            self.python,
            "-m",
            "pip",
            "install",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--no-input",
        ]
        pip += ["--progress-bar", "off", *index, "-r", "/opt/paijupyter/requirements.txt"]
        lines = [
            f"FROM {self.base}",
            "ARG WHO",
            # Of the build alone: the image's own Python gets the packages, and root installs them.
            "ARG PIP_BREAK_SYSTEM_PACKAGES=1",
            "ARG PIP_ROOT_USER_ACTION=ignore",
            "USER 0:0",
            "COPY requirements.txt /opt/paijupyter/requirements.txt",
            f"RUN {json.dumps(pip)}",
            "USER ${WHO}",
        ]
        return "".join(f"{line}\n" for line in lines)


def store_of(settings: KubeSettings) -> ImageBuilds:
    """Return where a profile's images are built and pushed to.

    Raises:
        PaiJupyterError: ``no-build``: nowhere, though a job was submitted that wants it.
    """
    if settings.build is None:
        said = f"Profile `{settings.name}` names no registry for images that are built any more."
        raise PaiJupyterError("no-build", said, "Set `buildImage` of the profile again.", 422)
    return settings.build


def is_wanted(job: Job) -> bool:
    """Say whether a job's images are to be built."""
    return bool(job.extras.get("build"))


def builds_of(job: Job, settings: KubeSettings, requirements: str) -> dict[str, Build]:
    """Return the image that is built for each role.

    Args:
        job: one without problems.
        settings: of a profile that has a place for images.
        requirements: text of its requirements file.
    """
    repository = store_of(settings).repository
    text = "".join(f"{line.strip()}\n" for line in requirements.splitlines() if line.strip())
    return {
        role: Build(
            image_of(job, role, settings),
            text,
            pod_options.of_role(settings.pods, job, role).python,
            settings.index_url,
            repository,
        )
        for role in job.roles
    }


def to_json(builds: Mapping[str, Build]) -> dict[str, Any]:
    """Return what the job's record keeps of them."""
    return {role: asdict(build) for role, build in builds.items()}


def from_json(told: Mapping[str, Any]) -> dict[str, Build]:
    """Read them from the job's record."""
    return {role: Build(**each) for role, each in told.items()}


def problems(
    job: Job, settings: KubeSettings, cluster: Cluster, requirements: str | None
) -> Iterator[Problem]:
    """Yield what is against building the images of a job that wants it, or what will be built.

    Args:
        job: the job.
        settings: of the profile.
        cluster: where it goes.
        requirements: text of its requirements file; None: it has none.
    """
    found = list(_against(job, settings, cluster, requirements))
    if found or settings.build is None:
        yield from found
        return
    for build in dict.fromkeys(builds_of(job, settings, requirements or "").values()):
        count = len(build.requirements.splitlines())
        lines = f"{count} line{'s' if count > 1 else ''} of requirements"
        words = f"Image `{build.image}` is built of `{build.base}` and {lines}"
        yield Problem("hint", "image-build", f"{words}, unless the registry has it.", FIELD)


def _against(
    job: Job, settings: KubeSettings, cluster: Cluster, requirements: str | None
) -> Iterator[Problem]:
    instead = "Or leave `build` out, and use --install if-missing, or an image that has what you need."
    if written.manifest_of(job) is not None:
        yield _error(
            "A manifest says itself which image it runs: none is built for it.", "Leave `build` out."
        )
    if settings.build is None:
        said = f"Profile `{settings.name}` names no registry for images that are built (`buildImage`)."
        yield _error(said, f"Set buildImage: {{repository: REGISTRY/NAME}} in the profile. {instead}")
    if cluster.pod_security in ("baseline", "restricted"):
        said = f"The namespace enforces the pod security `{cluster.pod_security}`, which refuses BuildKit"
        yield _error(f"{said} its unconfined seccomp profile.", f"Build in another namespace. {instead}")
    if registries.has_logins(job):
        said = "An image with a login in the document cannot be what is built on"
        hint = f"Put the login into the Secret that `buildImage.secret` of the profile names. {instead}"
        yield _error(f"{said}: other jobs share what is built.", hint)
    for image in dict.fromkeys(image_of(job, role, settings) for role in job.roles):
        if not _REFERENCE.fullmatch(image):
            yield _error(f"`{image}` is no name of an image.", "Correct it.")
    if not (requirements or "").strip():
        yield _error("There is nothing to build: the package has no requirements.", "Add a requirements.txt.")
    elif len((requirements or "").encode("utf-8", "replace")) > _LARGEST:
        yield _error(f"The requirements are larger than {_LARGEST // 1000} kB.", "Shorten them.")
    for line in (requirements or "").splitlines():
        if _OF_PACKAGE.match(line):
            said = f"Requirement `{line.strip()}` is a file of the package"
            yield _error(f"{said}, which a build does not have.", f"Name what it needs itself. {instead}")


def _error(message: str, hint: str) -> Problem:
    return Problem("error", "no-build", message, FIELD, hint=hint)


def object_of(build: Build, settings: KubeSettings, cluster: Cluster, waits: str = "") -> dict[str, Any]:
    """Return the Job that builds an image, or finds that its registry has it already.

    Args:
        build: the image.
        settings: of a profile that has a place for images.
        cluster: where it goes.
        waits: annotation of the job that waits for it, or "".
    """
    marks = {**labels.shared(BUILD), labels.JOB: build.name}
    metadata: dict[str, Any] = {
        "name": build.name,
        "labels": marks,
        "annotations": {"paijupyter.io/image": build.image},
    }
    if waits:
        metadata["annotations"][waits] = "1"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": _SECONDS,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": _template(build, settings, cluster, marks),
        },
    }


def _template(
    build: Build, settings: KubeSettings, cluster: Cluster, marks: Mapping[str, str]
) -> dict[str, Any]:
    store = store_of(settings)
    variables = {
        "IMAGE": build.image,
        "BASE": build.base,
        "DOCKERFILE": build.dockerfile,
        "REQUIREMENTS": build.requirements,
        "BUILDKITD": _daemon(build, plain_http=store.plain_http),
    }
    # What rootless BuildKit needs, and no more: user namespaces and mounts in them, and the set-uid bits (or
    # file capabilities) of newuidmap. https://github.com/moby/buildkit/blob/master/docs/rootless.md
    security: dict[str, Any] = {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "privileged": False,
        "seccompProfile": {"type": "Unconfined"},
    }
    metadata: dict[str, Any] = {"labels": dict(marks)}
    if (0, 0) < cluster.version < _APPARMOR:
        metadata["annotations"] = {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}
    else:
        security["appArmorProfile"] = {"type": "Unconfined"}
    mounts = [{"name": "state", "mountPath": "/home/user/.local/share/buildkit"}]
    volumes: list[dict[str, Any]] = [{"name": "state", "emptyDir": {}}]
    if store.secret:
        variables["DOCKER_CONFIG"] = _DOCKER
        mounts.append({"name": "login", "mountPath": _DOCKER})
        items = [{"key": ".dockerconfigjson", "path": "config.json"}]
        volumes.append({"name": "login", "secret": {"secretName": store.secret, "items": items}})
    amounts = {"cpu": "500m", "memory": f"{store.memory_mb or 512}Mi"}
    limits = {"memory": amounts["memory"]} if store.memory_mb else {}
    container = {
        "name": "main",
        "image": store.builder,
        "command": ["sh", "-c", _script()],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": {"requests": amounts, **({"limits": limits} if limits else {})},
        "securityContext": security,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 2,
        "containers": [container],
        "volumes": volumes,
        **placement(settings.pods),
    }
    pulls = dict.fromkeys([*settings.pods.pull_secrets, *([store.secret] if store.secret else [])])
    if pulls:
        spec["imagePullSecrets"] = [{"name": each} for each in pulls]
    return {"metadata": metadata, "spec": spec}


def _daemon(build: Build, *, plain_http: bool) -> str:
    """Return ``buildkitd.toml``."""
    host = json.dumps(build.repository.partition("/")[0])
    return f"[registry.{host}]\n  http = true\n" if plain_http else ""


def _script() -> str:
    return (files("paijupyter.backends.kubernetes") / "build.sh").read_text("utf-8")
