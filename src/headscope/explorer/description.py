"""What the API sends and receives, described twice: as an OpenAPI document and as TypeScript.

Both follow from the types in `wire.py`. `python -m headscope.explorer.description` prints the
TypeScript, which the pages have as static/types.d.ts.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from headscope.explorer.addresses import ANSWERS, Answer
from headscope.explorer.wire import Refusal, TextRequest

Schema = dict[str, Any]
GUARDED = (401, 403, 421)  # no token, another origin, another host name
PACKED = "Length of the header (4 bytes, little-endian), the header as JSON, the blocks"
_PLACE = "#/components/schemas/"


def schemas_of(types: Sequence[Any]) -> tuple[list[Schema], dict[str, Schema]]:
    """The JSON Schema of each type, and by name those of everything that they are made of."""
    found, named = msgspec.json.schema_components(types, ref_template=_PLACE + "{name}")
    for name, schema in named.items():
        schema["description"] = _first_paragraph(schema.get("description", ""))
        schema["additionalProperties"] = False
        if name != TextRequest.__name__:  # what is sent has every field, what is received need not
            schema["required"] = list(schema["properties"])
    return [*found], named


def describe(answers: Sequence[Answer]) -> Schema:
    """The OpenAPI document."""
    found, schemas = schemas_of([*(answer.type for answer in answers), Refusal, TextRequest])
    *sent, refusal, request = found
    paths: Schema = {"/api/trace": {"post": _trace(request, refusal)}}
    for answer, schema in zip(answers, sent, strict=True):
        paths[f"/api/{_path(answer)}"] = {"get": _get(answer, schema, refusal)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headscope explorer",
            "version": "1",
            "description": "What the explorer's pages ask of its server.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _get(answer: Answer, schema: Schema, refusal: Schema) -> Schema:
    text = {"type": "string", "minLength": 1}
    content = {"application/json": {"schema": schema}}
    return {
        "summary": answer.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": text} for name in answer.parts
        ],
        "responses": {
            "200": {"description": answer.summary, "content": content},
            **_refusals(refusal, 404, 409),
        },
    }


def _trace(request: Schema, refusal: Schema) -> Schema:
    return {
        "summary": "The weights of a text",
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {
            "200": {"description": PACKED, "content": {"application/octet-stream": {}}},
            **_refusals(refusal, 400, 408, 409, 413, 415, 422, 503),
        },
    }


def _refusals(refusal: Schema, *codes: int) -> Schema:
    """These and those of the guard, which stands before every address."""
    content = {"application/json": {"schema": refusal}}
    return {
        str(code): {"description": "Why not", "content": content}
        for code in sorted({*codes, *GUARDED})
    }


def typescript(answers: Sequence[Answer]) -> str:
    """An interface for everything that is sent and received, and one for all addresses."""
    sent, schemas = schemas_of([*(answer.type for answer in answers), TextRequest])
    interfaces = [_interface(name, schema) for name, schema in schemas.items()]
    paths = dict(zip(map(_path, answers), sent, strict=False))  # the last one is received
    addresses = {"description": "What is sent, by its address below /api/.", "properties": paths}
    addresses["required"] = list(paths)
    source = "// Printed by `python -m headscope.explorer.description` from the types in wire.py."
    return "\n".join([f"{source}\n", *interfaces, _interface("Answers", addresses)])


def _path(answer: Answer) -> str:
    """The address of an answer with the names of its parts alone."""
    return answer.path.replace(":path}", "}")


def _interface(name: str, schema: Schema) -> str:
    lines = [f"/** {schema['description']} */", f"export interface {name} {{"]
    for field, kind in schema["properties"].items():
        mark = "" if field in schema.get("required", ()) else "?"
        name = field if field.isidentifier() else f'"{field}"'
        lines.append(f"  {name}{mark}: {_typescript(kind)};")
    return "\n".join([*lines, "}\n"])


def _typescript(schema: Schema) -> str:
    """The TypeScript type of a schema."""
    if "$ref" in schema:
        return schema["$ref"].removeprefix(_PLACE)
    if "enum" in schema:
        return " | ".join(f'"{choice}"' for choice in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_typescript, schema["anyOf"])))
    kind = schema.get("type", "unknown")
    if kind == "array":
        item = _typescript(schema["items"])
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object":
        values = schema.get("additionalProperties", {})
        return f"Record<string, {_typescript(values)}>"
    return "number" if kind == "integer" else kind


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    print(typescript(ANSWERS), end="")
