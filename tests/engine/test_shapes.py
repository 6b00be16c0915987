"""The small validator agrees with the full one on the schemas that the routes use."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.engine import schemas
from paijupyter.engine.routes import ROUTES
from paijupyter.engine.shapes import mismatches, require
from paijupyter.errors import UsageProblem

BODIES = [route.body for route in ROUTES if route.body is not None]
SCHEMAS = [*BODIES, *(p.schema for route in ROUTES for p in route.query)]
WORDS = [
    "document",
    "profile",
    "package",
    "secrets",
    "context",
    "cell",
    "value",
    "reference",
    "mode",
    "folder",
]
MORE = ["manifest", "schema", "files", "text", "patch", "op", "path", "requestId", "target", "a/b~c"]
NAMES = st.sampled_from([*WORDS, *MORE])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2**60)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "normal", "/tmp", "a" * 64, "openpai", "x\0", "waiting,failed", "\ud7ff"])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5)
)


@given(st.sampled_from(SCHEMAS), VALUES)
def test_it_accepts_what_a_full_validator_accepts(schema, value):
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (list(mismatches(schema, value)) == []) is expected


def test_every_schema_is_within_the_part_that_is_understood():
    known = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "pattern"}
    known |= {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "format", "description"}

    def look(schema):
        assert set(schema) <= known, set(schema) - known
        for part in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
            look(part)
        for name in ("items", "additionalProperties"):
            if isinstance(schema.get(name), dict):
                look(schema[name])

    for schema in SCHEMAS:
        look(schema)


@pytest.mark.parametrize("schema", schemas.COMPONENTS.values(), ids=schemas.COMPONENTS)
def test_components_are_json_schemas(schema):
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_refusal_names_each_place():
    body = {"document": 1, "context": {"cell": {"id": "c", "colour": "red"}}, "mode": "maybe"}
    with pytest.raises(UsageProblem) as caught:
        require(schemas.SUBMIT_REQUEST, body)
    assert {problem.path for problem in caught.value.problems} == {
        "/document",
        "/context/cell/colour",
        "/mode",
    }


def test_a_refusal_never_repeats_a_value():
    """A secret that was put in the wrong place is not echoed (canary)."""
    body = {"document": "d", "secrets": {"TOKEN": "canary-1234"}, "profile": ["canary-1234"]}
    with pytest.raises(UsageProblem) as caught:
        require(schemas.SUBMIT_REQUEST, body)
    assert "canary-1234" not in str(caught.value.to_problem_json())
