"""Reading what a visitor sends: bounded, JSON, and exactly the fields that are known."""

import json
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from starlette.requests import Request

from headscope.explorer.refusal import RefusedError
from headscope.explorer.texts import TextRequest


async def read_text_request(request: Request, limit: int) -> TextRequest:
    """The body as a TextRequest, or a RefusedError that names the field that is wrong."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "Send the request as application/json.")
    return parse(await _bounded(request, limit))


def parse(body: bytes) -> TextRequest:
    """Check names and types; texts must be valid Unicode."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "The body is not JSON.") from error
    if not isinstance(given, dict):
        raise RefusedError(400, "The body must be a JSON object.")
    known = get_type_hints(TextRequest)
    for name, value in given.items():
        if name not in known:
            raise RefusedError(400, f"There is no such field; the fields are {', '.join(known)}.")
        union = get_origin(known[name]) is UnionType
        _check(name, value, get_args(known[name]) if union else (known[name],))
    required = [one.name for one in fields(TextRequest) if one.default is MISSING]
    if not all(name in given for name in required):
        raise RefusedError(400, f"The body needs the field {', '.join(required)}.")
    return TextRequest(**given)


async def _bounded(request: Request, limit: int) -> bytes:
    """Stop reading as soon as the body is too large, whatever its length header says."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > limit:
            raise RefusedError(413, f"The request is larger than {limit:,} bytes.")
    return bytes(received)


def _check(name: str, value: Any, types: tuple[type, ...]) -> None:
    if not any(_is(value, one) for one in types):
        wanted = " or ".join("null" if one is type(None) else _named(one) for one in types)
        raise RefusedError(400, f"The field {name} must be {wanted}.")
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise RefusedError(400, f"The field {name} is not valid Unicode: it has a lone surrogate.")


def _is(value: Any, wanted: type) -> bool:
    if get_origin(wanted) is list:
        return type(value) is list and all(_is(one, get_args(wanted)[0]) for one in value)
    return type(value) is wanted


def _named(wanted: type) -> str:
    items = get_args(wanted)
    return f"a list of {items[0].__name__}" if items else wanted.__name__
