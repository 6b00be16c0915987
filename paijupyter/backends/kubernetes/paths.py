"""Paths of the Kubernetes API, each part quoted."""

from __future__ import annotations

from urllib.parse import quote


def api(group_version: str, resource: str, name: str = "", sub: str = "", *, namespace: str = "") -> str:
    """Return the path of a collection, an object or its subresource.

    Args:
        group_version: ``v1`` or ``<group>/<version>``, as in an object's ``apiVersion``.
        resource: plural, lower case (``pods``).
        name: of one object; "" for the collection.
        sub: subresource (``log``, ``exec``, ``status``).
        namespace: of the object; "" for what lies in none, or for all namespaces.
    """
    root = "/api/v1" if group_version == "v1" else f"/apis/{quote(group_version)}"
    parts = [root]
    if namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts += [quote(part, safe="") for part in (resource, name, sub) if part]
    return "/".join(parts)


def core(resource: str, name: str = "", sub: str = "", *, namespace: str = "") -> str:
    """Return a path of the core group."""
    return api("v1", resource, name, sub, namespace=namespace)


def batch(resource: str, name: str = "", sub: str = "", *, namespace: str = "") -> str:
    """Return a path of batch/v1."""
    return api("batch/v1", resource, name, sub, namespace=namespace)
