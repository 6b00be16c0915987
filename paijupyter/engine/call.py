"""One request, as the functions of the routes see it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from paijupyter.engine import shapes
from paijupyter.engine.route import Others, Parameter
from paijupyter.errors import UsageProblem

if TYPE_CHECKING:
    from paijupyter.engine.manifests import PendingManifests
    from paijupyter.engine.service import Service
    from paijupyter.engine.streams import Sender

_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True)
class Call:
    """One request.

    Attributes:
        service: the job service.
        manifests: manifests that were posted and whose bytes may follow.
        engine: facts of this engine: ``pid``, ``startedAt``, ``host``.
        path: parameters of the path.
        query: parameters of the query, typed; those not given are absent.
        body: the JSON body, checked against the route's schema; None if the route takes none.
        headers: the request's headers.
        chunks: the bytes of an upload, for a thread.
        sender: sends bodies that are not one JSON value.
        end_engine: asks the engine to hand over.
    """

    service: Service
    manifests: PendingManifests
    engine: Mapping[str, Any]
    path: Mapping[str, str]
    query: Mapping[str, Any]
    headers: Mapping[str, str]
    sender: Sender
    end_engine: Callable[[], None]
    body: Any = None
    chunks: Iterator[bytes] = field(default_factory=lambda: iter(()))


def parse_body(raw: bytes, schema: Mapping[str, Any]) -> Any:
    """Read a JSON body; none at all means an empty object.

    Raises:
        UsageProblem: if it is not JSON, or not of the shape.
    """
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant) if raw.strip() else {}
        if _HALF_CHARACTER.search(raw):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise UsageProblem("The request's JSON is nested too deeply.") from None
    except ValueError as error:
        raise UsageProblem(f"The request's body is not JSON: {error}.") from None
    shapes.require(schema, value)
    return value


def parse_query(
    given: Mapping[str, list[bytes]], parameters: tuple[Parameter, ...], others: Others = "refused"
) -> dict[str, Any]:
    """Read the query by the route's table.

    Raises:
        UsageProblem: for a repeated parameter, an unknown one unless those are ignored, or a value that its
            schema does not allow.
    """
    known = {parameter.name: parameter for parameter in parameters}
    values: dict[str, Any] = {}
    for name, texts in given.items():
        if name not in known and others == "ignored":
            continue
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise UsageProblem(f"The parameter `{name}` is not known here.", f"Known are: {allowed}.")
        if len(texts) > 1:
            raise UsageProblem(f"The parameter `{name}` is given {len(texts)} times.")
        values[name] = _value(known[name], texts[0])
    return values


def parse_path(names: tuple[str, ...], given: tuple[str, ...]) -> dict[str, str]:
    """Read the path's parameters, decoded already.

    Raises:
        UsageProblem: if one is not text.
    """
    return {name: _checked(name, text) for name, text in zip(names, given, strict=True)}


def _value(parameter: Parameter, raw: bytes) -> Any:
    text = _text(parameter.name, raw)
    schema = parameter.schema
    value: Any = text
    if schema.get("type") == "integer":
        if not re.fullmatch(r"-?[0-9]{1,17}", text):
            raise UsageProblem(f"The parameter `{parameter.name}` must be a whole number, not `{text}`.")
        value = int(text)
    elif schema.get("type") == "boolean":
        if text not in {"0", "1", "true", "false"}:
            raise UsageProblem(f"The parameter `{parameter.name}` must be 1 or 0, not `{text}`.")
        value = text in {"1", "true"}
    for problem in shapes.mismatches(schema, value, f"/{parameter.name}"):
        raise UsageProblem(f"The request is not valid: {problem.message}")
    return value


def _text(name: str, raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageProblem(f"The parameter `{name}` is not UTF-8 text.") from None
    return _checked(name, text)


def _checked(name: str, text: str) -> str:
    if _CONTROL.search(text):
        raise UsageProblem(f"The parameter `{name}` has a control character.")
    return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
