"""What of the front end's bundle JupyterLab waits for when it starts."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path


def entry_files(extension: Path) -> list[Path]:
    """Return the scripts of a built extension that a start of JupyterLab loads before it is restored.

    These are the container that its ``package.json`` names and the chunks of the plug-in in the container.
    """
    build = json.loads((extension / "package.json").read_text())["jupyterlab"]["_build"]
    assert "style" not in build, "styles come with what they are for, not with the start"
    container = extension / build["load"]
    exposed = re.search(r'"\./extension":\(\)=>([^}]*?)\.then\(', container.read_text())
    assert exposed, "the container exposes the plug-in in another way than it did"
    chunks = re.findall(r"\.e\((\d+)\)", exposed[1])
    found = [next(container.parent.glob(f"{chunk}.*.js")) for chunk in chunks]
    assert found
    return [container, *found]


def gzipped(files: list[Path]) -> int:
    """Return how many bytes files are on the way to a browser."""
    return sum(len(gzip.compress(each.read_bytes(), 9)) for each in files)
