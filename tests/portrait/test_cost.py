"""What losing a head costs: against a loop over texts, heads and tokens."""

import json
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.engine.setup import Setup
from headscope.head import Head
from headscope.model.model import Model
from headscope.portrait.cost import CostStage, Replacing
from headscope.results.describe import PORTRAIT, read_description
from tests.references.tiny_models import bidirectional_model, causal_model, treebank

TEXTS = 6


def study(model: Any, **options: Any) -> xr.Dataset:
    return hs.study("vig2019", model, treebank(400), untrained=False, **options)


def replacing(model: Any, result: xr.Dataset) -> Replacing:
    setup = Setup(model, treebank(400), {"cost": TEXTS}, {}, batch_tokens=64)
    return Replacing(setup, 1, setup.bos, False, result[[PORTRAIT]])


def test_the_rise_of_the_loss_is_that_of_a_loop_over_texts_and_tokens() -> None:
    model = causal_model()
    result = study(model, cost=TEXTS)
    work, head = replacing(model, result), Head(1, 1)
    found: dict[int, torch.Tensor] = {}
    outputs: list[torch.Tensor] = []

    def keep(layer: int, output: torch.Tensor) -> torch.Tensor:
        if layer == head.layer:
            outputs.append(output[0, :, head.head])
        return output

    with torch.no_grad():
        for number, text in enumerate(work.texts):
            found[number] = model.forward_changed(model.batch([text.tokens]), keep).logits[0]
        mean = torch.cat(outputs).mean(0)

        def replace(layer: int, output: torch.Tensor) -> torch.Tensor:
            if layer == head.layer:
                output = output.clone()
                output[:, :, head.head] = mean
            return output

        total, count = 0.0, 0
        for number, text in enumerate(work.texts):
            batch = model.batch([text.tokens])
            logits = model.forward_changed(batch, replace).logits[0]
            for place, token in enumerate(text.tokens.ids[1:]):
                losses = [float(-each[place].log_softmax(-1)[token])
                          for each in (logits, found[number])]  # fmt: skip
                total += losses[0] - losses[1]
                count += 1
    cost = result["mean_replacement"].sel(head._asdict())
    assert float(cost) == pytest.approx(total / count, rel=1e-3, abs=1e-6)
    assert float(result["mean_replacement_denominator"].sum()) == count


@pytest.mark.parametrize("make", [causal_model, bidirectional_model])
def test_where_a_name_applies_and_elsewhere_are_all_tokens(make: Any) -> None:
    result = study(make(), cost=TEXTS)
    everywhere = result["mean_replacement_numerator"].sum("group")
    parts = result["replacement_where_numerator"].sum(["group", "where"])
    tokens = result["replacement_where_denominator"].sum(["group", "where"])
    for layer in result["layer"].values:
        for head in result["head"].values:
            at = {"layer": layer, "head": head}
            stored = str(result[PORTRAIT].sel(at).item())
            lead = read_description(Head(int(layer), int(head)), "", stored).lead
            if lead is None or not float(tokens.sel(at)):
                assert float(tokens.sel(at)) == 0
                continue
            assert float(tokens.sel(at)) == float(result["mean_replacement_denominator"].sum())
            assert float(parts.sel(at)) == pytest.approx(float(everywhere.sel(at)), abs=1e-9)


def test_pieces_and_batches_of_another_size_give_the_same_cost() -> None:
    model = causal_model()
    result = study(model, cost=TEXTS)
    other = study(model, cost=TEXTS, batch_tokens=40)
    np.testing.assert_allclose(other["mean_replacement"], result["mean_replacement"], atol=1e-6)


def test_it_is_left_out_unless_asked_for_and_a_model_without_a_loss_says_why() -> None:
    setup = Setup(causal_model(), treebank(400), {"cost": 0}, {}, batch_tokens=64)
    assert CostStage().pieces(setup, xr.Dataset({PORTRAIT: 0})) == ()
    result = study(bidirectional_model(), cost=0)
    assert "mean_replacement" not in result
    network: Any = causal_model().network
    model = Model(network.base_model, causal_model().tokenizer, name="headless")
    reason = json.loads(study(model, cost=TEXTS).attrs["left_out"])["replacement_where"]
    assert reason == "the model has no language-model head, so there is no loss to differentiate"
