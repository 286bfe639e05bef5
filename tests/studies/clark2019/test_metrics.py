"""Every value of the study equals a plain reading of its definition, padding included."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import xarray as xr

from headscope.model.model import Model
from headscope.results.replicates import group_of
from headscope.studies.running import study
from headscope.text.segments import Segments
from tests.references import clark2019 as plain
from tests.references.float64_models import tiny_bert, tiny_gpt2
from tests.references.segments import starting_in
from tests.studies.clark2019.corpora import paragraphs

MODELS: dict[str, Callable[[], Model]] = {"bert": tiny_bert, "gpt2": tiny_gpt2}
LONGEST = 24  # tokens of a segment: most are cut
BOTH = pytest.mark.parametrize("name", MODELS)


@cache
def measured(name: str) -> tuple[xr.Dataset, list[plain.Reading]]:
    """The study's result and the plain reading of the same segments."""
    model, corpus = MODELS[name](), paragraphs()
    result = study("clark2019", model, corpus, batch_tokens=100, offsets=[-1, 0, 1, 2, -7],
                   max_tokens=LONGEST)  # fmt: skip
    segments = starting_in(Segments(corpus, LONGEST), 0, len(corpus))
    return result, [
        plain.read(model, each, LONGEST, group=group_of(str(each.number))) for each in segments
    ]


def agree(result: xr.Dataset, variable: str, expected: tuple, **place: object) -> None:
    values, errors = expected
    np.testing.assert_allclose(result[variable].sel(place), values, atol=1e-6)
    np.testing.assert_allclose(result[f"{variable}_se"].sel(place), errors, atol=1e-6)
    pooled = result[f"{variable}_by_layer"].sel(place)
    np.testing.assert_allclose(pooled, values.mean(1), atol=1e-6)


@BOTH
def test_offset_shares(name: str) -> None:
    result, readings = measured(name)
    assert result["offset"].values.tolist() == [-7, -1, 0, 1, 2]
    for offset in (-7, -1, 0, 1, 2):
        expected = plain.over_documents(readings, plain.offset_share, offset)
        agree(result, "offset_share", expected, offset=offset)


@BOTH
def test_shares_of_special_tokens(name: str) -> None:
    result, readings = measured(name)
    for kind in (plain.CLS, plain.SEP, plain.PUNCT):
        expected = plain.over_documents(readings, plain.special_share, kind)
        agree(result, "special_share", expected, special=kind)


@BOTH
def test_attention_to_separators_by_who_attends(name: str) -> None:
    result, readings = measured(name)
    agree(result, "sep_to_sep", plain.over_documents(readings, plain.to_sep, True))
    agree(result, "other_to_sep", plain.over_documents(readings, plain.to_sep, False))


@BOTH
@pytest.mark.parametrize(
    ("variable", "measure"),
    [
        ("entropy", plain.mean_entropy),
        ("entropy_from_cls", plain.cls_entropy),
        ("confidence", plain.confidence),
        ("first_token_share", plain.first_share),
    ],
)
def test_values_of_rows(name: str, variable: str, measure: Callable) -> None:
    result, readings = measured(name)
    agree(result, variable, plain.over_documents(readings, measure))


@BOTH
def test_the_uniform_line_is_the_mean_of_ln_n(name: str) -> None:
    result, readings = measured(name)
    lengths = [len(reading.kinds) for reading in readings]
    line = sum(math.log(n) for n in lengths) / len(lengths)
    assert float(result["uniform_entropy"]) == pytest.approx(line)
    assert result.attrs["sentences"] == len(readings)
    assert result.attrs["tokens"] == sum(lengths)


@BOTH
def test_divergences(name: str) -> None:
    result, readings = measured(name)
    expected = plain.divergence(readings)
    found = result["head_divergence"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert result["unit"].values.tolist() == ["L0H0", "L0H1", "L1H0", "L1H1"]
    assert found.attrs["rows"] == sum(len(reading.kinds) for reading in readings)
    for unit, nearest in zip(expected, result["nearest_head"].values, strict=True):
        order = [result["unit"].values[i] for i in np.argsort(unit)[1:]]
        assert nearest.tolist() == order


@BOTH
def test_labels_and_sinks_follow_the_measured_values(name: str) -> None:
    result, _ = measured(name)
    for layer in range(2):
        for head in range(2):
            here = result.sel(layer=layer, head=head)
            label = "other"
            label = "next" if here["offset_share"].sel(offset=1) > 0.5 else label
            label = "previous" if here["offset_share"].sel(offset=-1) > 0.5 else label
            label = "broad" if here["entropy"] > 3.8 else label
            for kind in ("cls", "sep", "punct"):
                label = kind if here["special_share"].sel(special=kind) > 0.6 else label
            assert here["behaviour"].item() == label
    rate = float((result["first_token_share"] > 0.3).mean())
    assert result.attrs["sink_rate"] == pytest.approx(rate)


@BOTH
def test_the_example_shows_weights_of_a_segment(name: str) -> None:
    result, readings = measured(name)
    shown = result["example_map"]
    lengths = [len(reading.kinds) for reading in readings]
    chosen = min(range(len(lengths)), key=lambda i: (abs(lengths[i] - 32), i))
    full = np.array(readings[chosen].maps)
    places = list(range(lengths[chosen]))
    if len(places) > 32:
        start = max(1, readings[chosen].kinds.index(plain.SEP) - 21)
        start = min(start, len(places) - 31)
        places = [0, *places[start : start + 31]]
    expected = full[:, :, places][:, :, :, places]
    np.testing.assert_allclose(shown, expected, atol=1e-6)
