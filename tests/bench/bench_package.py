"""Taking a trainer package, beside ``tar | zstd -1`` (first) and a walk with ``stat`` (unchanged)."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from paijupyter.package import LocalStore, snapshot
from paijupyter.package.stat_cache import RACY_NS
from tests.bench.rows import Row, interleaved

FILES, SIZE = 10_000, 50_000


def run(repeats: int = 5) -> list[Row]:
    """Measure (ms) with 10,000 files of 500 MB, half of them text, all in the page cache."""
    with tempfile.TemporaryDirectory() as home:
        before = os.environ.get("PAIJUPYTER_DATA_DIR")
        os.environ["PAIJUPYTER_DATA_DIR"] = f"{home}/data"
        try:
            return _measure(Path(home), repeats)
        finally:
            del os.environ["PAIJUPYTER_DATA_DIR"]
            if before is not None:
                os.environ["PAIJUPYTER_DATA_DIR"] = before


def _measure(home: Path, repeats: int) -> list[Row]:
    tree, data, archive = home / "tree", home / "data", home / "tree.tar.zst"
    _make(tree)
    time.sleep(RACY_NS / 1e9 + 0.1)  # a file that was just written is not believed by any second look

    def first() -> float:
        shutil.rmtree(data, ignore_errors=True)
        os.sync()  # each pays for its own writing only
        return _ms(lambda: snapshot(tree, LocalStore(data)))

    def tar() -> float:
        archive.unlink(missing_ok=True)
        os.sync()
        command = f"tar -C '{home}' -cf - tree | zstd -q -1 -o '{archive}'"
        return _ms(lambda: subprocess.run(["bash", "-c", command], check=True))

    ours, peer = interleaved(first, tar, repeats)

    def second() -> float:
        return _ms(lambda: snapshot(tree, LocalStore(data)))

    again, walk = interleaved(second, lambda: _ms(lambda: _walk(str(tree))), repeats * 4)
    return [
        Row(
            "package of 10,000 files, 500 MB, first time",
            ours, peer, "tar, zstd -1", "ms", "≤ 1.5 ×", ours <= 1.5 * peer,
        ),
        Row(
            "the same again, unchanged",
            again, walk, "scandir and stat", "ms", "≤ 3 ×, < 200 ms", again <= 3 * walk and again < 200,
        ),
    ]  # fmt: skip


def _make(tree: Path) -> None:
    source = random.Random(1)
    words = [source.randbytes(5).hex() for _ in range(5000)]
    for folder in range(100):
        place = tree / f"d{folder % 10}" / f"e{folder}"
        place.mkdir(parents=True)
        for number in range(FILES // 100):
            text = " ".join(source.choices(words, k=SIZE // 10)).encode()[:SIZE]
            (place / f"f{number}.txt").write_bytes(text if number % 2 else source.randbytes(SIZE))


def _walk(folder: str) -> int:
    number = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                number += _walk(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                number += 1
    return number


def _ms(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3
