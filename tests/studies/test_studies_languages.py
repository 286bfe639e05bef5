"""Treebanks of other scripts through both studies: equal to a plain reading, nothing lost.

The samples hold multiword tokens (spelled by their words, and not), empty nodes, no spaces, and
writing from right to left.
"""

from functools import cache
from pathlib import Path

import pytest
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

import headscope as hs
from headscope.model.model import Model
from headscope.results import dataset as results
from headscope.text.corpus import Corpus
from tests.tools.check_alignment import check_segments, check_vig, check_words

SAMPLES = Path(__file__).parents[1] / "references" / "languages"
LANGUAGES = ["arabic", "chinese", "finnish", "hindi"]
MERGED = {"arabic": "للمدينة", "finnish": "ettei"}  # their words do not spell them


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@cache
def sample(language: str) -> Corpus:
    return Corpus.from_sentences(hs.read_corpus(SAMPLES / f"{language}.conllu"))


@cache
def texts() -> list[str]:
    return [sentence.text for language in LANGUAGES for sentence in sample(language)]


@cache
def byte_pieces() -> Model:
    """A causal network of the shape of GPT-2 with pieces of bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    tokenizer.train_from_iterator(texts(), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=2, n_head=2, n_embd=16, n_positions=96, vocab_size=len(fast),
        bos_token_id=0, eos_token_id=0, initializer_range=0.6,
    )  # fmt: skip
    return Model(GPT2LMHeadModel(config), fast, name="bytes")


@cache
def word_pieces() -> Model:
    """A bidirectional network of the shape of multilingual BERT with pieces of words."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=260, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=2, num_attention_heads=3, hidden_size=12, intermediate_size=24,
        vocab_size=len(fast), max_position_embeddings=96, initializer_range=0.6, pad_token_id=0,
    )  # fmt: skip
    return Model(BertForMaskedLM(config), fast, name="words")


MODELS = {"bytes": byte_pieces, "words": word_pieces}


@cache
def together() -> Corpus:
    return Corpus.from_sentences(s for language in LANGUAGES for s in sample(language))


@pytest.mark.parametrize("kind", MODELS)
def test_trees_of_four_languages_equal_a_plain_reading(kind: str) -> None:
    corpus, model = together(), MODELS[kind]()
    result, counts = check_vig(model, corpus, "overlap")
    assert counts.sentences == len(corpus) == 16 and results.read_attribute(result, "skipped") == {}
    assert counts.words == sum(len(sentence.words) for sentence in corpus)
    result, counts = check_words(model, corpus, "overlap")
    assert counts.sentences == len(corpus)
    relations = set(result["relation"].values.tolist())
    assert {"nsubj", "obj", "obl", "case", "aux", "mark", "orphan", "clf"} <= relations


def test_segments_of_four_languages_equal_a_plain_reading() -> None:
    result, _ = check_segments(word_pieces(), together())
    assert result.attrs["sentences"] == 8  # two documents of two paragraphs in each language


@pytest.mark.parametrize("language", LANGUAGES)
def test_empty_nodes_are_no_words_and_multiword_tokens_keep_their_letters(language: str) -> None:
    text = (SAMPLES / f"{language}.conllu").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line[:1].isdigit()]
    assert any("." in row[0] for row in rows)
    for sentence in sample(language):
        assert all(sentence.text[w.start : w.end] == w.text for w in sentence.words)
        letters = "".join(word.text for word in sentence.words)
        assert letters == "".join(sentence.text.split())
    words = [word.text for sentence in sample(language) for word in sentence.words]
    assert language not in MERGED or MERGED[language] in words
