"""Generated tokens are traced as if every step had been recorded and stitched together."""

import pytest
import torch
from torch import Tensor

import headscope as hs
from headscope.errors import ModelError
from headscope.model.generate import Request, Sampling, Writing, continue_text
from headscope.model.model import Model
from tests.contracts.family import tokenizer
from tests.model.tiny import family, tiny

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


def generated(model: Model, steps: int, seed: int = 0, **options: object) -> list[int]:
    """What transformers itself generates."""
    ids = torch.tensor([model.encode(PROMPT).ids])
    torch.manual_seed(seed)
    made = model.network.generate(  # pyright: ignore[reportCallIssue]
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=steps, **options
    )
    return made[0].tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.7},
        {"top_k": 5},
        {"top_p": 0.6},
        {"temperature": 2.0, "top_k": 40, "top_p": 0.9},
    ],
)
def test_drawn_tokens_are_those_of_transformers_with_the_same_seed(options: dict) -> None:
    model = tiny("Llama")
    free = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
    expected = generated(model, 6, seed=3, do_sample=True, **{**free, **options})
    text, _ = continue_text(
        model, model.encode(PROMPT), Request(6, Sampling(**options, seed=3)), lambda _: None
    )
    assert list(text.ids) == expected


def test_another_seed_draws_other_tokens_and_the_same_seed_the_same() -> None:
    draws = [tiny("Llama").trace(PROMPT, generate=8, temperature=3.0, seed=n) for n in (1, 1, 2)]
    assert draws[0].tokens == draws[1].tokens != draws[2].tokens


def test_writing_ends_with_the_text() -> None:
    model = family("Llama").model()
    second = generated(model, 2, do_sample=False)[-1]
    assert model.network.generation_config is not None
    model.network.generation_config.eos_token_id = [second]
    trace = model.trace(PROMPT, generate=9)
    assert len(trace.tokens) == 9 and len(generated(model, 9, do_sample=False)) == 9
    assert trace.weights[0].shape == (4, 9, 9)  # the row of the last token is there too
    torch.testing.assert_close(trace.weights[1].sum(-1), torch.ones(4, 9))


def test_penalties_of_the_model_count() -> None:
    model = family("Llama").model()
    plain = generated(model, 8, do_sample=False)
    config = model.network.generation_config
    assert config is not None
    config.repetition_penalty, config.no_repeat_ngram_size = 1.8, 2
    expected = generated(model, 8, do_sample=False)
    text, _ = continue_text(model, model.encode(PROMPT), Request(8), lambda _: None)
    assert list(text.ids) == expected != plain


def test_text_is_told_as_it_is_written() -> None:
    pieces: list[str] = []
    trace = hs.load("mini-gpt2").trace("The old cat", generate=12, progress=pieces.append)
    assert len(pieces) == 12
    assert "The old cat" + "".join(pieces) == trace.default.queries.text


def test_a_network_without_a_cache_is_traced_by_one_pass_and_says_so() -> None:
    trace = tiny("OpenAI GPT").trace(PROMPT, generate=3)
    assert "one pass over prompt and continuation, because its network" in trace.notes[0]
    assert len(trace.tokens) == 10
    assert trace.weights[0].shape == (4, 10, 10)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"temperature": -1.0}, r"temperature=-1\.0: give 0"),
        ({"top_k": 0}, "top_k=0: draw from at least 1"),
        ({"top_p": 1.5}, r"top_p=1\.5: give a share"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        tiny("Llama").trace(PROMPT, generate=2, **options)
    with pytest.raises(ModelError, match="say how many with generate="):
        tiny("Llama").trace(PROMPT, temperature=1.0)


def test_long_writing_is_decoded_a_few_tokens_at_a_time() -> None:
    model = hs.load("mini-gpt2")
    text = "The old cat sat on the mat. Naïve 🎉 cafés! " * 6
    ids = list(model.encode(text, special=False).ids)
    writing = Writing(model.tokenizer, ids[:3])
    pieces = [writing.add(index) for index in ids[3:]]
    text, spans = writing.finish()
    whole, begun = str(model.tokenizer.decode(ids)), str(model.tokenizer.decode(ids[:3]))
    assert begun + "".join(pieces) == begun + text == whole
    expected = model.encode(whole, special=False).offsets[3:]
    shift = expected[0][0]
    assert [text[a:b].strip() for a, b in spans] == [
        text[a - shift : b - shift].strip() for a, b in expected
    ]


def test_tokens_of_one_character_share_its_span() -> None:
    ids = tokenizer()("aé🎉b", add_special_tokens=False)["input_ids"]
    writing = Writing(tokenizer(), [2, 60])
    pieces = [writing.add(index) for index in ids]  # pyright: ignore[reportArgumentType]
    assert pieces == ["a", "", "é", "", "", "", "🎉", "b"]
    text, spans = writing.finish()
    assert text == "aé🎉b"
    assert spans == [(0, 1), (1, 2), (1, 2), *[(2, 3)] * 4, (3, 4)]
