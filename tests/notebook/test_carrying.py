"""Objects of the kernel come back as they were, in the safest format, or one sentence says why not."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paijupyter.errors import UsageProblem
from paijupyter.notebook.carrying import carry
from paijupyter.notebook.exporting import LOADER, support


class Scaler:
    """Something that only a pickle can hold."""

    factor = 2.5


class Fake:
    """Stands for a module of another version."""

    __version__ = "0.0"


def back(folder: Path, files: dict[str, bytes]) -> dict[str, Any]:
    """Load what was carried, by the file that travels with a script."""
    for name, content in {**files, LOADER: support(LOADER)}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    spec = importlib.util.spec_from_file_location("paicarried", folder / LOADER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, Any] = module.objects()
    return found


def test_each_object_has_the_safest_format_that_gives_it_back(tmp_path: Path) -> None:
    names = {
        "plain": {"a": [1, 2.5, None, True, "é\n"]},
        "array": np.arange(6, dtype="float32").reshape(2, 3),
        "number": np.int64(7),
        "arrays": {"w": np.ones(3), "b": np.zeros((2, 2))},
        "pair": (1, 2),
        "scaler": Scaler(),
    }
    found = carry(["plain,array", "number", "arrays", "pair", "scaler"], names)
    assert [(name, kind) for name, _, _, kind in found.told] == [
        ("plain", "json"),
        ("array", "npy"),
        ("number", "npy"),
        ("arrays", "npz"),
        ("pair", "pickle"),
        ("scaler", "pickle"),
    ]
    assert all(size > 0 for _, _, size, _ in found.told)
    (requirement,) = found.requirements
    assert requirement.startswith("cloudpickle==")
    same = back(tmp_path, found.files)
    assert same["plain"] == names["plain"] and same["pair"] == (1, 2) and same["number"] == 7
    assert same["array"].dtype == np.float32 and (same["array"] == names["array"]).all()
    assert set(same["arrays"]) == {"w", "b"} and same["scaler"].factor == 2.5


def test_an_array_of_objects_is_never_saved_as_an_array() -> None:
    found = carry(["odd"], {"odd": np.array([{}, []], dtype=object)})
    assert found.told[0][3] == "pickle"


def test_what_cannot_travel_is_refused_with_why() -> None:
    with pytest.raises(UsageProblem) as caught:
        carry(["lock", "module", "ghost", "good"], {"lock": threading.Lock(), "module": json, "good": 1})
    lock, module, ghost = [problem.message for problem in caught.value.problems]
    assert lock.startswith("Object `lock` cannot be carried: a lock cannot be pickled")
    assert module == "Object `module` cannot be carried: it is a module."
    assert ghost == "Object `ghost` cannot be carried: the kernel has no such name."


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("python", "2.7", "was pickled by Python 2.7, and this task has Python"),
        ("cloudpickle", "0.1", "was pickled by cloudpickle 0.1, and this task has"),
    ],
)
def test_a_pickle_of_other_versions_is_not_loaded(tmp_path: Path, key: str, value: str, said: str) -> None:
    files = carry(["scaler"], {"scaler": Scaler()}).files
    index = json.loads(files["carried/index.json"])
    index["scaler"]["versions"][key] = value
    with pytest.raises(RuntimeError, match=said):
        back(tmp_path, {**files, "carried/index.json": json.dumps(index).encode()})


def test_another_version_of_the_library_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = carry(["pair"], {"pair": (1, 2)}).files
    index = json.loads(files["carried/index.json"])
    index["pair"]["versions"]["library_of_test"] = "9.9"
    monkeypatch.setitem(sys.modules, "library_of_test", Fake)
    back(tmp_path, {**files, "carried/index.json": json.dumps(index).encode()})
    assert "made with library_of_test 9.9; this task has 0.0" in capsys.readouterr().err
