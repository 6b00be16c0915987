"""O18: data of a real Hadoop file system, through fsspec in the engine."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.hadoop_server import Hadoop

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]
NOISE = hashlib.shake_256(b"noise").digest(9_000_000)


@pytest.fixture
def store(hadoop: Hadoop) -> str:
    """The address of a folder with two files, and one that is nobody else's."""
    pytest.importorskip("requests", reason="the extra `data` is not installed")
    if "data" not in hadoop.names("/"):
        hadoop.write("/data/sets/a.bin", NOISE)
        hadoop.write("/data/sets/deep/ä b #1+%.txt", b"from below\n")
        hadoop.write("/data/private.bin", b"private", permission="600")
    return hadoop.address.replace("http://", "webhdfs://ann@") + "/data"


@pytest.mark.asyncio
async def test_a_folder_and_a_file_with_its_checksum(bench: Any, store: str) -> None:
    """O18: fetched once for any number of jobs; names as they are there."""
    digest = hashlib.sha256(NOISE).hexdigest()
    items = [
        {"name": "m", "uri": f"{store}/sets"},
        {"name": "o", "uri": f"{store}/sets/a.bin", "sha256": digest},
    ]
    command = (
        'sha256sum "$PAI_DATA_M/sets/a.bin" "$PAI_DATA_O/a.bin"; cat "$PAI_DATA_M/sets/deep/ä b #1+%.txt"'
    )
    view = await bench.final((await bench.submit(command, items))["id"])
    assert view["state"] == "succeeded", view
    assert view["log"].count(digest) == 2
    assert "from below" in view["log"]


@pytest.mark.asyncio
async def test_what_cannot_be_had(bench: Any, store: str) -> None:
    for item, words in (
        ({"name": "m", "uri": f"{store}/none"}, "does not exist"),
        ({"name": "m", "uri": f"{store}/private.bin"}, "is not given to us by its store"),
        ({"name": "m", "uri": f"{store}/sets/a.bin", "sha256": "0" * 64}, "has the sha256"),
    ):
        view = await bench.final((await bench.submit("true", [item]))["id"])
        assert (view["state"], view["reason"]) == ("failed", "data"), view
        assert words in view["message"]
