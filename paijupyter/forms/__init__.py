"""A form of widgets for front ends that have no labextension of ours: VS Code, Colab, nbclassic.

The same fields as the form of JupyterLab, from the same table (``protocol/fields.py``). ipywidgets and
anywidget are the extra ``forms``; nothing here is imported before a form is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paijupyter.errors import MissingExtra

if TYPE_CHECKING:
    from paijupyter.forms.form import Form as Form

__all__ = ["Form", "is_installed"]


def __getattr__(name: str) -> Any:
    if name != "Form":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not is_installed():
        raise MissingExtra("forms", "A form of widgets")
    from paijupyter.forms.form import Form

    return Form


def is_installed() -> bool:
    """Say whether this kernel has the widgets."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("ipywidgets", "anywidget"))
