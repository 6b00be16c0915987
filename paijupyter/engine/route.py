"""What one route is: the row that both the handlers and the OpenAPI document are made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from paijupyter.engine.call import Call

Schema = Mapping[str, Any]
Others = Literal["refused", "ignored"]
JSON = "application/json"
LINES = "application/x-ndjson"
TEXT = "text/plain"
YAML = "text/yaml"
BYTES = "application/octet-stream"
PROBLEM = "application/problem+json"
PLAIN_TEXT: Schema = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f]*$"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the path or the query."""

    name: str
    description: str
    schema: Schema = field(default_factory=lambda: PLAIN_TEXT)


@dataclass(frozen=True, slots=True)
class Answer:
    """One kind of good answer."""

    description: str
    schema: Schema | None = None
    media: str = JSON


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handler returns: a value to send as JSON, or text of another media type."""

    body: Any
    status: int = 200
    media: str = JSON


Handler = Callable[["Call"], Awaitable["Reply | None"]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path.

    Attributes:
        method: the HTTP method.
        path: the template, ``/v1/jobs/{ref}``; the last parameter may be ``{path}``, which takes slashes.
        handler: answers it; None as reply means that it has sent the answer itself.
        summary: one line for the OpenAPI document.
        answers: the good answers by status.
        query: the parameters of the query.
        others: what is done with parameters that are not among them.
        body: schema of a JSON body; None: it takes none.
        upload: the body is bytes, passed on while it arrives.
        problems: further statuses that come with a problem document.
        wakes: being asked keeps an idle engine from ending.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    handler: Handler
    summary: str
    answers: Mapping[int, Answer]
    query: tuple[Parameter, ...] = ()
    others: Others = "refused"
    body: Schema | None = None
    upload: bool = False
    problems: tuple[int, ...] = ()
    wakes: bool = True

    @property
    def name(self) -> str:
        """The operation's id, unique in the table."""
        return self.handler.__name__
