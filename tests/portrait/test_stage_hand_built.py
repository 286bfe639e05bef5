"""Heads built by hand are described exactly so, and heads of noise have no name."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import xarray as xr

from headscope.engine.setup import Setup
from headscope.metrics.metric import Grid
from headscope.portrait.pairs import Attention
from headscope.portrait.stage import draw, with_portraits
from headscope.portrait.texts import PARTS
from headscope.results.describe import LONGEST
from tests.references.hand_built_heads import (
    Rule,
    after_the_same,
    attention_at_random,
    attention_by,
    attention_of_words,
    nothing,
    object_to_verb,
    previous,
    same_token,
)
from tests.references.portrait_sample import pairs, sample, setup

RULES: dict[str, tuple[Rule, bool]] = {
    "previous token": (previous, False),
    "same token": (same_token, True),
    "after the same": (after_the_same, True),
    "object → verb": (object_to_verb, True),
    "first token": (nothing, True),
    "evenly": (nothing, False),
}


class OneLayer(Setup):
    """A study of one layer, whose heads are built by hand."""

    heads = len(RULES)

    @property
    def grid(self) -> Grid:
        return Grid((0,), self.heads)


def drawn_of(attention: dict[str, Attention]) -> xr.Dataset:
    """The result of heads with this attention."""
    all_pairs = {part: pairs("mini-gpt2", part) for part in PARTS}
    layer = OneLayer(**vars(setup("mini-gpt2")))
    object.__setattr__(layer, "heads", attention["fit"].pairs.shape[1])
    drawn = draw(layer, (0,), all_pairs, attention)
    return with_portraits(layer, xr.Dataset(), sample("mini-gpt2"), drawn)


@cache
def hand_built() -> xr.Dataset:
    rules: Sequence[tuple[Rule, bool]] = list(RULES.values())
    return drawn_of({part: attention_by(pairs("mini-gpt2", part), rules) for part in PARTS})


def test_every_head_is_called_what_it_was_built_to_be() -> None:
    assert hand_built()["behaviour"].values[0].tolist() == list(RULES)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("previous token", "L0H0 looks at the previous token (100 % of its weight)"),
        ("same token", "L0H1 rests on the first token ("),
        ("after the same", "L0H2 rests on the first token ("),
        ("object → verb", "L0H3 rests on the first token ("),
        ("first token", "L0H4 rests on the first token (100 % of its weight). "),
        ("evenly", "L0H5 spreads evenly over the tokens it sees."),
    ],
)
def test_every_sentence_begins_with_what_matters_most(name: str, begins: str) -> None:
    sentence = str(hand_built()["description"].values[0, list(RULES).index(name)])
    assert sentence[: len(begins)] == begins


def test_what_follows_the_sink_is_said_of_what_is_left() -> None:
    same, after, object_ = hand_built()["description"].values[0, 1:4].tolist()
    told = "Where the same token stood before, 100 % of what is left goes to "
    assert f"{told}that place" in same
    assert f"{told}what followed it" in after
    assert "The rest goes from an object to its verb (100 % of the weight there" in object_


def test_heads_built_of_features_are_explained_whole() -> None:
    explained = hand_built()["explained"].values[0]
    assert (explained[:5] > 0.98).all()
    assert np.isnan(explained[5])


def test_shares_add_up_and_lose_no_more_than_they_give() -> None:
    result = hand_built()
    total = result["explained_by"].sum("explained_with").values[0, :5]
    np.testing.assert_allclose(total, result["explained"].values[0, :5], atol=1e-5)
    by, only = (result[name].sel(explained_with="position") for name in
                ("explained_by", "explained_only"))  # fmt: skip
    assert float(by.values[0, 0]) > 0.9 and float(only.values[0, 0]) > 0.3


def test_every_head_built_by_hand_is_recognised() -> None:
    assert hand_built().attrs["which_head_all"] == 1.0


def test_words_that_all_look_at_are_anchor_words() -> None:
    result = drawn_of(
        {
            part: attention_of_words(pairs("mini-gpt2", part), 5.0, seed)
            for seed, part in enumerate(PARTS)
        }
    )
    assert result["behaviour"].values.tolist() == [["anchor words"]]
    sentence = "L0H0 looks at the same words from everywhere ("
    assert str(result["description"].values[0, 0])[: len(sentence)] == sentence


@pytest.mark.parametrize("sharpness", [0.05, 1.0, 3.0, 8.0])
def test_noise_has_no_name(sharpness: float) -> None:
    result = drawn_of(
        {
            part: attention_at_random(pairs("mini-gpt2", part), 24, sharpness, seed)
            for seed, part in enumerate(PARTS)
        }
    )
    assert set(result["behaviour"].values.ravel()) <= {"evenly", "widely", "unnamed"}
    explained = result["explained"].values[~result["explained"].isnull().values]
    assert (np.abs(explained) < 0.1).all()


def test_no_sentence_is_longer_than_is_read_in_one_breath() -> None:
    assert max(map(len, hand_built()["description"].values.ravel().tolist())) <= LONGEST
