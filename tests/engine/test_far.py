"""A shard that is observed far from the host gives the same states."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from headscope.engine import forward
from headscope.metrics import metric
from headscope.metrics.metric import MatrixMetric
from headscope.metrics.ratio import MatrixRatio
from headscope.model.capture import modes
from headscope.observe.batch import packing_of
from headscope.observe.inputs import Cut
from headscope.observe.layer import Layer
from headscope.studies import find_study
from headscope.studies.study import Setup
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from tests.engine.tiny import MODELS, make_sentences

TOKENS = 64


def send(cut: Cut, device: torch.device) -> Cut:
    """What a GPU is given: copies, with the host's batch beside them."""
    seen, there = cut.annotated, packing_of(cut.annotated).to(device)
    labels = {name: codes.clone() for name, codes in seen.labels.items()}
    away = replace(seen, mask=seen.mask.clone(), null=seen.null.clone(), labels=labels, host=seen)
    return Cut(replace(cut.batch, packing=there), away)


@pytest.mark.parametrize("kind", MODELS)
def test_a_shard_far_away_gives_the_states_of_one_at_hand(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, study = Corpus.from_sentences(make_sentences(40)), find_study("vig2019")
    setup = Setup(MODELS[kind](), corpus, study.with_options({}), study.labels(corpus), TOKENS)
    (part,) = study.parts(setup)
    metrics = tuple(m for m in part.metrics if not isinstance(m, MatrixMetric | MatrixRatio))
    examples = part.inputs(setup, Excerpt(list(corpus)), 0).examples
    monkeypatch.setattr(modes, "takes", lambda query, value: True)
    near = forward.observe(setup.model, examples, metrics, TOKENS, "fused")
    monkeypatch.setattr(forward, "is_packed", lambda model: True)
    monkeypatch.setattr(Cut, "to", send)
    far = forward.observe(setup.model, examples, metrics, TOKENS, "fused")
    for name, state in near.items():
        for key, values in (state.sums | state.records).items():
            other = (far[name].sums | far[name].records)[key]
            np.testing.assert_array_equal(other, values, err_msg=f"{name} {key}")


def test_what_waits_for_the_host_keeps_no_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, study = Corpus.from_sentences(make_sentences(40)), find_study("vig2019")
    setup = Setup(MODELS["causal"](), corpus, study.with_options({}), study.labels(corpus), TOKENS)
    (part,) = study.parts(setup)
    metrics = tuple(m for m in part.metrics if not isinstance(m, MatrixMetric | MatrixRatio))
    columns = part.inputs(setup, Excerpt(list(corpus)), 0).columns
    monkeypatch.setattr(metric, "is_far", lambda tensor: True)
    states = {each.name: each.zero(len(columns)) for each in metrics}
    loop, layers = forward._make_loop(metrics, states, setup.model.device), []
    add_layer = forward._Loop.add_layer

    def watch(self: forward._Loop, layer: Layer) -> None:
        add_layer(self, layer)
        layers.append(weakref.ref(layer))

    monkeypatch.setattr(forward._Loop, "add_layer", watch)
    with torch.inference_mode():
        for cut in forward._read_texts(setup.model, columns, TOKENS, loop):
            forward._observe_batch(setup.model, cut, loop, "fused", "raw")
    gc.collect()
    assert any(state.pending for state in states.values())
    assert layers and not any(layer() is not None for layer in layers)
