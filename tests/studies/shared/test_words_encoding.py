"""Words and tokens of sentences, in each of the three ways, against a plain reading."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from headscope.model.inputs.frame import find_frame
from headscope.model.model import Model
from headscope.studies.shared.words import (
    SkipError,
    WordTokens,
    encode_words,
    keeps_words_apart,
    settle_bos,
)
from headscope.text.alignment import JOINED, SEVERAL, SPLIT, WORDS, Sharing, align
from headscope.text.sentence import ROOT, Sentence, Word
from tests.references.random_sentences import sentences
from tests.references.tiny_models import MODELS, causal_model, make_sentences
from tests.references.tokenizers_by_kind import sentencepiece_like
from tests.references.treebank import held, make_units, read_tokens


def sentence(text: str, *spans: tuple[int, int]) -> Sentence:
    words = tuple(Word(text[a:b], a, b, head=ROOT, deprel="root") for a, b in spans)
    return Sentence(text, words)


@pytest.mark.parametrize("kind", list(MODELS))
def test_sentences_without_contractions_are_encoded_as_usual(kind: str) -> None:
    model = MODELS[kind]()
    frame = find_frame(model.tokenizer)
    for each in encode_words(model, make_sentences(10)):
        assert isinstance(each, WordTokens)
        usual = model.encode(each.sentence.text)
        assert each.tokens.ids == usual.ids
        assert each.tokens.special == usual.special
        assert len(each.tokens) == len(usual)
        assert len(frame) == sum(usual.special)


def test_a_word_inside_another_is_kept_apart() -> None:
    """ "thecat" is one run of letters, but two words of the corpus."""
    model = causal_model()
    joined = sentence("thecat sees", (0, 3), (3, 6), (7, 11))
    (made,) = encode_words(model, [joined], "words")
    assert isinstance(made, WordTokens)
    pieces = [
        "".join(made.tokens.text[slice(*made.tokens.offsets[t])] for t in tokens).strip()
        for tokens in made.tokens_of_word
    ]
    assert pieces == ["the", "cat", "sees"]


def test_sentences_that_cannot_be_used_are_named() -> None:
    model = causal_model()
    long = " ".join(["telescope"] * 60)
    spans = [(n * 10, n * 10 + 9) for n in range(60)]
    shared = sentence("du", (0, 2), (0, 2))
    made = encode_words(model, [sentence(long, *spans), shared], "strict")
    assert [str(each) for each in made] == ["too long", "alignment: shared"]
    assert all(isinstance(each, SkipError) for each in made)


def test_no_sentences_give_no_tokens() -> None:
    assert encode_words(causal_model(), []) == []


def test_only_a_text_without_any_special_token_is_given_a_bos_token() -> None:
    causal = causal_model().tokenizer
    with_bos = PreTrainedTokenizerFast(
        tokenizer_object=causal.backend_tokenizer, bos_token="<|end|>", eos_token="<|end|>"
    )
    assert settle_bos(with_bos, "auto") == "always"
    assert settle_bos(with_bos, "never") == "never"
    assert settle_bos(causal, "auto") == "auto"
    assert settle_bos(MODELS["bidirectional"]().tokenizer, "auto") == "auto"


def test_where_spaces_would_be_invented_the_whole_sentence_is_encoded() -> None:
    tokenizer = sentencepiece_like()
    assert not keeps_words_apart(tokenizer)
    assert keeps_words_apart(causal_model().tokenizer)
    model = Model(causal_model().network, tokenizer, name="prefixing")
    dont = sentence("don't", (0, 2), (2, 5))
    (made,) = encode_words(model, [dont], "strict")
    usual = model.encode(dont.text)
    alignment = align([dont], [usual.offsets], [usual.special], strict=True)
    assert isinstance(made, SkipError)
    assert str(made) == f"alignment: {alignment.refused[0]}"


@pytest.mark.parametrize("sharing", ["overlap", "strict", "words"])
@pytest.mark.parametrize("kind", list(MODELS))
@given(drawn=st.lists(sentences(), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_words_and_tokens_meet_as_in_a_plain_reading(
    kind: str, sharing: Sharing, drawn: list[Sentence]
) -> None:
    model = MODELS[kind]()
    for given_sentence, made in zip(drawn, encode_words(model, drawn, sharing), strict=True):
        tokens = read_tokens(model, given_sentence, apart=sharing != "overlap", framed=True)
        shares = held(given_sentence.words, tokens)
        several = sum(len(each) > 1 for each in shares)
        if isinstance(made, SkipError):
            assert str(made) == "too long" or sharing == "strict" or not any(shares)
            continue
        joined, place = make_units(given_sentence, shares)
        assert list(made.tokens.ids) == tokens.ids
        assert list(made.tokens.offsets) == tokens.spans
        assert made.sentence == joined
        assert list(made.word_of_token) == [place[min(each)] if each else -1 for each in shares]
        assert made.counts == {
            WORDS: len(place),
            SPLIT: sum(len(tokens) > 1 for tokens in made.tokens_of_word),
            SEVERAL: several,
            JOINED: sum(place.count(unit) > 1 for unit in place),
        }
        for name, word in zip(made.names, joined.words, strict=True):
            inside = [w for w in given_sentence.words if word.start <= w.start < word.end]
            assert name in [each.text for each in inside]
            assert len(inside) > 1 or name == word.text


def test_words_written_as_one_are_encoded_once() -> None:
    du = Sentence("du chat", (Word("de", 0, 2), Word("le", 0, 2), Word("chat", 3, 7)))
    for sharing in ("overlap", "words"):
        (made,) = encode_words(causal_model(), [du], sharing)
        assert isinstance(made, WordTokens)
        assert [word.text for word in made.sentence.words] == ["du", "chat"]
        covered = [made.tokens.text[slice(*span)] for span in made.tokens.offsets]
        assert "".join(covered).replace(" ", "") == "duchat"
