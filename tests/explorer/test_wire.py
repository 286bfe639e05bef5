"""Whatever is sent, the API answers as its OpenAPI document says, and never breaks."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from headscope.explorer.addresses import ANSWERS
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.description import describe, typescript
from headscope.explorer.texts import Texts
from tests.explorer.live import live
from tests.references.explorer_models import tiny_model

KNOWN = {
    "run": "vig", "head": "L1H2", "spec": "pos_to~NOUN", "input": "0", "a": "vig",
    "b": "vig-later",
}  # fmt: skip
ONLY_OF = {
    "clusters": "clark",
    "records": "luger",
    "inputs": "luger",
    "map": "told",
    "portraits": "told",
}
DESCRIPTION = describe(ANSWERS)
PATHS = list(DESCRIPTION["paths"])
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION)


@pytest.fixture(scope="module")
def place(library: Library) -> Iterator[str]:
    with live(create_app(library, Texts("tiny-gpt2", tiny_model))) as place:
        yield place


def attack(path: str, place: str, mode: GenerationMode, checks: list[Any] = CHECKS) -> None:
    method = next(iter(DESCRIPTION["paths"][path])).upper()

    @given(case=SCHEMA[path][method].as_strategy(mode))
    @settings(max_examples=15, suppress_health_check=[HealthCheck.filter_too_much])
    def one(case: Case) -> None:
        case.call_and_validate(base_url=place, checks=checks)

    one()


@pytest.mark.parametrize("path", PATHS)
def test_arbitrary_values_are_answered_as_described(path: str, place: str) -> None:
    attack(path, place, GenerationMode.POSITIVE)


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/api/trace"])
def test_known_runs_and_measures_are_answered_as_described(path: str, place: str) -> None:
    run = next((run for part, run in ONLY_OF.items() if part in path), "vig")
    wanted = KNOWN | {"run": run}
    operation = SCHEMA[path]["GET"]
    parts = [part["name"] for part in DESCRIPTION["paths"][path]["get"]["parameters"]]
    case = operation.Case(path_parameters={name: wanted[name] for name in parts})
    answer = case.call_and_validate(base_url=place, checks=CHECKS)
    assert answer.status_code == 200


def test_the_pages_types_are_those_of_the_api() -> None:
    place = files("headscope").joinpath("static", "explorer", "types.d.ts")
    assert place.read_text(encoding="utf-8") == typescript(ANSWERS), (
        "python -m headscope.explorer.description > …/static/explorer/types.d.ts"
    )


def test_a_field_may_be_left_out_only_where_it_has_a_default() -> None:
    schemas = DESCRIPTION["components"]["schemas"]
    assert schemas["TextRequest"]["required"] == ["text"]
    assert schemas["TextRequest"]["properties"]["text"]["maxLength"] == 20_000
    assert schemas["Session"]["required"] == ["version", "runs", "model", "limits"]


def refused(context: Any, answer: Any, case: Case) -> bool | None:
    """Broken texts are refused; one that is too long by 413, which the library does not know of."""
    return None if answer.status_code == 413 else negative_data_rejection(context, answer, case)


def test_broken_texts_are_refused_as_described(place: str) -> None:
    attack("/api/trace", place, GenerationMode.NEGATIVE, [*CHECKS, refused])


MALFORMED = {400, 408, 413, 415}


def test_no_text_that_the_description_allows_is_refused_as_malformed(place: str) -> None:
    @given(case=SCHEMA["/api/trace"]["POST"].as_strategy(GenerationMode.POSITIVE))
    @settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much], deadline=None)
    def one(case: Case) -> None:
        assert case.call(base_url=place).status_code not in MALFORMED

    one()


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("generate", 5.0, 200),
        ("layer", 1.0, 200),
        ("generate", 5.5, 400),
        ("generate", 65.0, 422),
        ("generate", 1e300, 422),
        ("blocks", [0.5], 400),
    ],
)
def test_a_whole_number_may_be_written_with_a_point(
    place: str, field: str, value: object, status: int
) -> None:
    answer = httpx.post(f"{place}/api/trace", json={"text": "A cat.", field: value})
    assert answer.status_code == status


def test_the_longest_texts_fit_into_the_largest_body(place: str) -> None:
    longest = "\N{GRINNING FACE}" * 20_000  # twelve bytes each when escaped
    body = {"text": longest, "pair": longest, "target": longest}
    answer = httpx.post(
        f"{place}/api/trace",
        content=json.dumps(body),
        headers={"content-type": "application/json"},
        timeout=60,
    )
    assert answer.status_code == 422  # of the tiny model: too long, no decoder


def test_an_overlong_text_is_413_as_described(place: str) -> None:
    answer = httpx.post(f"{place}/api/trace", json={"text": "a" * 20_001})
    assert answer.status_code == 413
    assert "413" in DESCRIPTION["paths"]["/api/trace"]["post"]["responses"]


def test_every_address_says_how_the_guard_refuses(place: str) -> None:
    for path, methods in DESCRIPTION["paths"].items():
        for operation in methods.values():
            assert {"401", "403", "421"} <= set(operation["responses"]), path


def test_the_app_serves_after_all_that(place: str) -> None:
    assert httpx.get(f"{place}/api/session").status_code == 200
    assert httpx.post(f"{place}/api/trace", json={"text": "Still here."}).status_code == 200
