"""The manifest names the package: canonical, sorted, safe to unpack (P11, P18)."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import PaiJupyterError
from paijupyter.package import SMALL, Entry, Manifest

SHA = hashlib.sha256(b"").hexdigest()
part = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="/\0"), min_size=1, max_size=8
).filter(lambda text: text not in (".", ".."))
entries = st.lists(
    st.builds(
        Entry,
        part,
        st.sampled_from(["100644", "100755", "120000"]),
        st.integers(0, SMALL - 1),
        st.binary(min_size=32, max_size=32).map(bytes.hex),
    ),
    unique_by=lambda entry: entry.path,
)


@given(entries)
def test_canonical_json_and_back(rows: list[Entry]) -> None:
    manifest = Manifest(rows)
    plain = {"schema": 1, "files": [list(row) for row in sorted(rows, key=lambda row: row.path.encode())]}
    assert manifest.data == json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    assert manifest.sha256 == hashlib.sha256(manifest.data).hexdigest()
    assert Manifest.from_bytes(manifest.data) == manifest
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))).sha256 == manifest.sha256
    recalled = Manifest.recalled(manifest.data, manifest.summary)
    assert recalled == manifest and recalled.sha256 == manifest.sha256


def test_known_hash() -> None:
    """The format is a contract with every store and boot file: this hash never changes."""
    manifest = Manifest([Entry("b", "100755", 0, SHA), Entry("a é", "100644", 0, SHA)])
    assert manifest.data.decode() == (
        f'{{"schema":1,"files":[["a é","100644",0,"{SHA}"],["b","100755",0,"{SHA}"]]}}'
    )
    assert manifest.sha256 == "bd21a3d606f275c962dcaf135a605f4bc353de160e62aa06f5613a0de27d5040"


def test_small_and_large_files() -> None:
    manifest = Manifest(
        [
            Entry("a", "100644", SMALL - 1, SHA),
            Entry("b", "100644", SMALL, "b" * 64),
            Entry("c", "100755", SMALL, "b" * 64),
            Entry("d", "120000", 5, SHA),
        ]
    )
    assert [entry.path for entry in manifest.pack] == ["a", "d"]
    assert manifest.pack_size == SMALL + 4
    assert manifest.blobs == {"b" * 64: SMALL}
    assert (manifest.files, manifest.size) == (4, 3 * SMALL + 4)


def test_changes() -> None:
    """P18: what differs between two submissions of a folder."""
    old = Manifest([Entry("a", "100644", 0, SHA), Entry("b", "100644", 0, SHA), Entry("c", "100644", 0, SHA)])
    new = Manifest([Entry("a", "100644", 0, SHA), Entry("b", "100755", 0, SHA), Entry("d", "100644", 0, SHA)])
    changes = new.changes_since(old)
    assert (changes.added, changes.changed, changes.removed) == (("d",), ("b",), ("c",))


@pytest.mark.parametrize(
    "row",
    [
        ["../x", "100644", 0, SHA],
        ["a/../../x", "100644", 0, SHA],
        ["/etc/passwd", "100644", 0, SHA],
        ["a//b", "100644", 0, SHA],
        ["", "100644", 0, SHA],
        ["a/", "100644", 0, SHA],
        ["a\0b", "100644", 0, SHA],
        ["\udc80", "100644", 0, SHA],
        [1, "100644", 0, SHA],
        ["a", "100777", 0, SHA],
        ["a", ["100644"], 0, SHA],
        ["a", "100644", -1, SHA],
        ["a", "100644", True, SHA],
        ["a", "100644", 1.0, SHA],
        ["a", "120000", SMALL, SHA],
        ["a", "100644", 0, SHA.upper()],
        ["a", "100644", 0, SHA + "\n"],
        ["a", "100644", 0, None],
        ["a", "100644", 0],
        {"path": "a"},
    ],
)
def test_bad_rows_are_refused(row: object) -> None:
    with pytest.raises(PaiJupyterError, match="Manifest cannot be used") as error:
        Manifest.from_json({"schema": 1, "files": [row]})
    assert error.value.code == "bad-manifest"
    assert error.value.status == 422


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"schema":2,"files":[]}', b'{"schema":1}', b"[" * 100_000, b"\xff"]
)
def test_bad_documents_are_refused(data: bytes) -> None:
    with pytest.raises(PaiJupyterError, match="Manifest cannot be used"):
        Manifest.from_bytes(data)


@pytest.mark.parametrize("paths", [["a", "a"], ["a", "a/b"], ["a/b", "a/b/c/d"]])
def test_a_path_is_one_thing(paths: list[str]) -> None:
    """A file below a link would be written to wherever the link leads."""
    rows = [[path, "120000" if path == "a" else "100644", 0, SHA] for path in paths]
    with pytest.raises(PaiJupyterError, match="Manifest cannot be used"):
        Manifest.from_json({"schema": 1, "files": rows})
