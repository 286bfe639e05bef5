"""The API as an OpenAPI document: paths here, everything else from the types of the answers."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from headscope.explorer.schemas import Refusal, TextRequest
from headscope.explorer.typed import Schema, json_schema, json_schemas

GUARDED = (401, 403, 421)  # no token, another origin, another host name
_NAMED = re.compile(r"{(\w+)(:path)?}")
Asked = tuple[str, str, Sequence[str], Any]  # path, summary, query parameters, type of the answer


def describe(questions: Iterable[Asked]) -> dict[str, Any]:
    """The whole document."""
    questions = list(questions)
    paths = {_NAMED.sub(r"{\1}", asked[0]): _get(*asked) for asked in questions}
    answers = [answer for *_, answer in questions]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headscope explorer",
            "version": "1",
            "description": "What the explorer's pages ask of its server.",
        },
        "paths": paths | {"/api/trace": {"post": _trace()}},
        "components": {"schemas": json_schemas(*answers, Refusal, TextRequest)},
    }


def _get(path: str, summary: str, query: Sequence[str], answer: Any) -> Schema:
    found = {
        "description": summary,
        "content": {"application/json": {"schema": json_schema(answer)}},
    }
    named = [_parameter(name, "path", {"minLength": 1}) for name, _ in _NAMED.findall(path)]
    return {
        "get": {
            "summary": summary,
            "parameters": [*named, *(_parameter(name, "query", {}) for name in query)],
            "responses": {"200": found, **_refusals(400, 404, 409)},
        }
    }


def _trace() -> Schema:
    packed = "Length of the header (4 bytes, little-endian), the header as JSON, the blocks"
    body = {"application/json": {"schema": json_schema(TextRequest)}}
    found = {"description": packed, "content": {"application/octet-stream": {}}}
    return {
        "summary": "The weights of a text",
        "requestBody": {"required": True, "content": body},
        "responses": {"200": found, **_refusals(400, 408, 409, 413, 415, 422, 503)},
    }


def _parameter(name: str, place: str, bounds: Schema) -> Schema:
    return {"name": name, "in": place, "required": True, "schema": {"type": "string", **bounds}}


def _refusals(*codes: int) -> Schema:
    """These and those of the guard, which stands before every address."""
    codes = tuple(sorted({*codes, *GUARDED}))
    content = {"application/json": {"schema": json_schema(Refusal)}}
    return {str(code): {"description": "Why not", "content": content} for code in codes}
