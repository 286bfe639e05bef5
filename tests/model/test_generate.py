"""Generated tokens are traced as if every step had been recorded and stitched together."""

import pytest
import torch
from torch import Tensor

from headscope.errors import ModelError
from headscope.model.generate import _spans
from headscope.model.model import Model
from tests.contracts.family import tokenizer
from tests.model.tiny import tiny

PROMPT = "Birds"


def stepwise(model: Model, steps: int) -> tuple[list[int], list[Tensor]]:
    """Greedy generation with a cache; one matrix per layer, rows stitched step by step."""
    ids = torch.tensor([model.encode(PROMPT).ids])
    output = model.network.generate(  # pyright: ignore[reportCallIssue]
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=steps + 1,
        output_attentions=True,
        return_dict_in_generate=True,
        eos_token_id=None,
    )
    layers = len(output.attentions[0])
    size = ids.shape[1] + steps
    stitched = [torch.zeros(4, size, size) for _ in range(layers)]
    row = 0
    for step in output.attentions:
        for layer, weights in enumerate(step):
            queries, keys = weights.shape[2:]
            stitched[layer][:, row : row + queries, :keys] = weights[0]
        row += step[0].shape[2]
    return output.sequences[0, :size].tolist(), stitched


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "GPT-J"])
def test_one_pass_equals_the_stitched_steps(name: str) -> None:
    model = tiny(name)
    trace = model.trace(PROMPT, generate=5)
    ids, stitched = stepwise(model, 5)
    assert trace.prompt_length == 7
    assert len(trace.tokens) == 12
    assert list(model.tokenizer.convert_ids_to_tokens(ids[:7])) == list(trace.tokens[:7])
    for layer in trace.layers:
        torch.testing.assert_close(trace.weights[layer], stitched[layer], rtol=0, atol=1e-5)


def test_an_encoder_decoder_writes_its_target() -> None:
    trace = tiny("BART").trace(PROMPT, generate=4)
    assert trace.prompt_length == 1
    assert len(trace.stack("decoder").queries) == 5
    assert trace.notes


def test_a_target_can_be_begun() -> None:
    trace = tiny("BART").trace(PROMPT, target="V", generate=2)
    assert trace.prompt_length == 3
    assert len(trace.stack("cross").queries) == 5


def test_generation_that_cannot_work_is_refused() -> None:
    with pytest.raises(ModelError, match="not a causal language model"):
        tiny("BERT").trace(PROMPT, generate=1)
    with pytest.raises(ModelError, match="cannot be negative"):
        tiny("GPT-2").trace(PROMPT, generate=-1)
    with pytest.raises(ModelError, match="more than the 64"):
        tiny("GPT-2").trace(PROMPT, generate=60)
    with pytest.raises(ModelError, match="single text"):
        tiny("GPT-2").trace(PROMPT, "sing", generate=1)


def test_a_network_without_a_head_cannot_generate() -> None:
    model = tiny("GPT-2")
    body = Model(model.network.base_model, model.tokenizer, name="body")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="no language-model head"):
        body.trace(PROMPT, generate=1)


def test_tokens_of_one_character_share_its_span() -> None:
    ids = tokenizer()("aé🎉b", add_special_tokens=False)["input_ids"]
    text, spans = _spans(tokenizer(), [2, 60], ids)  # pyright: ignore[reportArgumentType]
    assert text == "aé🎉b"
    assert spans == [(0, 1), (1, 2), (1, 2), *[(2, 3)] * 4, (3, 4)]
