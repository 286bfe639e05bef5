"""A shard that is observed far from the host gives the same sums."""

from dataclasses import replace

import pytest
import torch

from headscope.engine import Setup, forward
from headscope.model.capture import modes
from headscope.observe import Cut, packing_of
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from tests.references.tiny_models import MODELS, make_sentences

TOKENS = 64


def send(cut: Cut, device: torch.device) -> Cut:
    """What a GPU is given: copies, with the host's batch beside them."""
    seen, there = cut.annotated, packing_of(cut.annotated).to(device)
    labels = {name: codes.clone() for name, codes in seen.labels.items()}
    away = replace(seen, mask=seen.mask.clone(), null=seen.null.clone(), labels=labels, host=seen)
    return Cut(replace(cut.batch, packing=there), away)


@pytest.mark.parametrize("kind", MODELS)
def test_a_shard_far_away_gives_the_sums_of_one_at_hand(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, study = Corpus.from_sentences(make_sentences(40)), find_study("vig2019")
    setup = Setup(MODELS[kind](), corpus, study.with_options({}), study.labels(corpus), TOKENS)
    (part,) = study.parts(setup)
    metrics = [metric for metric in part.metrics if not metric.needs_matrices]
    columns = part.kind.make(setup, Excerpt(list(corpus)), 0).columns
    monkeypatch.setattr(modes, "takes", lambda query, value: True)
    near = forward.observe(setup.model, columns, metrics, TOKENS, "fused")
    monkeypatch.setattr(forward, "is_packed", lambda model: True)
    monkeypatch.setattr(Cut, "to", send)
    far = forward.observe(setup.model, columns, metrics, TOKENS, "fused")
    for name, sums in near.items():
        for key, values in sums.items():
            torch.testing.assert_close(far[name][key], values, msg=f"{name} {key}")
