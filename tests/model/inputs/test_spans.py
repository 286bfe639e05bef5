"""Named spans of tokens, found in the text."""

import re

import pytest

from headscope.errors import ModelError
from headscope.model.inputs.spans import Span, parse_ranges, ranges
from headscope.model.trace import Trace
from tests.references.tiny_families import tiny

TEXT = 'One two. "Three?" said he!\nFour\n\nFive…  Six.'


@pytest.fixture(scope="module")
def trace() -> Trace:
    return tiny("GPT-2").trace(TEXT, layers=[0])


def _texts(trace: Trace, spans: tuple[Span, ...]) -> list[str]:
    side = trace.default.keys
    return [side.text[side.offsets[s.tokens[0]][0] : side.offsets[s.tokens[-1]][1]] for s in spans]


def test_paragraphs_and_sentences_are_cut_as_a_reader_would(trace: Trace) -> None:
    paragraphs = trace.spans("paragraph")
    assert _texts(trace, paragraphs) == ['One two. "Three?" said he!\nFour', "Five…  Six."]
    assert [span.name for span in paragraphs] == ["paragraph 1", "paragraph 2"]
    sentences = _texts(trace, trace.spans("sentence"))
    assert sentences == ["One two.", '"Three?" said he!', "Four", "Five…", "Six."]


def test_a_pattern_names_its_spans_by_group_or_by_text(trace: Trace) -> None:
    words = trace.spans(pattern=r"\b[FS]\w+")
    assert [span.name for span in words] == ["Four", "Five", "Six"]
    named = trace.spans(pattern=r"(?P<name>F)(?P<span>\w+)")
    assert [span.name for span in named] == ["F 1", "F 2"]
    assert _texts(trace, named) == ["our", "ive"]
    assert trace.spans(pattern=re.compile("four", re.IGNORECASE))[0].name == "Four"


def test_characters_give_every_token_that_shows_there(trace: Trace) -> None:
    (span,) = trace.spans(characters={"two": (3, 7)})
    assert _texts(trace, (span,)) == ["two"]  # the space before it shows nothing
    assert not {0, len(trace.tokens) - 1} & set(span.tokens)  # [CLS] and [SEP]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"characters": {"far": (4, 400)}}, f"it is 4 to 400, but .* characters 0 to {len(TEXT)}"),
        ({"characters": {"back": (4, 4)}}, "lies outside the text"),
        ({"characters": {"gap": (26, 27)}}, "has no tokens: .* blank"),
        ({"pattern": "seven"}, "'seven' finds nothing in"),
        ({"pattern": "z*"}, "finds nothing in .* at least one character"),
        ({"pattern": "("}, "is no regular expression"),
        ({"by": "turn"}, "no spans by turn: the text is no chat"),
        ({"by": "chapter"}, "choose turn, message, role, paragraph, sentence"),
        ({"by": "sentence", "pattern": "x"}, "only one of them"),
    ],
)
def test_what_cannot_be_found_is_refused(trace: Trace, options: dict, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        trace.spans(**options)


@pytest.mark.parametrize("tokens", [(3,), (3, 4, 5), (0, 2, 3, 9), tuple(range(40))])
def test_a_span_survives_being_written(tokens: tuple[int, ...]) -> None:
    span = Span("answer, part 2", tokens)
    assert Span.parse(str(span)) == span
    assert parse_ranges(ranges(tokens)) == tokens


@pytest.mark.parametrize("text", ["", "answer", "5-3 back", "3- x", "3-5", "a-b c"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        Span.parse(text)
