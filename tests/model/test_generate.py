"""The network's own `generate` writes, as its configuration says; one pass shows what it saw."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import headscope as hs
from headscope.errors import ModelError
from headscope.model.generate import (
    EQUAL,
    Sampling,
    Writing,
    begin,
    continue_text,
    rescaling,
    spans_of,
)
from headscope.model.model import Model
from tests.contracts.family import tokenizer
from tests.references.tiny_families import family, tiny

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
        keys = step[0].shape[3]
        for layer, weights in enumerate(step):
            stitched[layer][:, row:keys, :keys] = weights[0, :, row - keys :]
        row = keys
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


def written(model: Model, steps: int, sampling: Sampling | None = None) -> list[int]:
    """What Headscope has the network write."""
    source = model.encode(PROMPT)
    begun = begin(model, source, None)
    return list(continue_text(model, source, begun, steps, sampling or Sampling())[0].ids)


def configured(**settings: object) -> Model:
    """A network whose makers say how it is to write."""
    model = family("Llama").model()
    config = model.network.generation_config
    assert config is not None
    for name, value in settings.items():
        setattr(config, name, value)
    return model


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
    assert written(model, 6, Sampling(**options, seed=3)) == expected


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


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 1.8, "no_repeat_ngram_size": 2},
        {"do_sample": True, "temperature": 1.7, "top_p": 0.9},
        {"num_beams": 3},
        {"num_beams": 3, "do_sample": True, "temperature": 2.0, "num_return_sequences": 2},
        {"num_beams": 3, "length_penalty": -2.0, "eos_token_id": list(range(50, 200))},
        {"eos_token_id": list(range(4, 300)), "min_new_tokens": 3},
        {"suppress_tokens": list(range(100, 300))},
        {"forced_eos_token_id": 3},
        {"forced_eos_token_id": 3, "max_length": 9},
        {"prompt_lookup_num_tokens": 2, "use_cache": True, "repetition_penalty": 1.8},
    ],
)
def test_what_the_model_is_configured_to_write_is_written(settings: dict) -> None:
    model = configured(**settings)
    expected = generated(model, 8)
    state = torch.get_rng_state()
    assert written(model, 8) == expected
    assert torch.equal(torch.get_rng_state(), state)
    assert expected != generated(tiny("Llama"), 8)


def test_the_most_probable_tokens_can_be_had_of_any_model() -> None:
    greedy = generated(tiny("Llama"), 8)
    for settings in ({"do_sample": True, "temperature": 3.0}, {"num_beams": 3}):
        model = configured(**settings)
        assert written(model, 8, Sampling(temperature=0)) == greedy
        assert model.trace(PROMPT, generate=8, temperature=0).notes == (EQUAL,)


def test_a_trace_says_where_the_model_is_configured_not_to_take_the_most_probable_tokens() -> None:
    drawn = configured(do_sample=True).trace(PROMPT, generate=2)
    assert drawn.notes[1].startswith("The model's generation_config has its tokens drawn; temp")
    beams = configured(num_beams=3).trace(PROMPT, generate=2)
    assert "has its tokens found by 3 beams; temperature=0 takes" in beams.notes[1]
    assert configured(do_sample=True).trace(PROMPT, generate=2, top_k=9).notes == (EQUAL,)


def test_what_the_model_says_goes_before_what_transformers_assumes() -> None:
    model = configured(top_k=2, top_p=0.8)
    options = {"do_sample": True, "temperature": 2.0}
    expected = generated(model, 8, seed=1, **options)
    assert written(model, 8, Sampling(temperature=2.0, seed=1)) == expected
    own = Sampling(temperature=2.0, top_k=99, top_p=1.0, seed=1)
    expected = generated(model, 8, seed=1, **options, top_k=99, top_p=1.0)
    assert written(model, 8, own) == expected


def test_threads_draw_as_they_do_alone() -> None:
    def draw(seed: int) -> list[int]:
        return written(tiny("Llama"), 12, Sampling(temperature=3.0, seed=seed))

    alone = [draw(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(draw, range(6))) == alone


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_new_tokens": 5, "cache_implementation": "no such"}, "cannot write as its gener"),
        ({"token_healing": True}, "changes the text that it continues; set token_healing=False"),
    ],
)
def test_a_configuration_that_cannot_be_followed_is_one_sentence(
    settings: dict, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = configured(**settings)
    if "token_healing" in settings:  # of this tokenizer it would take another library
        monkeypatch.setattr(type(model.network), "heal_tokens", lambda _, ids, __: ids + 1)
    with pytest.raises(ModelError, match=sentence):
        model.trace(PROMPT, generate=2)


def test_an_error_of_who_is_told_is_not_blamed_on_the_model() -> None:
    def fail(_: str) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        tiny("Llama").trace(PROMPT, generate=2, progress=fail)


def longrope(original: int) -> Model:
    """Phi-3 with positions that are scaled otherwise beyond its first so many tokens."""
    phi = family("Phi-3")
    factors = {"short_factor": [1.0] * 4, "long_factor": [3.0, 5.0, 7.0, 9.0]}
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, **factors}
    options = {**phi.options, "original_max_position_embeddings": original}
    return replace(phi, options={**options, "rope_parameters": rope}).model()


@pytest.mark.parametrize(("original", "is_seen"), [(9, False), (12, True), (6, True)])
def test_a_trace_says_where_positions_were_rescaled_while_the_text_grew(
    original: int, is_seen: bool
) -> None:
    model = longrope(original)  # seven tokens become twelve
    trace = model.trace(PROMPT, generate=5)
    _, stitched = stepwise(model, 5)
    same = [torch.allclose(trace.weights[n], stitched[n], atol=1e-5) for n in trace.layers]
    assert all(same) == is_seen
    assert (
        "rescales positions with the length of the text (longrope)" in trace.notes[0]
    ) != is_seen
    assert (trace.notes == (EQUAL,)) == is_seen


def test_dynamic_rope_is_rescaled_at_every_step_past_its_limit() -> None:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    llama = family("Llama")
    config = replace(llama, options={**llama.options, "rope_parameters": rope}).network().config
    assert rescaling(config, 10, 64) is None
    assert rescaling(config, 10, 65) == rescaling(config, 70, 71) == "dynamic"


def test_text_is_told_as_it_is_written() -> None:
    pieces: list[str] = []
    trace = hs.load("mini-gpt2").trace("The old cat", generate=12, progress=pieces.append)
    assert len(pieces) == 12
    assert "The old cat" + "".join(pieces) == trace.default.queries.text


def test_text_that_beams_find_is_told_at_the_end() -> None:
    model, pieces = configured(num_beams=2), []
    trace = model.trace(PROMPT, generate=6, progress=pieces.append)
    assert len(pieces) >= 6
    assert trace.default.queries.text == PROMPT + "".join(pieces)


@pytest.mark.parametrize(("name", "is_sound"), [("Llama", True), ("ProphetNet", False)])
def test_a_cache_is_used_where_it_gives_what_a_plain_pass_gives(name: str, is_sound: bool) -> None:
    assert tiny(name).has_sound_cache == is_sound


def test_a_cache_that_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = family("Llama").model()
    forward = type(model.network).forward

    def forget(self: object, *args: object, **given: object) -> object:
        return forward(self, *args, **{**given, "past_key_values": None})  # pyright: ignore[reportArgumentType, reportCallIssue]

    monkeypatch.setattr(type(model.network), "forward", forget)
    assert not model.has_sound_cache


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
    writing = Writing(model.tokenizer, ids[:3], None)
    for index in ids[3:]:
        writing.add(index)
    writing.end()
    text = "".join(writing.pieces)
    whole, begun = str(model.tokenizer.decode(ids)), str(model.tokenizer.decode(ids[:3]))
    assert begun + text == whole
    expected = model.encode(whole, special=False).offsets[3:]
    spans, shift = spans_of(writing.pieces, 0), expected[0][0]
    assert [text[a:b].strip() for a, b in spans] == [
        text[a - shift : b - shift].strip() for a, b in expected
    ]


def test_tokens_of_one_character_share_its_span() -> None:
    ids = tokenizer()("aé🎉b", add_special_tokens=False)["input_ids"]
    told: list[str] = []
    writing = Writing(tokenizer(), [2, 60], told.append)
    for index in ids:  # pyright: ignore[reportGeneralTypeIssues]
        writing.add(index)  # pyright: ignore[reportArgumentType]
    writing.end()
    assert told == writing.pieces == ["a", "", "é", "", "", "", "🎉", "b"]
    assert spans_of(told, 5) == [(5, 6), (6, 7), (6, 7), *[(7, 8)] * 4, (8, 9)]


def test_bytes_that_become_no_character_are_told_at_the_end() -> None:
    first = tokenizer()("é", add_special_tokens=False)["input_ids"][0]  # pyright: ignore[reportIndexIssue]
    told: list[str] = []
    writing = Writing(tokenizer(), [2], told.append)
    writing.add(first)
    assert told == [""]
    writing.end()
    assert told == ["", "\ufffd"] and spans_of(writing.pieces, 0) == [(0, 1)]
