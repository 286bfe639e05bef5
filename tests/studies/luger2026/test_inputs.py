"""Documents are cut into consecutive inputs, and nothing of them is lost without being counted."""

import numpy as np
import pytest

import headscope as hs
from headscope.engine import Inputs, Setup
from headscope.errors import RunError
from headscope.model.inputs.encode import encode_all
from headscope.model.model import Model
from headscope.studies import find_study
from headscope.studies.luger2026 import inputs as cutting
from headscope.studies.luger2026.inputs import (
    find_delimiters,
    inputs_again,
    join_lines,
    settle_context,
    split_number,
    text_inputs,
)
from headscope.studies.luger2026.made_inputs import hide
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence
from tests.references.tiny_models import MODELS, make_sentences

CONTEXT = 10


def make_setup(
    kind: str, rest: bool = False, corpus: Corpus | None = None, context: int = CONTEXT
) -> Setup:
    options = find_study("luger2026").with_options({"context": context, "rest": rest})
    given = corpus or Corpus.from_sentences(make_sentences(60))
    return Setup(MODELS[kind](), given, options, {}, 64)


def cut(setup: Setup) -> Inputs:
    return text_inputs(setup, list(setup.corpus), 0)


def plain_cut(setup: Setup) -> tuple[list[list[int]], int, int]:
    """The inputs as lists of ids, and how many rests and short documents there are."""
    tokenizer = setup.model.tokenizer
    before, after = ([], []) if setup.model.is_causal else ([2], [3])  # [CLS] and [SEP]
    room = setup.options["context"] - len(before) - len(after)
    found, rests, short = [], 0, 0
    for sentences in setup.corpus.documents():
        text = " ".join(sentence.text for sentence in sentences)
        ids = encode_all(tokenizer, [text], special=False)[0].ids
        pieces = [ids[start : start + room] for start in range(0, len(ids), room)]
        if len(pieces[-1]) < room:
            last = pieces.pop()
            if setup.options["rest"] and len(last) > 1:
                pieces.append(last)
            elif pieces:
                rests += 1
            else:
                short += 1
        found += [[*before, *piece, *after] for piece in pieces]
    return found, rests, short


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rest", [True, False])
def test_inputs_are_consecutive_stretches_of_documents(kind: str, rest: bool) -> None:
    setup = make_setup(kind, rest)
    made, (expected, rests, short) = cut(setup), plain_cut(setup)
    columns = made.columns
    bounds = zip(columns.starts, columns.starts + columns.lengths, strict=True)
    assert [columns.ids[start:stop].tolist() for start, stop in bounds] == expected
    assert made.skipped.get(cutting.RESTS, 0) == rests
    assert made.skipped.get(f"document shorter than {CONTEXT} tokens", 0) == short
    assert rest or rests  # with them only a single token is left out
    assert [list(example.tokens.ids) for example in made.examples] == expected
    assert len(set(columns.numbers.tolist())) == len(expected)


def test_short_documents_are_counted() -> None:
    setup = make_setup("causal", context=40, corpus=Corpus.from_sentences(
        [Sentence("the cat", document="a"), Sentence("the dog sees a cat.", document="b")]
    ))  # fmt: skip
    made = cut(setup)
    assert len(made.examples) == 0
    assert made.skipped == {"document shorter than 40 tokens": 2}


@pytest.mark.parametrize("kind", MODELS)
def test_inputs_are_made_again_by_their_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "PASSAGE", 3)  # sentences: documents have several passages
    setup = make_setup(kind, rest=True)
    whole = cut(setup)
    wanted = whole.columns.numbers[::3].tolist()
    again = inputs_again(setup, wanted)
    assert again.columns.numbers.tolist() == wanted
    for row, example in enumerate(again.examples):
        assert example == whole.examples[3 * row]
    assert split_number(wanted[-1])[0] % 10 in (0, 3, 6, 9)  # the first sentence of a passage


@pytest.mark.parametrize("kind", MODELS)
def test_shards_of_whole_documents_make_the_same_inputs(kind: str) -> None:
    setup = make_setup(kind)
    sentences = list(setup.corpus)
    parts = [text_inputs(setup, sentences[start : start + 20], start) for start in (0, 20, 40)]
    whole = cut(setup).columns
    assert np.concatenate([part.columns.ids for part in parts]).tolist() == whole.ids.tolist()
    numbers = np.concatenate([part.columns.numbers for part in parts])
    assert numbers.tolist() == whole.numbers.tolist()
    groups = np.concatenate([part.columns.groups for part in parts])
    assert groups.tolist() == whole.groups.tolist()


def test_lines_are_joined_as_they_were() -> None:
    lines = ["one.", "two.", "three.", "four."]
    paragraphs = [0, 0, 1, 3]
    made = [Sentence(text, paragraph=at) for text, at in zip(lines, paragraphs, strict=True)]
    assert join_lines(made) == "one. two.\nthree.\n\nfour."


def test_delimiters_are_punctuation_and_line_breaks() -> None:
    text = "He said: “no”.\n\n5 + 5 — done…"
    tokens = ["He", " said", ":", " “", "no", "”.", "\n\n", "5", " +", " 5", " —", " done", "…"]
    ends = np.cumsum([len(token) for token in tokens])
    spans = np.stack([ends - [len(token) for token in tokens], ends], axis=1)
    marks = [tokens[place] for place in np.flatnonzero(find_delimiters(text, spans))]
    assert marks == [":", " “", "”.", "\n\n", " —", "…"]


def test_pieces_of_a_character_count_as_the_character_and_can_be_shown() -> None:
    model = hs.load("mini-gpt2")
    text = "“Ночь” 🙂 naïve — 夜" * 3
    options = find_study("luger2026").with_options({"context": 16, "rest": True})
    corpus = Corpus.from_sentences([Sentence(text, document="d")])
    made = text_inputs(Setup(model, corpus, options, {}, 64), list(corpus), 0)
    shown = [token for example in made.examples for token in example.tokens.labels]
    assert len(shown) == len(made.columns.ids)
    assert all(token.isprintable() or token.isspace() for token in shown)
    ids = encode_all(model.tokenizer, [text], special=False)[0]
    pieces = [place for place, (start, end) in enumerate(ids.offsets) if text[start:end] == "🙂"]
    assert len(pieces) > 1  # half characters, indeed
    delimiters = made.columns.labels["delimiter"] >= 0
    of_quotes = [place for place, (start, end) in enumerate(ids.offsets) if text[start:end] == "“"]
    assert delimiters[of_quotes].all() and not delimiters[pieces].any()


@pytest.mark.parametrize(("asked", "found"), [(None, 48), (20, 20)])
def test_the_context_is_what_the_model_has_positions_for(asked: int | None, found: int) -> None:
    model: Model = MODELS["causal"]()
    long = hs.Corpus.from_sentences([hs.Sentence("one two three " * 40, document="d")])
    options = {"context": asked, "rest": False, "bos": "auto"}
    assert settle_context(model, long, options)["context"] == found


def test_three_of_four_documents_have_an_input_where_they_are_short(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model: Model = MODELS["causal"]()
    counts = (4, 9, 12, 20)
    texts = ["a " * count for count in counts]
    corpus = hs.Corpus.from_sentences(
        [hs.Sentence(text.strip(), document=str(n)) for n, text in enumerate(texts)]
    )
    lengths = sorted(len(model.encode(text.strip()).ids) for text in texts)
    options = {"context": None, "rest": False, "bos": "never"}
    assert settle_context(model, corpus, options)["context"] == lengths[1]
    assert f"An input has {lengths[1]} tokens" in caplog.text
    assert settle_context(model, corpus, {**options, "rest": True})["context"] == 48


def test_a_context_without_room_for_text_is_refused() -> None:
    with pytest.raises(RunError, match=r"A context of 3 leaves no room .* --context 4 or more"):
        hs.study("luger2026", MODELS["bidirectional"](), make_setup("bidirectional").corpus,
                 context=3)  # fmt: skip


def test_a_needle_stands_where_it_should_and_is_said_again() -> None:
    text, needle = np.arange(100, 110), np.array([1, 2, 3])
    made = hide(text, needle, 0.3, before=(7,), after=(8,))
    assert made.ids.tolist() == [7, 100, 101, 102, 1, 2, 3, *range(103, 110), 1, 2, 3, 8]
    copies = np.flatnonzero(made.successor >= 0)
    assert made.ids[copies].tolist() == [1, 2] and copies.tolist() == [14, 15]
    places = [int(np.flatnonzero(made.needle == each)[0]) for each in made.successor[copies]]
    assert made.ids[places].tolist() == [2, 3]
