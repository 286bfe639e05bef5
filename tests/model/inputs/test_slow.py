"""Tokenizers written in Python get character spans by decoding, or the text is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, ByT5Tokenizer, PreTrainedTokenizerBase

import headscope as hs
from headscope.errors import ModelError
from headscope.model.inputs.encode import encode, encode_all, is_parted
from headscope.model.inputs.slow import encode_slowly
from headscope.model.inputs.tokens import Characters, Tokens
from headscope.model.loading.load import load
from headscope.model.model import Model
from tests.references.tiny_families import family
from tests.references.tokenizers_by_kind import byte_level, dna, protein, tweets, word_piece


def pieces(tokens: Tokens) -> list[str]:
    return [
        tokens.text[start:end]
        for (start, end), special in zip(tokens.offsets, tokens.special, strict=True)
        if not special
    ]


def test_amino_acids_stand_where_they_are(tmp_path: Path) -> None:
    tokens = encode(protein(tmp_path), "MKT AYI")
    assert pieces(tokens) == [*"MKTAYI"]
    assert tokens.offsets[1:-1] == ((0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7))
    assert tokens.special == (True, *[False] * 6, True)
    assert [place is None for place in tokens.places] == [True, *[False] * 6, True]


def test_a_letter_that_is_not_known_has_its_place(tmp_path: Path) -> None:
    tokens = encode(protein(tmp_path), "MKJTA")
    assert pieces(tokens) == [*"MKJTA"]
    assert tokens.labels[3] == "<unk>" and not tokens.special[3]


def test_words_of_dna_cover_their_bases(tmp_path: Path) -> None:
    tokens = encode(dna(tmp_path), "ACGTACGGTTAACC")
    assert pieces(tokens) == ["ACGTAC", "GGTTAA", "C", "C"]


def test_pieces_of_words_are_joined_as_they_stand(tmp_path: Path) -> None:
    tokens = encode(tweets(tmp_path), "hello  world, cat")
    assert "".join(pieces(tokens)) == "helloworld,cat"
    assert tokens.offsets[1:3] == ((0, 4), (4, 5))
    assert pieces(tokens)[-1] == "cat"


def test_bytes_of_one_character_share_its_span() -> None:
    tokens = encode(ByT5Tokenizer(), "né 你")
    assert tokens.offsets == ((0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (3, 4), (3, 4), (0, 0))
    assert encode(ByT5Tokenizer(), "Ã").offsets == ((0, 1), (0, 1), (0, 0))


def test_a_pair_is_parted_and_placed_in_its_own_texts(tmp_path: Path) -> None:
    tokens = encode(protein(tmp_path), "MKT", "AYI")
    first, second = ([Characters(n, n + 1, text) for n in range(3)] for text in (0, 1))
    assert tokens.places == (None, *first, None, *second, None)
    assert is_parted(tokens)


def test_a_text_that_is_cut_keeps_the_spans_of_what_is_left(tmp_path: Path) -> None:
    tokens = encode(protein(tmp_path), "MKTAYIAK", limit=5, truncate=True)
    assert pieces(tokens) == [*"MKT"] and len(tokens) == 5
    with pytest.raises(ModelError, match="has 10 tokens, but the model takes at most 5"):
        encode(protein(tmp_path), "MKTAYIAK", limit=5)


class Unfaithful(ByT5Tokenizer):
    """Leaves out what it does not like."""

    def tokenize(self, text: str, **given: object) -> list[str]:
        return super().tokenize(text.replace("bad", ""), **given)


class Inventive(ByT5Tokenizer):
    """Writes other letters than were there."""

    def tokenize(self, text: str, **given: object) -> list[str]:
        return super().tokenize(text.replace("@me", "@USER"), **given)


@pytest.mark.parametrize(
    ("tokenizer", "text"),
    [
        (Unfaithful(), "good and bad"),
        (Unfaithful(), "good bad good"),
        (Inventive(), "hello @me"),
    ],
)
def test_a_text_that_does_not_come_back_is_refused(
    tokenizer: PreTrainedTokenizerBase, text: str
) -> None:
    with pytest.raises(ModelError, match=r"does not report character positions, and decoding .*'"):
        encode(tokenizer, text)
    assert pieces(encode(tokenizer, "good")) == [*"good"]


class InPython:
    """A fast tokenizer that keeps its spans to itself."""

    is_fast = False

    def __init__(self, own: PreTrainedTokenizerBase) -> None:
        self._own = own

    def __call__(self, *args: object, **given: object) -> object:
        return self._own(*args, **given)  # pyright: ignore[reportCallIssue, reportArgumentType]

    def __getattr__(self, name: str) -> object:
        return getattr(self._own, name)


@pytest.mark.parametrize(
    "text", ["The cats sat on the mat.", "  THE  cats  mat…", "the\tcat\nsat", "cat zzz cat"]
)
@pytest.mark.parametrize("name", ["mini-bert", "mini-gpt2", "word piece", "bytes"])
def test_decoding_finds_the_spans_that_fast_tokenizers_report(name: str, text: str) -> None:
    made = {"word piece": word_piece, "bytes": byte_level}
    own = made[name]() if name in made else hs.load(name).tokenizer
    fast = encode(own, text)
    slow = encode_slowly(InPython(own), [text])  # pyright: ignore[reportArgumentType]
    assert tuple(slow.ids) == fast.ids
    for mine, other in zip(slow.offsets, fast.offsets, strict=True):
        assert text[slice(*mine)].strip() == text[slice(*other)].strip()
        assert text[slice(*other)].strip() == "" or abs(mine[0] - other[0]) <= 1


@pytest.mark.parametrize("text", ["cat's", "z'z"])
def test_what_unknown_tokens_stand_for_is_not_guessed(text: str) -> None:
    with pytest.raises(ModelError, match="decoding does not give"):
        encode_slowly(InPython(word_piece()), [text])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("make", [protein, dna, tweets])
def test_models_with_such_tokenizers_load_and_trace(make: object, tmp_path: Path) -> None:
    tokenizer = make(tmp_path)  # pyright: ignore[reportCallIssue]
    kind = family("RoBERTa" if make is tweets else "ESM")
    options = {**kind.options, "vocab_size": len(tokenizer)}
    if "mask_token_id" in options:
        options["mask_token_id"] = tokenizer.mask_token_id
    network = replace(kind, options=options).network()
    network.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    model = load(tmp_path / "model")
    assert not model.tokenizer.is_fast
    text = "hello cat" if make is tweets else "ACGTAA"
    trace = model.trace(text)
    ids = torch.tensor([model.encode(text).ids])
    model.network.set_attn_implementation("eager")
    with torch.no_grad():
        own = model.network.eval()(input_ids=ids, output_attentions=True).attentions
    torch.testing.assert_close(trace.weights[1], own[1][0], rtol=0, atol=1e-5)
    assert "".join(trace.default.queries.words) == text.replace(" ", "")


def test_many_texts_are_encoded_as_one_by_one(tmp_path: Path) -> None:
    tokenizer = protein(tmp_path)
    texts = ["MKT", "AYIAK"]
    assert encode_all(tokenizer, texts) == [encode(tokenizer, text) for text in texts]


def test_a_configuration_without_a_padding_id_traces(tmp_path: Path) -> None:
    model = family("CodeGen").model()
    assert getattr(model.network.config, "pad_token_id", None) is None
    model.network.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert torch.equal(loaded.trace("def f").weights[0], model.trace("def f").weights[0])
    assert len(loaded.trace("def f", generate=3).tokens) == len(loaded.trace("def f").tokens) + 3
    bare = AutoTokenizer.from_pretrained(tmp_path, pad_token=None)
    short = Model(model.network, bare, name="bare")
    batch = short.batch([short.encode("a"), short.encode("abc")])
    assert batch.lengths == (3, 5)
