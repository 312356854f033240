"""The types of the package are those of the OpenAPI document: neither can change without the other."""

from __future__ import annotations

import dataclasses
import re
import types
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import toolgate
from document import SCHEMAS
from gate import REPOSITORY
from toolgate import exceptions, models, work
from toolgate._calls import CallOptions
from toolgate.exceptions import CODES, STATUSES, ToolgateError

MODELS = [kind for module in (models, work) for kind in vars(module).values() if hasattr(kind, "SCHEMA")]

LEFT_OUT = {
    "Grant": {"delegated_from", "effective_status_decided_by", "lineage"},
    "CallAnswer": {"status", "error"},
    "DetachedCall": {"id", "actor", "result_url", "cancel_url"},
    "Task": {"permissions", "delegated_grants", "undelegated", "revoked_grants"},
    "Lease": {"acquired_at"},
}
"""Members that the classes do not have: said twice, or constant."""

ADDED = {"Grant": {"metadata"}}


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rsplit("/", 1)[1]]
    return schema


def alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What a value may be; several types become several schemas."""
    schema = resolved(schema)
    if "anyOf" in schema or "oneOf" in schema:
        return [each for choice in schema.get("anyOf", schema.get("oneOf")) for each in alternatives(choice)]
    kinds = schema.get("type")
    return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else [schema]


def problem(annotation: Any, schema: dict[str, Any]) -> str | None:
    """Why a member of the class cannot hold what the document allows, or the other way around."""
    if annotation is Any:
        return None
    choices = alternatives(schema)
    nullable = any(choice.get("type") == "null" for choice in choices)
    choices = [choice for choice in choices if choice.get("type") != "null"]
    optional = get_origin(annotation) in (Union, types.UnionType)
    if nullable != optional:
        return f"nullable: {nullable}, optional: {optional}"
    if optional:
        (annotation,) = (kind for kind in get_args(annotation) if kind is not types.NoneType)
    return next((found for choice in choices if (found := mismatch(annotation, choice))), None)


def mismatch(annotation: Any, schema: dict[str, Any]) -> str | None:
    kind = schema.get("type")
    origin = get_origin(annotation)
    if origin is Literal:
        return None if set(get_args(annotation)) == set(schema.get("enum", ())) else f"{annotation} is not {schema}"
    if origin is tuple:
        return problem(get_args(annotation)[0], schema["items"]) if kind == "array" else f"{kind} is no list"
    if dataclasses.is_dataclass(annotation):
        named = annotation.SCHEMA  # type: ignore[union-attr]
        return None if resolved({"$ref": f"/{named}"}) == schema else f"{named} is not the schema"
    if annotation is datetime:
        return None if schema.get("format") == "date-time" else "no time"
    expected = {str: "string", bool: "boolean", int: "integer", Decimal: "number", dict: "object"}
    wanted = expected.get(origin or annotation)
    return (
        None
        if kind == wanted and "enum" not in {*schema} - ({"enum"} if kind == "boolean" else set())
        else (f"{annotation} for {kind}")
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_class_has_the_members_of_its_schema(model):
    schema = SCHEMAS[model.SCHEMA]
    annotations = get_type_hints(model)
    fields = {field.name: field for field in dataclasses.fields(model)}
    added = ADDED.get(model.SCHEMA, set())
    assert set(fields) - added == set(schema["properties"]) - LEFT_OUT.get(model.SCHEMA, set())
    for name, field in fields.items():
        if name in added:
            continue
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        assert has_default != (name in schema.get("required", ())), f"{name}: required or not"
        annotation = annotations[name]
        if has_default and get_origin(annotation) in (Union, types.UnionType):
            # An absent member is `None`.
            (annotation,) = (kind for kind in get_args(annotation) if kind is not types.NoneType)
            found = next(
                (
                    found
                    for each in alternatives(schema["properties"][name])
                    if each.get("type") != "null" and (found := mismatch(annotation, each))
                ),
                None,
            )
        else:
            found = problem(annotation, schema["properties"][name])
        assert found is None, f"{model.__name__}.{name}: {found}"


def test_the_options_of_a_call_are_those_of_the_request():
    own = {"timeout", "on_pending"}
    request = set(SCHEMAS["CallRequest"]["properties"]) - {"tool", "tool_name", "agent_id"}
    assert set(CallOptions.__annotations__) - own == request


def statuses() -> dict[str, set[int]]:
    """The statuses of each error code; a test of the gate compares the page with the codes."""
    page = (REPOSITORY / "docs/errors.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", page, re.MULTILINE)
    return {code: {int(status) for status in re.findall(r"\d{3}", column)} for code, column in rows}


def test_every_error_code_has_a_class_of_its_own_or_of_its_status():
    codes, of = SCHEMAS["ErrorCode"]["enum"], statuses()
    assert len(codes) > 80 and set(codes) <= set(of)
    missing = [code for code in codes if code not in CODES and not of[code] <= set(STATUSES)]
    assert not missing, f"say in toolgate.exceptions.CODES what these become: {missing}"
    needless = [
        code for code in CODES if code not in of or {STATUSES.get(status) for status in of[code]} == {CODES[code]}
    ]
    assert not needless, f"these become the class of their status: {needless}"


def test_every_class_of_an_error_is_one_that_can_be_caught():
    mapped = {*CODES.values(), *STATUSES.values()}
    assert all(issubclass(kind, ToolgateError) for kind in mapped)
    defined = {kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, ToolgateError)}
    bases = {base for kind in defined for base in kind.__mro__[1:]}
    local = {exceptions.CallTimeoutError, exceptions.ResponseError}
    unused = defined - mapped - bases - local
    assert not unused, f"no code becomes {unused}"


def test_the_version_is_that_of_the_gate():
    workspace = (REPOSITORY / "Cargo.toml").read_text()
    project = (REPOSITORY / "clients/python/pyproject.toml").read_text()
    version = next(line for line in workspace.splitlines() if line.startswith("version = "))
    assert version in project.splitlines()
    assert version.split('"')[1] == toolgate.__version__
