"""Loads objects that a notebook's kernel had when the job was submitted (``--carry``), each by its format."""

import contextlib
import importlib
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Sequence


def objects(names: "Sequence[str]" = ()) -> "Dict[str, Any]":
    """Return objects of the kernel by name: all of them, or those that are named.

    Raises:
        RuntimeError: this Python cannot read one; it says what differs.
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "carried")
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as stream:
        index = json.load(stream)
    return {
        name: _loaded(name, entry, os.path.join(folder, entry["file"]))
        for name, entry in index.items()
        if not names or name in names
    }


def _loaded(name: str, entry: "Dict[str, Any]", path: str) -> "Any":
    kind = entry["format"]
    try:
        if kind == "json":
            with open(path, encoding="utf-8") as stream:
                return json.load(stream)
        if kind in ("npy", "npz"):
            import numpy

            found = numpy.load(path, allow_pickle=False)
            return {key: found[key] for key in found.files} if kind == "npz" else found[()]
        if kind == "parquet":
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

            return pandas.read_parquet(path)
        if kind == "torch":
            import torch  # type: ignore[import-not-found,unused-ignore]

            return torch.load(path, weights_only=True)
    except ImportError as error:
        raise RuntimeError("Object `%s` was carried as %s: %s here." % (name, kind, error)) from None
    return _unpickled(name, entry["versions"], path)


def _unpickled(name: str, versions: "Dict[str, str]", path: str) -> "Any":
    """Load a pickle after looking whether it was made by the same Python and the same cloudpickle."""
    made, here = versions["python"], "%d.%d" % sys.version_info[:2]
    hint = "Let the job use that version (--image), or carry plain values or arrays, which any version reads."
    if made != here:
        raise RuntimeError(
            "Object `%s` was pickled by Python %s, and this task has Python %s. %s" % (name, made, here, hint)
        )
    try:
        import cloudpickle  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise RuntimeError(
            "Object `%s` was pickled by cloudpickle %s, which this task does not have. "
            "Add it to requirements.txt." % (name, versions["cloudpickle"])
        ) from None
    if cloudpickle.__version__ != versions["cloudpickle"]:
        raise RuntimeError(
            "Object `%s` was pickled by cloudpickle %s, and this task has %s. Pin it in requirements.txt."
            % (name, versions["cloudpickle"], cloudpickle.__version__)
        )
    for module, version in versions.items():
        there = getattr(sys.modules.get(module) or _imported(module), "__version__", version)
        if module not in ("python", "cloudpickle") and there != version:
            sys.stderr.write(
                "Object `%s` was made with %s %s; this task has %s.\n" % (name, module, version, there)
            )
    with open(path, "rb") as stream:
        return cloudpickle.load(stream)


def _imported(module: str) -> "Any":
    with contextlib.suppress(ImportError):
        return importlib.import_module(module)
    return None
