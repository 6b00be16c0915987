"""Execute a notebook without a browser and print what its cells tagged ``show`` printed.

Usage: python notebooks/run.py notebooks/quickstart.ipynb
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def shown_text(notebook: nbformat.NotebookNode) -> str:
    """Return the text outputs of the cells tagged ``show``: streams as printed, cards as plain text."""
    parts = []
    for cell in notebook.cells:
        if "show" in cell.metadata.get("tags", ()):
            for output in cell.outputs:
                text = (
                    output.text
                    if output.output_type == "stream"
                    else output.get("data", {}).get("text/plain", "")
                )
                parts.append(text.rstrip("\n"))
    return "\n".join(parts)


def main(path: Path) -> None:
    """Execute the notebook in its own folder; the file itself stays as it is."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        resources={"metadata": {"path": str(path.parent)}},
        store_widget_state=False,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    client.execute()
    print(shown_text(notebook))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
