"""Make the pictures of the documentation from those that the browser tests have left (``make test-browser``).

Usage: python docs/pictures.py [NAME…]; without names all of them. The shot `form-light` of a test becomes
`_static/lab-form-light.png`: of few colours, so that the repository stays small. Pillow comes with
matplotlib.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
SHOTS = HERE.parent / "tests" / "browser" / "screenshots"
LARGEST = 60_000  # bytes
COLOURS = (128, 64, 32)
# Name of the picture: the shot that it is made of.
PICTURES = {
    "lab-cards-light": "cards-running-failed-light",
    "lab-cards-dark": "cards-running-failed-dark",
    "lab-form-light": "form-light",
    "lab-form-dark": "form-dark",
    "lab-jobs-light": "groups-light",
    "lab-jobs-dark": "side-bar-dark",
    "lab-log-light": "log-merged-light",
    "lab-log-dark": "log-one-dark",
}


def main(names: list[str]) -> None:
    """Make those whose shot is there."""
    for name in names or PICTURES:
        source = SHOTS / f"{PICTURES[name]}.png"
        target = HERE / "_static" / f"{name}.png"
        if source.exists():
            print(f"{target.name}: {compress(source, target)} bytes")
        else:
            print(f"{target.name}: there is no {source.name}; run make test-browser")


def compress(source: Path, target: Path) -> int:
    """Write a picture with as many colours as its size allows; return its size."""
    with Image.open(source) as image:
        whole = image.convert("RGB")
    for count in COLOURS:
        whole.quantize(count, dither=Image.Dither.NONE).save(target, optimize=True)
        if target.stat().st_size < LARGEST:
            break
    return target.stat().st_size


if __name__ == "__main__":
    main(sys.argv[1:])
