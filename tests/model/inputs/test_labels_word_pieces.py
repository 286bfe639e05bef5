"""Whether a tokenizer marks word pieces is its property: no single text tells it."""

from collections.abc import Callable
from pathlib import Path

import pytest

import headscope as hs
from headscope.model.inputs.labels import marks_word_pieces
from headscope.model.model import Model
from headscope.text.corpus import Corpus
from headscope.views.labels import gaps, spaces_before
from tests.references.tiny_models import bidirectional_model, causal_model, make_sentences
from tests.references.tokenizers_by_kind import sentencepiece_like

TEXT = "a dog ."  # no word of it is split


@pytest.mark.parametrize(
    ("make", "marks"), [(bidirectional_model, True), (causal_model, False)], ids=["##", "bytes"]
)
def test_a_trace_and_a_run_say_what_their_tokenizer_does(
    make: Callable[[], Model], marks: bool, tmp_path: Path
) -> None:
    model = make()
    trace = model.trace(TEXT)
    assert not any(token.startswith("##") for token in trace.default.queries.labels)
    trace.save(tmp_path / "one.hst")
    for one in (trace, hs.open_trace(tmp_path / "one.hst")):
        assert one.word_pieces is marks
    corpus = Corpus.from_sentences(make_sentences(4))
    result = hs.study("vig2019", model, corpus)
    assert result.attrs["word_pieces"] == ("##" if marks else "")


def test_a_mark_for_spaces_is_none_for_word_pieces() -> None:
    assert not marks_word_pieces(sentencepiece_like())
    assert not marks_word_pieces(hs.load("mini-gpt2").tokenizer)
    assert marks_word_pieces(hs.load("mini-bert").tokenizer)


def test_what_is_not_in_the_text_is_judged_by_the_marks_of_its_tokenizer() -> None:
    tokens = ["hello", "[UNK]", "[UNK]"]
    assert spaces_before(tokens, "hello", word_pieces=True) == (False, True, True)
    assert spaces_before(tokens, "hello", word_pieces=False) == (False, False, False)
    spans = [(0, 5), (0, 0), (0, 0)]
    assert gaps(tokens, "hello", spans, word_pieces=True) == [0, 1, 1]
    assert gaps(tokens, "hello", spans, word_pieces=False) == [0, 0, 0]
