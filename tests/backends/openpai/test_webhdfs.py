"""Packages by WebHDFS: what a file system refuses is said in its words; what can be helped is (P15, O15).

What the scripted one answers is what a real one did, to which test_hadoop.py does the same.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hdfs import Hdfs
from staging import store_package

from paijupyter.backends.base import Package, Place
from paijupyter.backends.openpai import webhdfs
from paijupyter.backends.openpai.settings import WebHdfs
from paijupyter.errors import PaiJupyterError

LARGE = hashlib.shake_256(b"noise").digest(9_000_000)  # more than any buffer on the way takes


@pytest.fixture
def package(place: Place) -> Package:
    return store_package(place, {"a.bin": LARGE})


@pytest.mark.parametrize("path", ["/plain", "/ä b #1+%"])
@pytest.mark.parametrize("old", [False, True], ids=["hadoop 3", "hadoop 2"])
def test_any_path(hdfs: Hdfs, package: Package, tmp_path: Path, path: str, old: bool) -> None:
    """In the answer of a name node a path stands unescaped; over what was left of an earlier try."""
    hdfs.old = old
    name = f"{path}/{package.sha256}.tar.gz"
    hdfs.files[name] = b"half"
    facts, _ = webhdfs.put(package, WebHdfs(hdfs.url, path, "ann"), tmp_path)
    assert hashlib.sha256(hdfs.files[name]).hexdigest() == facts.sha256
    assert set(hdfs.files) == {name, name.replace("tar.gz", "json")}


@pytest.mark.parametrize(
    ("refusals", "users", "words", "hint"),
    [
        ([], {"alice"}, "it answered 403: Permission denied: user=bob, access=WRITE.", "Name in"),
        (["SafeModeException"], set(), "it answered 403: Name node is in safe mode.", "Try again"),
    ],
)
def test_a_refusal_is_said_in_its_words(
    hdfs: Hdfs,
    package: Package,
    tmp_path: Path,
    refusals: list[str],
    users: set[str],
    words: str,
    hint: str,
) -> None:
    """O15, although the data node closes before it has read the content, which is a broken pipe here."""
    hdfs.refusals, hdfs.users = refusals, users
    with pytest.raises(PaiJupyterError) as caught:
        webhdfs.put(package, WebHdfs(hdfs.url, user="bob"), tmp_path)
    assert caught.value.code == "package-not-sent"
    assert caught.value.message.endswith(f"{hdfs.url}/paijupyter-packages: {words}")
    assert caught.value.hint.startswith(hint)


def test_data_nodes_that_are_gone_are_passed_by(hdfs: Hdfs, package: Package, tmp_path: Path) -> None:
    """A name node names them for ten minutes still, unless it is told not to."""
    hdfs.nodes = ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
    facts, _ = webhdfs.put(package, WebHdfs(hdfs.url, user="ann"), tmp_path)
    archive = hdfs.files[f"/paijupyter-packages/{package.sha256}.tar.gz"]
    assert hashlib.sha256(archive).hexdigest() == facts.sha256


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (["127.0.0.2"], "Failed to find datanode"),
        ([f"127.0.0.{number}" for number in range(2, 9)], "its data node 127.0.0.4:[0-9]+ did not take it"),
    ],
)
def test_all_data_nodes_are_gone(
    hdfs: Hdfs, package: Package, tmp_path: Path, nodes: list[str], words: str
) -> None:
    hdfs.nodes = nodes
    with pytest.raises(PaiJupyterError, match=words):
        webhdfs.put(package, WebHdfs(hdfs.url), tmp_path)
    assert hdfs.named == nodes[:3]
