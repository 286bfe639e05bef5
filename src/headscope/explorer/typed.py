"""A type read three ways: as JSON Schema, as TypeScript, and as a check of a received value.

The API as an OpenAPI document: paths here, everything else from the types of the answers.
"""

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from headscope.explorer.schemas import RECEIVED, AtMost, Limits, Refusal, RefusedError, TextRequest

Schema = dict[str, Any]
Made = TypeVar("Made")
_JSON = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_BOUNDS = {str: "Length", list: "Items", int: "imum"}  # minLength, maxItems, maximum …
GUARDED = (401, 403, 421)  # no token, another origin, another host name
_NAMED = re.compile(r"{(\w+)(:path)?}")
Asked = tuple[str, str, Sequence[str], Any]  # path, summary, query parameters, type of the answer


def json_schema(kind: Any) -> Schema:
    """The JSON Schema of a type; a dataclass is named, see `json_schemas`."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in _JSON:
        return {"type": _JSON[kind]}
    if is_dataclass(kind) and isinstance(kind, type):
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    if origin is Annotated:
        return json_schema(parts[0]) | _bounds(parts[0], parts[1])
    if origin is Literal:
        return {"enum": list(parts)}
    if _is_union(kind):
        return {"anyOf": [json_schema(part) for part in parts]}
    if origin in (list, tuple):
        return {"type": "array", "items": json_schema(parts[0])}
    return {"type": "object", "additionalProperties": json_schema(parts[1])}  # a mapping


def json_schemas(*roots: Any) -> dict[str, Schema]:
    """The schema of every dataclass that the types are made of, by its name."""
    return {kind.__name__: _object(kind) for kind in dataclasses_of(*roots)}


def typescript(kind: Any) -> str:
    """The TypeScript type of a type."""
    return _typescript(json_schema(kind))


def _typescript(schema: Schema) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(f'"{part}"' for part in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_typescript, schema["anyOf"])))
    if "items" in schema:
        item = _typescript(schema["items"])
        return f"({item})[]" if "|" in item else f"{item}[]"
    if "additionalProperties" in schema:
        return f"Record<string, {_typescript(schema['additionalProperties'])}>"
    kind = schema.get("type", "unknown")
    return "number" if kind == "integer" else kind


def typescript_interfaces(*roots: Any) -> str:
    """An interface for every dataclass that the types are made of."""
    return "\n".join(_interface(kind) for kind in dataclasses_of(*roots))


def dataclasses_of(*roots: Any) -> list[type]:
    """Every dataclass that the types are made of, each once, in the order they are met."""
    found: dict[type, None] = {}
    waiting = list(roots)
    while waiting:
        kind = waiting.pop(0)
        if is_dataclass(kind) and isinstance(kind, type) and kind not in found:
            found[kind] = None
            waiting += [hint for _, hint in _fields(kind)]
        elif get_origin(kind) is not Literal:
            waiting += get_args(kind)
    return list(found)


def read(kind: type[Made], given: object) -> Made:
    """A dataclass from parsed JSON, or a RefusedError that names the field that is wrong."""
    if not isinstance(given, dict):
        raise RefusedError(400, "The body must be a JSON object.")
    known = {field.name: hint for field, hint in _fields(kind)}
    for name, value in list(given.items()):
        if name not in known:
            raise RefusedError(400, f"There is no such field; the fields are {', '.join(known)}.")
        given[name] = value = _whole(value)
        _check(name, value, known[name])
    required = [field.name for field, _ in _fields(kind) if _is_required(field)]
    if not all(name in given for name in required):
        raise RefusedError(400, f"The body needs the field {', '.join(required)}.")
    return kind(**given)


def check_limits(request: object, limits: Limits) -> None:
    """Refuse fields that are larger than the limits their types name."""
    for field, hint in _fields(type(request)):
        value = getattr(request, field.name)
        for bound in (part for kind in _alternatives(hint) for part in get_args(kind)[1:]):
            if value is not None and isinstance(bound, AtMost):
                _check_limit(field.name, value, bound.least, getattr(limits, bound.limit))


def _check_limit(name: str, value: str | int | list[int], least: int, most: int) -> None:
    if isinstance(value, str) and len(value) > most:
        raise RefusedError(
            413, f"The {name} has {len(value):,} characters; the explorer takes {most:,}."
        )
    if isinstance(value, list) and len(value) > most:
        raise RefusedError(422, f"{len(value)} {name} are asked for; the most is {most}.")
    if isinstance(value, int) and not least <= value <= most:
        raise RefusedError(422, f"{name} is {value}; give {least} to {most}.")


def _check(name: str, value: object, hint: Any) -> None:
    kinds = [_bare(kind) for kind in _alternatives(hint)]
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if isinstance(value, str) and choices and value not in choices:
        raise RefusedError(422, f"There is no {name} {value!r}; there are {', '.join(choices)}.")
    if not any(_is(value, kind) for kind in kinds):
        raise RefusedError(400, f"The field {name} must be {' or '.join(map(_word, kinds))}.")
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise RefusedError(400, f"The field {name} is not valid Unicode: it has a lone surrogate.")


def _whole(value: object) -> object:
    """55.0 is a whole number in JSON, as its schemas have it; a list by its members."""
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is(value: object, kind: Any) -> bool:
    if get_origin(kind) is list:
        return type(value) is list and all(_is(one, get_args(kind)[0]) for one in value)
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return type(value) is kind  # True is no whole number


def _word(kind: Any) -> str:
    if get_origin(kind) is list:
        return f"a list of {_word(get_args(kind)[0])}"
    return "null" if kind is type(None) else getattr(kind, "__name__", "a string")


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if _is_union(kind) else (kind,)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _bounds(kind: Any, bound: AtMost) -> Schema:
    ending = _BOUNDS[get_origin(kind) or kind]
    most = getattr(Limits(), bound.limit)
    return {f"min{ending}": bound.least, f"max{ending}": most}


def _object(kind: Any) -> Schema:
    return {
        "type": "object",
        "description": _said(kind),
        "properties": {field.name: json_schema(hint) for field, hint in _fields(kind)},
        "required": [field.name for field, _ in _fields(kind) if _is_sent(kind, field)],
        "additionalProperties": False,
    }


def _interface(kind: Any) -> str:
    lines = (
        f"  {field.name}{'' if _is_sent(kind, field) else '?'}: {typescript(hint)};"
        for field, hint in _fields(kind)
    )
    return "\n".join(
        [f"/** {_said(kind)} */", f"export interface {kind.__name__} {{", *lines, "}\n"]
    )


def _fields(kind: Any) -> Iterator[tuple[Field[Any], Any]]:
    hints: Mapping[str, Any] = get_type_hints(kind, include_extras=True)
    return ((field, hints[field.name]) for field in fields(kind))


def _is_sent(kind: Any, field: Field[Any]) -> bool:
    """What is sent has every field; what is received may leave out those with a default."""
    return _is_required(field) or kind not in RECEIVED


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _said(kind: Any) -> str:
    return (kind.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


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
