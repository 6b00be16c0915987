"""A job that wants its image built, on a backend that builds none (P16): said, and never passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paijupyter.backends.base import Backend
from paijupyter.errors import Problem

FEATURE = "build"


async def problems(backend: Backend, profile: str, extras: Mapping[str, Any]) -> list[Problem]:
    """Return what is against it.

    Args:
        backend: that would run the job.
        profile: its name.
        extras: ``extras.paijupyter`` of the document.
    """
    if not extras.get("build") or FEATURE in (await backend.capabilities()).features:
        return []
    said = f"Profile `{profile}` builds no images: only a Kubernetes cluster does."
    hint = "Leave `build` out, and use --install if-missing, or name an image that has what you need."
    return [Problem("error", "no-build", said, "/extras/paijupyter/build", hint=hint)]
