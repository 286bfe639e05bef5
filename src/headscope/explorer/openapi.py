"""The API as an OpenAPI document, for people who script it and for tests that attack it."""

from typing import Any

from headscope.explorer.limits import Limits

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def description() -> dict[str, Any]:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headscope explorer",
            "version": "1",
            "description": "What the explorer's pages ask of its server.",
        },
        "paths": _paths(),
        "components": {"schemas": _schemas()},
    }


def _paths() -> dict[str, Any]:
    run, spec, head = _path("run"), _path("spec"), _path("head")
    pair = [_query("a"), _query("b")]
    at_run = "/api/runs/{run}"
    return {
        "/api/session": _get("The runs and the model", [], _ref("Session")),
        at_run: _get("One run and its measures", [run], _ref("Run")),
        f"{at_run}/measures/{{spec}}": _get("One picture", [run, spec], _ref("Picture")),
        f"{at_run}/correlation": _get(
            "r and p of two measures over heads",
            [run, _query("x"), _query("y")],
            _ref("Correlation"),
        ),
        f"{at_run}/heads/{{head}}": _get("One head's card", [run, head], _ref("Card")),
        f"{at_run}/clusters": _get("The map of heads", [run], _ref("Clusters")),
        f"{at_run}/probes": _get("Heads as classifiers", [run], _many(_ref("Table"))),
        "/api/compare": _get("The largest differences of two runs", pair, _ref("Comparison")),
        "/api/compare/{spec}": _get("One measure in two runs", [spec, *pair], _ref("Difference")),
        "/api/trace": {"post": _trace()},
    }


def _get(summary: str, parameters: list[Schema], schema: Schema) -> Schema:
    found = {"description": summary, "content": {"application/json": {"schema": schema}}}
    answers = {"200": found, **_refusals(400, 404, 409)}
    return {"get": {"summary": summary, "parameters": parameters, "responses": answers}}


def _trace() -> Schema:
    body = {"required": True, "content": {"application/json": {"schema": _ref("Text")}}}
    packed = "Length of the header (4 bytes, little-endian), the header as JSON, the blocks"
    found = {"description": packed, "content": {"application/octet-stream": {}}}
    answers = {"200": found, **_refusals(400, 409, 413, 415, 422, 503)}
    return {"summary": "The weights of a text", "requestBody": body, "responses": answers}


def _refusals(*codes: int) -> Schema:
    content = {"application/json": {"schema": _ref("Error")}}
    return {str(code): {"description": "Why not", "content": content} for code in codes}


def _path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}}


def _query(name: str) -> Schema:
    return {"name": name, "in": "query", "required": True, "schema": TEXT}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _many(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [{"type": "null"}, schema]}


def _object(**properties: Schema) -> Schema:
    """An object with these fields, all of them required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schemas() -> dict[str, Schema]:
    return {
        "Error": _object(error=TEXT),
        "Text": _text(),
        **_of_runs(),
        **_of_heads(),
        **_of_pairs(),
    }


def _text() -> Schema:
    limits = Limits()
    bounded = {**TEXT, "maxLength": limits.text}
    schema = _object(
        text={**bounded, "minLength": 1},
        pair=_maybe(bounded),
        target=_maybe(bounded),
        generate={**WHOLE, "minimum": 0, "maximum": limits.generate},
        kind={"enum": ["head", "model", "neuron"]},
        layer=_maybe(WHOLE),
        head=_maybe(WHOLE),
        blocks=_maybe({**_many(WHOLE), "maxItems": limits.blocks}),
    )
    return {**schema, "required": ["text"]}


def _of_runs() -> dict[str, Schema]:
    summary = {
        "slug": TEXT,
        "study": TEXT,
        "state": {"enum": ["complete", "unfinished", "damaged"]},
        "notes": _many(TEXT),
        "model": _maybe(TEXT),
        "corpus": _maybe(TEXT),
        "layers": _maybe(WHOLE),
        "heads": _maybe(WHOLE),
    }
    axis = _object(name=TEXT, title=TEXT, labels=_many(TEXT))
    measure = _object(name=TEXT, title=TEXT, meaning=TEXT, unit=TEXT, errors=FLAG, axes=_many(axis))
    free = {"type": "object"}
    return {
        "Session": _object(
            version=TEXT, runs=_many(_object(**summary)), model=_model(), limits=_limits()
        ),
        "Run": _object(**summary, about=free, measures=_many(measure), left_out=free),
    }


def _model() -> Schema:
    return _object(
        name=TEXT,
        state={"enum": ["none", "loading", "ready", "failed"]},
        reason=_maybe(TEXT),
        layers=_maybe(WHOLE),
        heads=_maybe(WHOLE),
        causal=_maybe(FLAG),
        encoder_decoder=_maybe(FLAG),
        max_length=_maybe(WHOLE),
    )


def _limits() -> Schema:
    return _object(text=WHOLE, generate=WHOLE, weights=WHOLE)


def _grid() -> Schema:
    return _many(_many(_maybe(NUMBER)))


def _line(**more: Schema) -> Schema:
    """A measure at one head."""
    return _object(
        spec=TEXT,
        title=TEXT,
        unit=TEXT,
        value=_maybe(NUMBER),
        error=_maybe(NUMBER),
        rank=_maybe(WHOLE),
        of=WHOLE,
        mean=_maybe(NUMBER),
        baseline=_baseline(),
        **more,
    )


def _baseline() -> Schema:
    return _maybe(_object(value=NUMBER, name=TEXT))


def _of_heads() -> dict[str, Schema]:
    profile = _object(
        values=_many(_maybe(NUMBER)), errors=_maybe(_many(_maybe(NUMBER))), pooled=FLAG
    )
    lines = _many(_line(label=TEXT, rare=FLAG))
    group = _object(name=TEXT, title=TEXT, axis=TEXT, enough=WHOLE, lines=lines)
    near = _object(basis=TEXT, heads=_many(_object(name=TEXT, distance=NUMBER)))
    place = _object(name=TEXT, x=_maybe(NUMBER), y=_maybe(NUMBER), behaviour=_maybe(TEXT))
    return {
        "Picture": _object(
            spec=TEXT,
            title=TEXT,
            meaning=TEXT,
            unit=TEXT,
            layers=_many(WHOLE),
            heads=_many(WHOLE),
            values=_grid(),
            errors=_maybe(_grid()),
            profile=profile,
            baseline=_baseline(),
            published=_maybe(_object(value=_maybe(NUMBER), says=TEXT, source=TEXT)),
        ),
        "Correlation": _object(r=_maybe(NUMBER), p=_maybe(NUMBER), heads=WHOLE),
        "Card": _object(
            name=TEXT,
            layer=WHOLE,
            head=WHOLE,
            behaviour=_maybe(TEXT),
            measures=_many(_line()),
            groups=_many(group),
            best_relation=_maybe(_line()),
            nearest=near,
            exemplars=_many({"type": "object"}),
        ),
        "Clusters": _object(heads=_many(place), behaviours=_many(TEXT), stress=_maybe(NUMBER)),
    }


def _of_pairs() -> dict[str, Schema]:
    cell = {"type": ["string", "number", "null"]}
    parts = ("first", "second", "difference", "low", "high", "effect")
    row = _object(
        measure=TEXT,
        at=_many(TEXT),
        spec=TEXT,
        head=TEXT,
        clear=FLAG,
        **dict.fromkeys(parts, _maybe(NUMBER)),
    )
    return {
        "Table": _object(title=TEXT, note=TEXT, columns=_many(TEXT), rows=_many(_many(cell))),
        "Comparison": _object(
            confidence=NUMBER,
            notes=_many(TEXT),
            measures=_many(TEXT),
            clear=WHOLE,
            intervals=WHOLE,
            rows=_many(row),
        ),
        "Difference": _object(
            spec=TEXT,
            title=TEXT,
            confidence=NUMBER,
            layers=_many(WHOLE),
            heads=_many(WHOLE),
            **dict.fromkeys(parts, _grid()),
        ),
    }
