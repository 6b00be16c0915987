"""O18, P9: data in a private bucket of a real S3 server (rclone), through fsspec and s3fs in the engine."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from tests.resting import holders
from tests.s3_server import ID, KEY
from tests.s3_server import S3Server as Server
from tests.services import rclone

pytestmark = pytest.mark.services
OPENED = {"name": "s", "secret": "STORE"}


@pytest.fixture
def s3(tmp_path: Path, until: Any, unused_tcp_port: int) -> Iterator[Server]:
    pytest.importorskip("s3fs", reason="the extra `s3` is not installed")
    tool = rclone()
    if tool is None:
        pytest.skip("there is no rclone, and none was built: make test-services")
    (tmp_path / "s3/sets/day/deep").mkdir(parents=True)
    server = Server(tool, tmp_path / "s3", unused_tcp_port, tmp_path / "rclone.log")
    server.start(until)
    yield server
    server.stop()


@pytest.fixture
def store(s3: Server, profile: Any) -> Server:
    """The server, with its address in the profile."""
    profile(stores={"s3": {"endpoint_url": s3.address}})
    return s3


def opened(value: str = f"{ID}:{KEY}") -> dict[str, Any]:
    return {"secrets": {"STORE": {"value": value, "reference": "ask"}}}


@pytest.mark.asyncio
async def test_a_private_bucket_is_opened_by_a_secret_of_the_job(bench: Any, store: Server) -> None:
    """A prefix with all below it, fetched once. The secret is where secrets are, only."""
    (store.root / "sets/day/a.bin").write_bytes(os.urandom(300_000))
    (store.root / "sets/day/deep/b.txt").write_text("from below\n")
    command = 'sha256sum "$PAI_DATA_S/day/a.bin"; cat "$PAI_DATA_S/day/deep/b.txt"'
    for _ in range(2):
        view = await bench.submit(command, [{**OPENED, "uri": "s3://sets/day"}], **opened())
        view = await bench.final(view["id"])
        assert view["state"] == "succeeded", view["message"]
        assert hashlib.sha256((store.root / "sets/day/a.bin").read_bytes()).hexdigest() in view["log"]
        assert "from below" in view["log"]
    assert store.reads("a.bin") == 1
    assert KEY not in json.dumps(view)
    assert holders(KEY, paths.data_dir()) == []


@pytest.mark.parametrize(
    ("given", "uri", "words"),
    [
        (f"{ID}:wrong-key-of-somebody", "s3://sets/a.bin", "is not given to us by its store"),
        (f"nobody:{KEY}", "s3://sets/a.bin", "is not given to us by its store"),
        (f"{ID}:{KEY}", "s3://sets/none.bin", "does not exist"),
        (f"{ID}:{KEY}", "s3://none/a.bin", "does not exist"),
        ("no-colon-in-it", "s3://sets/a.bin", "has not the form ID:KEY"),
        ('{"key": "x"', "s3://sets/a.bin", "is no JSON object"),
    ],
)
@pytest.mark.asyncio
async def test_what_does_not_open_it_is_said_without_the_key(
    bench: Any, store: Server, given: str, uri: str, words: str
) -> None:
    (store.root / "sets/a.bin").write_bytes(b"a")
    view = await bench.final((await bench.submit("true", [{**OPENED, "uri": uri}], **opened(given)))["id"])
    assert (view["state"], view["reason"]) == ("failed", "data")
    assert words in view["message"], view["message"]
    said = json.dumps(view)
    assert not any(part in said for part in (KEY, "wrong-key-of-somebody", "no-colon-in-it"))


@pytest.mark.asyncio
async def test_without_a_key_the_bucket_stays_closed(bench: Any, s3: Server, profile: Any) -> None:
    (s3.root / "sets/a.bin").write_bytes(b"a")
    profile(stores={"s3": {"endpoint_url": s3.address, "anon": True}})
    view = await bench.final((await bench.submit("true", [{"name": "s", "uri": "s3://sets/a.bin"}]))["id"])
    assert (view["state"], view["reason"]) == ("failed", "data")
    assert "is not given to us by its store" in view["message"]


@pytest.mark.asyncio
async def test_the_stores_own_files_open_it_too(bench: Any, store: Server) -> None:
    """As `aws` does it: ~/.aws/credentials of the engine's user."""
    (store.root / "sets/a.txt").write_text("by the file\n")
    home = Path(os.environ["HOME"])
    (home / ".aws").mkdir()
    lines = ["[default]", f"aws_access_key_id={ID}", f"aws_secret_access_key={KEY}"]
    (home / ".aws/credentials").write_text("\n".join(lines))
    view = await bench.submit('cat "$PAI_DATA_S/a.txt"', [{"name": "s", "uri": "s3://sets/a.txt"}])
    assert "by the file" in (await bench.final(view["id"]))["log"]


@pytest.mark.asyncio
async def test_a_large_object_of_many_parts_goes_on_where_it_broke_off(
    bench: Any, store: Server, kit: Any, until: Any
) -> None:
    """150 MB in parts; what fetches is killed in the middle; the next job brings the rest only."""
    import s3fs

    content = os.urandom(1 << 20) * 150
    client = s3fs.S3FileSystem(key=ID, secret=KEY, endpoint_url=store.address, skip_instance_cache=True)
    with client.open("sets/large.bin", "wb", block_size=16 << 20) as out:
        out.write(content)
    assert (store.root / "sets/large.bin").stat().st_size == len(content)
    store.start(until, "--bwlimit", "20M")
    source = {**OPENED, "uri": "s3://sets/large.bin"}
    view = await bench.submit('sha256sum "$PAI_DATA_S/large.bin"', [source], **opened())
    draft = await kit.eventually(lambda: _draft(at_least=1 << 20))
    os.kill(_fetcher(bench), signal.SIGKILL)
    failed = await bench.final(view["id"])
    assert failed["reason"] == "data"
    # The beginning is marked: if it comes back, it was not fetched again.
    with draft.open("r+b") as file:
        file.write(b"marked")
    store.start(until)
    view = await bench.submit('sha256sum "$PAI_DATA_S/large.bin"', [source], **opened())
    done = await bench.final(view["id"])
    assert done["state"] == "succeeded", done
    assert hashlib.sha256(b"marked" + content[6:]).hexdigest() in done["log"]


@pytest.mark.asyncio
async def test_a_checksum_is_held_against_what_came(bench: Any, store: Server) -> None:
    (store.root / "sets/a.bin").write_bytes(b"a" * 1000)
    good = {**OPENED, "uri": "s3://sets/a.bin", "sha256": hashlib.sha256(b"a" * 1000).hexdigest()}
    for digest, state in ((good["sha256"], "succeeded"), ("0" * 64, "failed")):
        view = await bench.submit('wc -c "$PAI_DATA_S/a.bin"', [{**good, "sha256": digest}], **opened())
        final = await bench.final(view["id"])
        assert final["state"] == state
    assert "has the sha256" in final["message"]
    # What was fetched once by its checksum needs no store, and no key.
    store.stop()
    again = await bench.submit('wc -c "$PAI_DATA_S/a.bin"', [good], **opened("x:y"))
    assert "1000" in (await bench.final(again["id"]))["log"]


def _draft(at_least: int) -> Path | None:
    found = list((paths.data_dir() / "datasets").glob("*.part/content/.large.bin.part"))
    return found[0] if found and found[0].stat().st_size >= at_least else None


def _fetcher(bench: Any) -> int:
    """Return the process that fetches for this test's engine."""
    me = str(os.getpid())
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
            words = (stat.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == me and b"paijupyter.data" in words:
            assert KEY.encode() not in b" ".join(words)
            return int(stat.parent.name)
    raise AssertionError("nothing fetches")
