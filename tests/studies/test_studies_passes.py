"""How often each study reads an input: once, and the inputs that are kept as examples once more."""

from collections import Counter
from itertools import islice
from typing import Any

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.engine import stage as stages
from headscope.engine.measure import MeasureShards
from headscope.engine.question import read_inputs
from headscope.engine.setup import Setup
from headscope.model.inputs.batch import probe_batch
from headscope.model.model import Model
from headscope.model.writes import PROBE_TOKENS

SENTENCES = 60
PASSES = ("forward", "forward_fused", "forward_changed")  # of a network, by whichever path
Tokens = tuple[int, ...]


def count_passes(
    monkeypatch: pytest.MonkeyPatch, study: str, model: str, **options: Any
) -> tuple[xr.Dataset, dict[str, Counter[Tokens]]]:
    """The result, and how often the network read each input in every stage.

    In the first stage that is as often as there are inputs, proofs on a few tokens aside.
    """
    loaded = hs.load(model, device="cpu")
    probe = tuple(probe_batch(loaded.network, PROBE_TOKENS, loaded.device).ids[0].tolist())
    assert loaded.can_pad("right")  # is tried here, not while passes are counted
    passes: dict[str, Counter[Tokens]] = {"before": Counter()}
    run_stage = stages.run_stage

    def counting(pass_of: Any) -> Any:
        def run(own: Model, batch: Any, *given: Any, **more: Any) -> Any:
            of_stage = list(passes.values())[-1]
            of_stage.update(
                tuple(ids[mask].tolist()) for ids, mask in zip(batch.ids, batch.mask, strict=True)
            )
            return pass_of(own, batch, *given, **more)

        return run

    def run_counted(stage: Any, setup: Setup, *given: Any) -> Any:
        passes[stage.name] = Counter()
        done = run_stage(stage, setup, *given)
        if isinstance(stage, MeasureShards):
            of_shards = passes["shards"]
            assert of_shards.total() - of_shards[probe] == count_inputs(stage, setup)
        return done

    for name in PASSES:
        monkeypatch.setattr(Model, name, counting(getattr(Model, name)))
    monkeypatch.setattr(stages, "run_stage", run_counted)
    corpus = hs.Corpus.from_sentences(islice(hs.demo_corpus(), SENTENCES))
    # Portraits and networks of random weights read samples of their own.
    result = hs.study(study, loaded, corpus, portrait=False, untrained=False, **options)
    assert set(passes.pop("before")) <= {probe}
    for of_stage in passes.values():
        del of_stage[probe]
    return result, {name: of_stage for name, of_stage in passes.items() if of_stage}


def count_inputs(stage: MeasureShards, setup: Setup) -> int:
    """How many inputs of all kinds the study makes of its corpus."""
    parts = stage.parts(setup)
    return sum(
        len(inputs.examples)
        for shard in stage.pieces(setup, xr.Dataset())
        for inputs in read_inputs(setup, parts, shard)
    )


def chosen(result: xr.Dataset, *variables: str) -> int:
    """How many inputs are looked at again."""
    numbers = np.concatenate([result[name].values.ravel() for name in variables])
    return len(set(numbers[numbers >= 0].tolist()))


@pytest.mark.parametrize("model", ["mini-gpt2", "mini-bert"])
def test_vig2019_reads_the_corpus_once_and_its_examples_again(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, passes = count_passes(monkeypatch, "vig2019", model)
    assert passes["shards"].total() == result.attrs["sentences"] == SENTENCES
    assert passes["second_look"].total() == chosen(result, "example_input")
    assert set(passes["second_look"].values()) == {1}


def test_luger2026_reads_everything_once_and_the_chosen_texts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, passes = count_passes(
        monkeypatch, "luger2026", "mini-gpt2", context=24, rest=True, points=30, needles=2,
        depths=[50], repeated_sequences=3, period=8,
    )  # fmt: skip
    assert set(passes) == {"shards", "second_look"}
    assert set(passes["shards"].values()) == {1}  # texts, needles, series and what is said twice
    assert result.attrs["sentences"] < passes["shards"].total()
    assert passes["second_look"].total() == chosen(result, "example_input", "sample_input")
    assert set(passes["second_look"].values()) == {1}


def test_clark2019_reads_every_kind_of_input_once_and_its_examples_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Segments, sentences, windows of documents and sequences said twice."""
    result, passes = count_passes(
        monkeypatch, "clark2019", "mini-bert", probes=False, gradients=False, max_tokens=64,
        repeated_sequences=3, period=8,
    )  # fmt: skip
    assert result.attrs["sentences"] + SENTENCES < passes["shards"].total() < 3 * SENTENCES
    assert max(passes["shards"].values()) <= 2  # sentences that are windows by themselves, too
    assert passes["second_look"].total() == chosen(result, "example_input")
