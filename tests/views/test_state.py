"""Settings: what can be asked, and errors that name it."""

from dataclasses import asdict
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from headscope.errors import HeadscopeError, ViewError
from headscope.model.inputs.spans import Span
from headscope.views import head_view, model_view
from headscope.views.kinds import KINDS, all_settings, kind_of
from headscope.views.opening import initial_state
from tests.references.traces import encoder_decoder_trace, random_trace
from tests.tools.generated import GENERATED, STATIC


def test_a_view_opens_with_the_first_layer_and_all_heads() -> None:
    state = initial_state(random_trace(), "head")
    assert (state.stack, state.layer, state.heads, state.layers) == (
        "self",
        0,
        (0, 1, 2, 3),
        (0, 1, 2),
    )


def test_an_encoder_decoder_model_opens_with_its_cross_attention() -> None:
    assert initial_state(encoder_decoder_trace(), "head").stack == "cross"
    assert initial_state(encoder_decoder_trace(), "head", stack="cross").stack == "cross"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": 3}, "Layer 3 is not in this trace; it has 0 to 2."),
        ({"layer": -4}, "Layer -4 is not in this trace; it has 0 to 2."),
        ({"layer": "5"}, "Layer '5' is not in this trace; it has 0 to 2."),
        ({"heads": [0, 9]}, "Head 9 is not in this trace; it has 0 to 3."),
        (
            {"heads": "all"},
            "heads is all; give numbers, or names such as L5H2.",
        ),
        ({"heads": 1.5}, "heads is 1.5; give a number, or several in a list."),
        ({"mass": "half"}, "mass is half; give a share above 0 and up to 1."),
        ({"heads": []}, "heads is empty; name at least one, or leave it out to get all."),
        ({"pinned": "q10"}, "pinned is 'q10', but there are only tokens 0 to 9."),
        (
            {"pinned": "x1"},
            "pinned is 'x1'; write q3 for query token 3, k3 for key token 3, or q3-7+9 for "
            "several.",
        ),
        ({"pinned": "q3-12"}, "pinned is 'q3-12', but there are only tokens 0 to 9."),
        ({"attended": "x"}, "attended is 'x'; there are no spans."),
        ({"attending": "x", "spans": ["1-2 y"]}, "attending is 'x'; the spans are y."),
        ({"summary": "sum"}, "summary is 'sum'; choose each, mean, max."),
        ({"mass": 0}, "mass is 0; give a share above 0 and up to 1."),
        ({"unit": "letter"}, "unit is 'letter'; choose token, word, span."),
        ({"hide": "last"}, "hide is 'last'; choose first, special."),
        ({"stack": "cross"}, "There is no stack 'cross' in this trace; it has self."),
        ({"weights": "mean"}, "weights is 'mean'; choose raw, norm, rollout."),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ViewError) as error:
        head_view(random_trace(), **settings)
    assert str(error.value) == message


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ViewError, match="The model view has no setting 'colour'; it has stack, layer"
    ):
        model_view(random_trace(), colour="red")


@pytest.mark.parametrize("kind", KINDS)
def test_a_view_refuses_settings_of_other_views(kind: str) -> None:
    for name in set(all_settings()) - set(kind_of(kind).settings):
        with pytest.raises(ViewError, match=f"The {kind} view has no setting '{name}'"):
            initial_state(random_trace(), kind, **{name: 0})


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_generated_from_python_is_up_to_date(name: str) -> None:
    written = (STATIC / name).read_text(encoding="utf-8")
    assert written == GENERATED[name](), "run `python -m tests.tools.generated`"


def test_a_kind_is_a_declaration_a_module_and_a_figure() -> None:
    folders = {folder.name for folder in (STATIC / "kinds").iterdir() if folder.is_dir()}
    assert folders == {*KINDS, "shared"}
    for name, kind in KINDS.items():
        script = (STATIC / "kinds" / name / "view.js").read_text("utf-8")
        assert f"export function {name}View(" in script
        assert callable(resolve_name(kind.open)) and callable(resolve_name(kind.figure))


def test_one_head_needs_no_list() -> None:
    assert initial_state(random_trace(), "head", heads=2).heads == (2,)
    assert initial_state(random_trace(), "model", heads=np.int64(2)).heads == (2,)


def test_numbers_and_tokens_are_taken_as_people_write_them() -> None:
    state = initial_state(random_trace(), "head", heads=[3, 1, 1], pinned=4, hide="first")
    assert (state.heads, state.pinned, state.hide) == ((1, 3), "q4", ("first",))


def test_spans_and_several_tokens_are_taken_as_people_have_them() -> None:
    span = Span("answer", (3, 4, 5, 8))
    state = initial_state(random_trace(), "head", spans=[span], pinned=span)
    assert (state.spans, state.pinned) == (("3-5+8 answer",), "q3-5+8")
    assert initial_state(random_trace(), "head", pinned=[5, 1, 2]).pinned == "q1-2+5"


@pytest.mark.parametrize("spans", [["1-2"], ["x y"], ["3-12 far"], ["1 a", "2 a"]])
def test_spans_that_cannot_be_are_refused(spans: list[str]) -> None:
    with pytest.raises(HeadscopeError):
        head_view(random_trace(), spans=spans)


def test_a_summary_takes_everything_unless_told_otherwise() -> None:
    state = initial_state(random_trace(), "head", summary="mean")
    assert (state.layers, state.heads) == ((0, 1, 2), (0, 1, 2, 3))
    state = initial_state(random_trace(), "head", summary="mean", layer=1)
    assert (state.layers, state.heads) == ((1,), (0, 1, 2, 3))
    assert asdict(initial_state(random_trace(), "model", summary="max"))["enlarged"]
