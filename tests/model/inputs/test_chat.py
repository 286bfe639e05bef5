"""Chats: the model's own template, its markers, and what every turn is."""

import re
from itertools import compress
from typing import Any

import pytest

from headscope.errors import ModelError
from headscope.model.inputs.chat import Chat
from headscope.model.inputs.encode import encode, markers
from tests.references.chats import BOS, STYLES, Style, chat_model, style, tokenizer

BY_FAMILY = pytest.mark.parametrize("one", STYLES, ids=lambda one: one.family)


@BY_FAMILY
def test_tokens_of_a_chat_are_those_of_its_template(one: Style) -> None:
    model = chat_model(one.family)
    trace = model.trace(messages=one.messages, layers=[0])
    expected: Any = model.tokenizer.apply_chat_template(one.messages, tokenize=True)
    encoded = model.encode_chat(one.messages)
    assert list(encoded.ids) == list(expected["input_ids"])
    assert trace.tokens == encoded.labels
    assert encoded.labels.count(BOS) == one.writes_bos  # the tokenizer alone would add one
    flagged = set(compress(encoded.labels, encoded.special))
    marks = set(markers(model.tokenizer).values())
    assert flagged == {token for token in encoded.labels if token in marks}
    assert flagged >= {mark for mark in one.markers if mark in encoded.text}


@BY_FAMILY
def test_turns_hold_their_messages_and_nothing_of_others(one: Style) -> None:
    model = chat_model(one.family)
    trace = model.trace(messages=one.messages, layers=[0])
    side = trace.default.queries
    read = {span.name: _text(side, span.tokens) for span in trace.spans("message")}
    wanted = [(message["role"], message["content"]) for message in one.messages]
    named = [(re.sub(r" \d+$", "", name), text) for name, text in read.items()]
    preamble = named[: len(named) - len(wanted)]
    assert [role for role, _ in preamble] in ([], ["system"])
    assert named[len(preamble) :] == wanted
    turns = trace.spans("turn")
    assert trace.segments == turns
    assert sorted(token for span in turns for token in span.tokens) == [*range(len(side))]
    for turn, message in zip(turns, trace.spans("message"), strict=True):
        assert turn.name == message.name
        assert set(message.tokens) < set(turn.tokens) or not one.markers


@BY_FAMILY
def test_an_answer_is_begun_as_the_template_begins_it(one: Style) -> None:
    model = chat_model(one.family)
    trace = model.trace(messages=one.messages, generate=2, layers=[0])
    ids: Any = model.tokenizer.apply_chat_template(one.messages, add_generation_prompt=True)
    written = trace.generated
    assert written is not None and trace.prompt_length == len(ids["input_ids"])
    last = trace.segments[-1]
    assert last.name.startswith("assistant")
    assert set(written.tokens) <= set(last.tokens)


def test_a_begun_answer_is_gone_on_with() -> None:
    model = chat_model("SmolLM3")
    begun = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well, I"}]
    trace = model.trace(messages=begun, generate=3, layers=[0])
    text = trace.default.queries.text
    assert text[: text.index("Well, I") + 7].endswith("<|im_start|>assistant\nWell, I")
    assert [span.name for span in trace.segments] == ["user", "assistant"]
    assert set(trace.generated.tokens if trace.generated else ()) <= set(trace.segments[-1].tokens)


def test_a_message_that_repeats_its_header_is_found_behind_it() -> None:
    said = [{"role": "user", "content": "user"}, {"role": "assistant", "content": "assistant"}]
    trace = chat_model("SmolLM3").trace(messages=said, layers=[0])
    side = trace.default.queries
    starts = [side.offsets[span.tokens[0]][0] for span in trace.spans("message")]
    assert starts == [side.text.index("\nuser<") + 1, side.text.index("\nassistant<") + 1]


def test_old_reasoning_that_the_template_drops_leaves_the_turn() -> None:
    said = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "<think>hm</think>Yes."},
        {"role": "user", "content": "Two?"},
    ]
    trace = chat_model("Qwen 3").trace(messages=said, layers=[0])
    side = trace.default.queries
    assert "hm" not in side.text
    texts = [_text(side, span.tokens) for span in trace.segments]
    assert texts[1].startswith("<|im_start|>assistant") and "Yes." in texts[1]
    assert texts[2].startswith("<|im_start|>user") and "Two?" in texts[2]


def test_content_in_parts_and_calls_of_tools_are_read() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}"
        "{{ m['content'] }}{% elif m['content'] %}{% for p in m['content'] %}{{ p['text'] }}"
        "{% endfor %}{% endif %}{% for c in m['tool_calls'] or [] %}<call>{{ c['name'] }}"
        "{% endfor %}<|im_end|>\n{% endfor %}"
    )
    made = tokenizer(style("MPT"))
    made.chat_template = template
    said = [
        {"role": "user", "content": [{"type": "text", "text": "Add "}, {"text": "two."}]},
        {"role": "assistant", "content": None, "tool_calls": [{"name": "add"}]},
        {"role": "tool", "content": "2"},
    ]
    encoded = Chat("x", made, said).encode(answer=False, limit=None, truncate=False)
    found = [encoded.text[turn.start :].split("<|im_end|>")[0] for turn in encoded.turns]
    assert found == [
        "<|im_start|>user\nAdd two.", "<|im_start|>assistant\n<call>add", "<|im_start|>tool\n2",
    ]  # fmt: skip
    contents = [turn.content and encoded.text[slice(*turn.content)] for turn in encoded.turns]
    assert contents == ["Add two.", None, "2"]


def test_further_arguments_reach_the_template() -> None:
    made = tokenizer(style("MPT"))
    made.chat_template = "{{ greeting }}" + str(made.chat_template)
    said = [{"role": "user", "content": "Hi"}]
    chat = Chat("x", made, said, {"greeting": "Welcome. "})
    assert chat.encode(answer=False, limit=None, truncate=False).text.startswith("Welcome. ")


def test_markers_in_raw_text_are_special_and_unknown_words_are_not() -> None:
    model = chat_model("SmolLM3")
    raw = "<|im_start|>user\nHi <unk> there<|im_end|>"
    plain = model.trace(raw, special=False, layers=[0])
    assert plain.tokens[0] == "<|im_start|>" and model.trace(raw, layers=[0]).tokens[0] == BOS
    flags = dict(zip(plain.tokens, plain.default.queries.special, strict=True))
    assert flags["<|im_start|>"] and flags["<|im_end|>"]
    assert not flags["<unk>"] and not flags["H"]
    assert encode(model.tokenizer, "Hi").special == (True, False, False)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("Hello", "a list of messages, not a str"),
        ({"role": "user", "content": "Hi"}, "a list of messages, not a dict"),
        ([], "has no messages"),
        (["Hello"], "Message 1 is 'Hello', not a message"),
        ([{"role": "user", "content": "Hi"}, {"content": "Ho"}], "Message 2 has no role"),
        ([{"role": "user"}], r"Message 1 \(user\) has the content None"),
        ([{"role": "user", "content": 3}], r"Message 1 \(user\) has the content 3"),
    ],
)
def test_what_is_no_list_of_messages_is_refused(messages: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        chat_model("SmolLM3").encode_chat(messages)


def test_roles_that_a_template_refuses_or_leaves_out_are_named() -> None:
    hello, critic = {"role": "user", "content": "Hi"}, {"role": "critic", "content": "Bad."}
    with pytest.raises(
        ModelError, match=r"refuses these messages: System role not supported\. .*critic"
    ):
        chat_model("Gemma 2").encode_chat([hello, critic])
    with pytest.raises(ModelError, match="refuses these messages: roles must alternate"):
        chat_model("Mistral").encode_chat([hello, hello])
    with pytest.raises(ModelError, match="leaves out message 2, whose role is 'critic'"):
        chat_model("Phi-3").encode_chat([hello, critic])


def test_a_template_that_fails_and_a_model_without_one_say_so() -> None:
    hello = [{"role": "user", "content": "Hi"}]
    made = tokenizer(style("MPT"))
    made.chat_template = "{{ messages[7]['content'] }}"
    with pytest.raises(ModelError, match="chat template of x refuses"):
        Chat("x", made, hello).encode(answer=False, limit=None, truncate=False)
    made.chat_template = None
    with pytest.raises(ModelError, match="x has no chat template"):
        Chat("x", made, hello)


def test_messages_are_the_whole_input() -> None:
    model = chat_model("SmolLM3")
    with pytest.raises(ModelError, match="leave text, pair and bos out"):
        model.trace("Hi", messages=[{"role": "user", "content": "Hi"}])
    with pytest.raises(ModelError, match="nothing to trace"):
        model.trace()


def _text(side: Any, tokens: tuple[int, ...]) -> str:
    return side.text[side.offsets[tokens[0]][0] : side.offsets[tokens[-1]][1]]
