"""The OpenAPI document, and whether requests are as it says."""

from __future__ import annotations

import json
import re

import httpx
from jsonschema import Draft202012Validator

from gate import REPOSITORY

DOCUMENT = json.loads((REPOSITORY / "crates/server/openapi/openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


def operation_of(request: httpx.Request) -> dict:
    for template, operations in DOCUMENT["paths"].items():
        # Paths without a parameter stand before those with one.
        pattern = re.sub(r"\{[^}]+\}", "[^/]+", template)
        if re.fullmatch(pattern, request.url.path) and request.method.lower() in operations:
            return operations[request.method.lower()]
    raise AssertionError(f"{request.method} {request.url.path} is not in the document")


def parameters_of(operation: dict, place: str) -> set[str]:
    references = [parameter.get("$ref", "").rsplit("/", 1)[-1] for parameter in operation.get("parameters", ())]
    named = [DOCUMENT["components"]["parameters"][name] for name in references if name]
    return {each["name"].lower() for each in [*operation.get("parameters", ()), *named] if each.get("in") == place}


def check_request(request: httpx.Request) -> None:
    """Fails for a request that the document does not have."""
    operation = operation_of(request)
    unknown = {name.lower() for name in request.url.params} - parameters_of(operation, "query")
    assert not unknown, f"{request.url}: {unknown}"
    for header in {"prefer", "if-match", "x-agent-id"} & set(request.headers):
        assert header in parameters_of(operation, "header"), f"{request.url}: {header}"
    declared = operation.get("requestBody")
    if not request.content:
        assert not (declared or {}).get("required"), f"{request.url} needs a body"
        return
    assert declared is not None, f"{request.url} has no body"
    schema = declared["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(json.loads(request.content))


def check_response(response: httpx.Response) -> None:
    statuses = operation_of(response.request)["responses"]
    assert str(response.status_code) in statuses, (
        f"{response.request.url}: {response.status_code} is not in the document"
    )


async def check_request_async(request: httpx.Request) -> None:
    check_request(request)


async def check_response_async(response: httpx.Response) -> None:
    check_response(response)


HOOKS = {"request": [check_request], "response": [check_response]}
ASYNC_HOOKS = {"request": [check_request_async], "response": [check_response_async]}
