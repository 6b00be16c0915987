"""A cluster for the tests, a namespace for each of them, and faults to inject."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.faults import Faults
from tests.cluster.lab import lifecycle
from tests.cluster.lab.images import IMAGES
from tests.cluster.reach import IMAGE_SETTING, Cluster, reached

ROLE = Path(__file__).resolve().parents[2] / "paijupyter" / "backends" / "kubernetes" / "role.yaml"

_FOUND = reached()


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Give the cluster; skip where there is none, with the reason."""
    if isinstance(_FOUND, str):
        pytest.skip(_FOUND)
    return _FOUND


@pytest.fixture(scope="session")
def lab(cluster: Cluster) -> lifecycle.Facts:
    """Give the lab, for what only it has: faults, GPUs, add-ons, registries; skip on another cluster."""
    if not cluster.lab:
        pytest.skip("only the lab has this, and the tests run against another cluster")
    return cluster.lab


@pytest.fixture(scope="session")
def image(cluster: Cluster) -> Callable[[str], str]:
    """Give the reference of an image by name: ``python``, ``busybox``; ``torch`` takes minutes once."""

    def reference(name: str) -> str:
        if name not in cluster.images and not cluster.lab:
            pytest.skip(f"this cluster's image with {name} is not named: set {IMAGE_SETTING}…")
        assert name in IMAGES
        return cluster.images.get(name) or lifecycle.add_image(name)

    return reference


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Give a namespace of the test's own; what is in it goes with it."""
    name = f"pj-test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    # Pods are refused until the service account is there, which the controller manager makes.
    cluster.kubectl("wait", "--for=create", "--timeout=30s", "-n", name, "serviceaccount/default")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false", check=False)


@pytest.fixture
def account_with(cluster: Cluster, namespace: str, tmp_path: Path) -> Callable[..., Path]:
    """Give a function that makes a service account with some of the documented Roles, and nothing else.

    It takes the Roles' names and returns a kubeconfig for the account in the test's namespace.
    """

    def make(*names: str) -> Path:
        documented = {one["metadata"]["name"]: one for one in yaml.safe_load_all(ROLE.read_text()) if one}
        account = f"limited-{uuid.uuid4().hex[:6]}"
        cluster.kubectl("create", "serviceaccount", account, "-n", namespace)
        bound = f"--serviceaccount={namespace}:{account}"
        for name in names:
            cluster.apply(namespace, documented[name])
            binding = ("create", "rolebinding", f"{account}-{name}", f"--role={name}")
            cluster.kubectl(*binding, bound, "-n", namespace)
        token = cluster.kubectl("create", "token", account, "-n", namespace).strip()
        return _as_user(cluster, namespace, token, tmp_path / f"{account}.kubeconfig")

    return make


@pytest.fixture
def limited(account_with: Callable[..., Path]) -> Path:
    """Give the kubeconfig of a service account that has all of the documented Roles and nothing else."""
    return account_with("paijupyter", "paijupyter-tasks", "paijupyter-optional")


def _as_user(cluster: Cluster, namespace: str, token: str, path: Path) -> Path:
    """Write a kubeconfig for the same cluster with another token."""
    config = json.loads(cluster.kubectl("config", "view", "--minify", "--raw", "--flatten", "-o", "json"))
    context = config["contexts"][0]
    context["context"] = context["context"] | {"user": "limited", "namespace": namespace}
    config["users"] = [{"name": "limited", "user": {"token": token}}]
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


@pytest.fixture
def faults(lab: lifecycle.Facts) -> Iterator[Faults]:
    """Give the faults that a test may inject into the lab."""
    injected = Faults()
    yield injected
    injected.mend()


@pytest.fixture
def jobs_end(cluster: Cluster, until: Callable[..., Any]) -> Callable[[str, str], str]:
    """Give a function that waits for a Job's end and returns ``Complete`` or ``Failed``."""

    def end(namespace: str, name: str) -> str:
        def over() -> str:
            job = cluster.get("job", name, "-n", namespace)
            states = [c["type"] for c in job["status"].get("conditions", []) if c["status"] == "True"]
            return next((state for state in states if state in ("Complete", "Failed")), "")

        return str(until(over, seconds=90, why=f"the end of job {name}"))

    return end
