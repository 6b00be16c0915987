"""Objects that live only in the kernel travel with a script (``--carry``), in the safest format each has.

Plain values as JSON, arrays of numbers as ``.npy`` and ``.npz`` (never pickled), frames as Parquet where that
gives the same frame back, tensors as PyTorch saves weights. All others by cloudpickle, with the versions that
the task must have; :mod:`paicarried` checks them there.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

from paijupyter.errors import Problem, UsageProblem

FOLDER = "carried"
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Carried:
    """Objects ready to travel.

    Attributes:
        files: their files, by path below the folder of the script.
        told: of each object its name, type, size in bytes and format.
        requirements: what the task needs to load them.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    told: list[tuple[str, str, int, str]] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)


def carry(names: Sequence[str], namespace: Mapping[str, Any]) -> Carried:
    """Write objects down.

    Args:
        names: which; a comma may stand between.
        namespace: the kernel's names.

    Raises:
        UsageProblem: some cannot travel; it says of each why.
    """
    found, index, problems = Carried(), dict[str, Any](), list[Problem]()
    for name in dict.fromkeys(part.strip() for text in names for part in text.split(",") if part.strip()):
        try:
            if name not in namespace:
                raise UsageProblem("the kernel has no such name", "Run the cell that makes it first.")
            value = namespace[name]
            kind, content = _written(value)
        except UsageProblem as error:
            message = f"Object `{name}` cannot be carried: {error.message}."
            problems.append(Problem("error", "not-carried", message, hint=error.hint))
            continue
        file = f"{name}.{_ENDINGS[kind]}"
        index[name] = {"file": file, "format": kind, "type": _type(value), "versions": _versions(value, kind)}
        found.files[f"{FOLDER}/{file}"] = content
        found.told.append((name, _type(value), len(content), kind))
        if kind == "pickle" and not found.requirements:
            found.requirements.append(f"cloudpickle=={import_module('cloudpickle').__version__}")
    if problems:
        raise UsageProblem(" ".join(each.message for each in problems), problems[0].hint, problems)
    if index:
        found.files[f"{FOLDER}/index.json"] = json.dumps(index, indent=1).encode()
    return found


_ENDINGS = {"json": "json", "npy": "npy", "npz": "npz", "parquet": "parquet", "torch": "pt", "pickle": "pkl"}


def _written(value: Any) -> tuple[str, bytes]:
    """Return the format and the content; the first format that gives the same value back."""
    for kind, write in _SAFE:
        content = write(value)
        if content is not None:
            return kind, content
    return "pickle", _pickled(value)


def _as_json(value: Any) -> bytes | None:
    return json.dumps(value).encode() if _is_json(value, _DEEPEST) else None


def _is_json(value: Any, deep: int) -> bool:
    """Say whether JSON gives exactly this value back; a tuple would become a list."""
    kind = type(value)
    if value is None or kind in (bool, int, str, float):
        return True
    if deep == 0:
        return False
    if kind is list:
        return all(_is_json(each, deep - 1) for each in value)
    return kind is dict and all(type(key) is str and _is_json(each, deep - 1) for key, each in value.items())


def _as_array(value: Any) -> bytes | None:
    numpy = _loaded("numpy")
    if (
        numpy is None
        or not isinstance(value, (numpy.ndarray, numpy.generic))
        or not _is_safe_array(numpy, value)
    ):
        return None
    stream = io.BytesIO()
    numpy.save(stream, value, allow_pickle=False)
    return stream.getvalue()


def _as_arrays(value: Any) -> bytes | None:
    numpy = _loaded("numpy")
    if numpy is None or type(value) is not dict or not value:
        return None
    if not all(type(key) is str and "/" not in key and key != "file" for key in value):
        return None
    if not all(_is_safe_array(numpy, each) for each in value.values()):
        return None
    stream = io.BytesIO()
    numpy.savez(stream, **value)
    return stream.getvalue()


def _is_safe_array(numpy: ModuleType, value: Any) -> bool:
    plain = type(value) is numpy.ndarray or isinstance(value, numpy.generic)
    return plain and not value.dtype.hasobject


def _as_parquet(value: Any) -> bytes | None:
    pandas = _loaded("pandas")
    if pandas is None or type(value) is not pandas.DataFrame:
        return None
    stream = io.BytesIO()
    try:
        value.to_parquet(stream)
        stream.seek(0)
        same = pandas.read_parquet(stream)
        pandas.testing.assert_frame_equal(same, value)
    except (
        Exception
    ):  # No engine for it here, or a frame that it does not give back: then it is no format for it.
        return None
    return stream.getvalue()


def _as_tensors(value: Any) -> bytes | None:
    torch = _loaded("torch")
    if torch is None or not _is_tensors(torch, value):
        return None
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def _is_tensors(torch: ModuleType, value: Any) -> bool:
    if type(value) is torch.Tensor:
        return True
    named = isinstance(value, dict) and bool(value)
    return named and all(type(key) is str and type(each) is torch.Tensor for key, each in value.items())


_SAFE: tuple[tuple[str, Callable[[Any], bytes | None]], ...] = (
    ("json", _as_json),
    ("npy", _as_array),
    ("npz", _as_arrays),
    ("parquet", _as_parquet),
    ("torch", _as_tensors),
)


def _pickled(value: Any) -> bytes:
    if isinstance(value, ModuleType):
        raise UsageProblem("it is a module", "Import it in a cell.")
    try:
        cloudpickle = import_module("cloudpickle")
    except ImportError:
        raise UsageProblem(
            f"a {_type(value)} needs cloudpickle, which this kernel does not have",
            "Install it: %pip install cloudpickle",
        ) from None
    try:
        content: bytes = cloudpickle.dumps(value)
    except Exception as error:  # Whatever the object raises when it is pickled.
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise UsageProblem(
            f"a {_type(value)} cannot be pickled ({said})", "Make it in a cell instead."
        ) from error
    return content


def _versions(value: Any, kind: str) -> dict[str, str]:
    """Return the versions that the task is held to: Python, cloudpickle, the library of the object."""
    if kind != "pickle":
        return {}
    found = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}"}
    found["cloudpickle"] = str(import_module("cloudpickle").__version__)
    library = type(value).__module__.partition(".")[0]
    version = getattr(sys.modules.get(library), "__version__", None)
    if library not in ("builtins", "__main__") and isinstance(version, str):
        found[library] = version
    return found


def _type(value: Any) -> str:
    return type(value).__name__


def _loaded(module: str) -> Any:
    """Return a module if the kernel has it loaded: else no object can be of it."""
    return sys.modules.get(module)
