"""The job document: read, checked, rendered, written, edited; and the small parsers around it.

Pure: no file is read and no process started here. Names load lazily, so that a surface which only parses an
option imports neither YAML nor pydantic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paijupyter.protocol.build import JobOptions as JobOptions
    from paijupyter.protocol.build import build_document as build_document
    from paijupyter.protocol.checking import check as check
    from paijupyter.protocol.completion import policies as policies
    from paijupyter.protocol.deciding import Counts as Counts
    from paijupyter.protocol.deciding import Policy as Policy
    from paijupyter.protocol.deciding import Verdict as Verdict
    from paijupyter.protocol.deciding import decide as decide
    from paijupyter.protocol.document import Document as Document
    from paijupyter.protocol.document import read as read
    from paijupyter.protocol.editing import edit as edit
    from paijupyter.protocol.editing import edit_mapping as edit_mapping
    from paijupyter.protocol.fields import FIELDS as FIELDS
    from paijupyter.protocol.fields import Field as Field
    from paijupyter.protocol.names import converted as converted
    from paijupyter.protocol.names import short_name as short_name
    from paijupyter.protocol.names import split_suffix as split_suffix
    from paijupyter.protocol.names import split_task_key as split_task_key
    from paijupyter.protocol.names import task_key as task_key
    from paijupyter.protocol.names import with_suffix as with_suffix
    from paijupyter.protocol.parameters import parse_env as parse_env
    from paijupyter.protocol.parameters import parse_parameter as parse_parameter
    from paijupyter.protocol.quantities import format_duration as format_duration
    from paijupyter.protocol.quantities import format_memory as format_memory
    from paijupyter.protocol.quantities import parse_duration as parse_duration
    from paijupyter.protocol.quantities import parse_memory as parse_memory
    from paijupyter.protocol.rendering import render_commands as render_commands
    from paijupyter.protocol.roles import RoleSpec as RoleSpec
    from paijupyter.protocol.roles import parse_role as parse_role
    from paijupyter.protocol.secrets import SecretReference as SecretReference
    from paijupyter.protocol.secrets import parse_reference as parse_reference
    from paijupyter.protocol.secrets import parse_secret as parse_secret
    from paijupyter.protocol.writing import write as write

_HOMES = {
    "build": ("JobOptions", "build_document"),
    "checking": ("check",),
    "completion": ("policies",),
    "deciding": ("Counts", "Policy", "Verdict", "decide"),
    "document": ("Document", "read"),
    "editing": ("edit", "edit_mapping"),
    "fields": ("FIELDS", "Field"),
    "names": ("converted", "short_name", "split_suffix", "split_task_key", "task_key", "with_suffix"),
    "parameters": ("parse_env", "parse_parameter"),
    "quantities": ("format_duration", "format_memory", "parse_duration", "parse_memory"),
    "rendering": ("render_commands",),
    "roles": ("RoleSpec", "parse_role"),
    "secrets": ("SecretReference", "parse_reference", "parse_secret"),
    "writing": ("write",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
