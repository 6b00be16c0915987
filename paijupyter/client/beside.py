"""What is found about a package beside the way of a submission, which does not wait for it."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from paijupyter.client import environments, imports
from paijupyter.client.environments import Environment
from paijupyter.client.imports import Uncovered
from paijupyter.errors import Problem

_IMAGE = re.compile(r"^\s*uri:\s*['\"]?((?:\S*/)?python:(\d+\.\d+)[^\s'\"]*)", re.M)


class Beside:
    """Looks at the imports of a package in a thread of its own.

    Args:
        python: the interpreter that the package was written for.
        look: returns its uncovered imports, given what the interpreter has.
    """

    def __init__(self, python: str, look: Callable[[Environment], list[Uncovered]]) -> None:
        self._python = python
        self._look = look
        self._has: Environment | None = None
        self._found: list[Uncovered] = []
        self._thread = threading.Thread(target=self._run, name="paijupyter imports", daemon=True)
        self._thread.start()

    def findings(
        self, plan: Mapping[str, Any], seconds: float | None
    ) -> tuple[list[Uncovered], list[Problem]]:
        """Return the uncovered imports and what is to be said.

        Args:
            plan: the engine's plan.
            seconds: how long to wait for it, None: to the end.
        """
        self._thread.join(seconds)
        if self._thread.is_alive() or self._has is None:
            return [], []
        here = all(each.get("kind") == "process" for each in plan.get("objects") or ())
        said = list(imports.problems(self._found))
        if here and seconds is not None:
            # Of this machine's own Python: nothing will be missing, and every submission would say so.
            said = [each for each in said if each.severity != "hint"]
        if not here:
            said += _differs(str(plan.get("submittedDocument") or ""), self._has.version)
        return self._found, said

    def _run(self) -> None:
        try:
            has = environments.ask(self._python)
            if has is not None:
                self._found = self._look(has)
                self._has = has
        except Exception:  # a hint that fails is no hint
            if not sys.is_finalizing():
                self._has = None


def _differs(document: str, version: str) -> list[Problem]:
    """Warn of an image whose Python is another than that of the kernel."""
    kernel = ".".join(version.split(".")[:2])
    images = {image: of for image, of in _IMAGE.findall(document) if of != kernel}
    return [
        Problem(
            "warning",
            "python-differs",
            f"Image `{image}` has Python {of}, and the code was written with {kernel}.",
            "/prerequisites",
            hint=f"Choose an image with Python {kernel}, or see that the code runs on both.",
        )
        for image, of in images.items()
    ]
