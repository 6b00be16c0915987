"""The modules that a user's script may import in every task: ``pai_tasks``."""

import json
import os

from .files import write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAME = "library.json"


def write(folder: str) -> None:
    """Write them below a new folder, from the archive that this module is in."""
    loader: "Any" = __spec__.loader  # of the archive
    archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    texts = json.loads(loader.get_data(os.path.join(archive, _NAME)).decode("ascii"))
    packages = {name.split("/")[0] for name in texts}
    for path in [folder, *[os.path.join(folder, package) for package in packages]]:
        os.mkdir(path, 0o700)
    for name, text in texts.items():
        write_private(os.path.join(folder, name), text.encode("utf-8"))
