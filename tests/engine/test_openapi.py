"""The OpenAPI document is true: it has the routes that are there, and the engine keeps what it says."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from paijupyter import paths
from paijupyter.client.client import JobsClient
from paijupyter.engine import http
from paijupyter.engine.openapi import describe
from paijupyter.engine.routes import ROUTES
from paijupyter.errors import PaiJupyterError


def test_the_document_has_every_route_and_no_other():
    documented = {
        (method.upper(), path) for path, methods in describe(ROUTES)["paths"].items() for method in methods
    }
    assert documented == {(route.method, route.path) for route in ROUTES}
    assert len(ROUTES) == len(documented)


def test_the_handlers_have_every_path_of_the_document():
    rules = http.application(None, ROUTES).wildcard_router.rules
    for path in describe(ROUTES)["paths"]:
        concrete = re.sub(r"\{\w+\}", "x", path)
        first = next(rule for rule in rules if rule.matcher.regex.match(concrete))
        assert path in {route.path for route in first.target_kwargs["methods"].values()}, (
            "another path hides it"
        )


def test_the_engine_serves_the_document():
    assert JobsClient.connect().ask("GET", "/v1/openapi.json") == describe(ROUTES)


def test_a_patch_that_fits_no_document_is_no_request_of_a_wrong_form():
    for patch in ({"op": "R", "path": ""}, {"op": "remove", "path": "/nowhere"}):
        with pytest.raises(PaiJupyterError) as refused:
            JobsClient.connect().ask("POST", "/v1/document/edit", body={"text": "name: a", "patch": [patch]})
        assert refused.value.status == 422


def test_operation_ids_are_unique():
    ids = [
        operation["operationId"] for each in describe(ROUTES)["paths"].values() for operation in each.values()
    ]
    assert len(ids) == len(set(ids))


@pytest.fixture
def base_url() -> Iterator[str]:
    """Forward a TCP port of this host to the socket of a real engine, for as long as the test runs."""
    JobsClient.connect()
    loop = asyncio.new_event_loop()

    async def forward(reader, writer):
        above_reader, above_writer = await asyncio.open_unix_connection(str(paths.engine_socket()))
        await asyncio.gather(_copy(reader, above_writer), _copy(above_reader, writer))

    server = loop.run_until_complete(asyncio.start_server(forward, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def end() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(end(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def _document() -> dict:
    """Leave out what would do harm here: to end the engine, and to package any folder of this host."""
    document = describe(ROUTES)
    del document["paths"]["/v1/engine/handover"]
    content = document["paths"]["/v1/packages"]["post"]["requestBody"]["content"]["application/json"]
    content["schema"] = content["schema"]["anyOf"][0]
    for methods in document["paths"].values():
        for operation in methods.values():
            kept = [parameter for parameter in operation["parameters"] if parameter["name"] != "follow"]
            operation["parameters"] = kept
    return document


# What only the service can know to be wrong: a reference, a state, a manifest, a document.
_MEANING = ["2xx", 404, 409, 410, 413, 416, 422]
_CONFIG = {"checks": {"positive_data_acceptance": {"expected-statuses": _MEANING}}}
# Where one part of a request depends on another, or a text has a grammar of its own: 400 is right as well.
_RELATED = {
    "POST /v1/plan",
    "POST /v1/jobs",
    "GET /v1/jobs",
    "GET /v1/jobs/{ref}/logs",
    "GET /v1/jobs/{ref}/logs/search",
    "GET /v1/jobs/{ref}/logs/times",
    "POST /v1/groups/plan",
    "POST /v1/groups",
    "GET /v1/groups",
    "POST /v1/groups/{ref}/retry",
    "GET /paddle/v1/jobs",
    "POST /v1/document/notebook",
    "POST /v1/document/cells",
    "POST /openpai/api/v2/jobs",
    "PUT /openpai/api/v2/jobs/{framework}/executionType",
}
schema = schemathesis.openapi.from_dict(_document(), config=schemathesis.Config.from_dict(_CONFIG))


@schema.parametrize()
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_engine_keeps_what_the_document_says(case, base_url):
    """The real service; whatever comes, the answer is one that is documented, and never a 500."""
    left_out = [positive_data_acceptance] if case.operation.label in _RELATED else []
    case.call_and_validate(base_url=base_url, excluded_checks=left_out)
