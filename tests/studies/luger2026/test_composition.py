"""What feeds each head: the stage of a run against a loop over its inputs."""

from typing import Any

import torch

import headscope as hs
from headscope.engine.setup import Setup
from headscope.model.why import compose
from headscope.studies import find_study
from headscope.studies.luger2026.inputs import inputs_again
from tests.references.tiny_models import causal_model, treebank

OPTIONS: dict[str, Any] = {
    "context": 24, "points": 6, "needles": 1, "depths": [50], "repeated_sequences": 1, "period": 4,
    "portrait": False,
}  # fmt: skip


def test_composition_is_that_of_the_first_inputs_of_the_sample() -> None:
    model, corpus = causal_model(), treebank().select(range(60))
    result = hs.study("luger2026", model, corpus, composition=3, **OPTIONS)
    composition = result["composition"]
    assert composition.dims == ("layer", "head", "side", "source")
    assert result.attrs["composition_inputs"] == 3
    torch.testing.assert_close(
        torch.tensor(composition.sum("source").values), torch.ones(3, 2, 2, dtype=torch.float64)
    )
    assert float(abs(composition.sel(layer=0, source="L0H0")).max()) == 0
    numbers = list(dict.fromkeys(result["sample_input"].values.ravel().tolist()))[:3]
    covariance, variance = torch.zeros(()), torch.zeros(())
    options = find_study("luger2026").with_options(OPTIONS)
    for example in inputs_again(Setup(model, corpus, options, {}, 64), numbers).examples:
        parts = compose(model, model.batch([example.tokens]))
        covariance = covariance + parts.covariance[0].double()
        variance = variance + parts.variance[0].double()
    expected = covariance / variance[..., None, None]
    torch.testing.assert_close(torch.tensor(composition.values), expected, rtol=1e-3, atol=1e-4)
