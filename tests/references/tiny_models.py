"""A tiny causal and a tiny bidirectional model with real tokenizers, and a synthetic treebank."""

import random
from dataclasses import replace
from functools import cache

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
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from headscope.model.model import Model
from headscope.text.corpus import Corpus
from headscope.text.sentence import ROOT, Mention, Sentence, Word

NOUNS = ("cat", "dog", "gardener", "window", "teacher", "mountain", "telescope")
VERBS = ("sees", "follows", "remembers", "paints", "understands")
ADJECTIVES = ("old", "curious", "enormous", "quiet")


def make_sentences(count: int, seed: int = 0) -> list[Sentence]:
    """Sentences of one to twelve words with tags and trees."""
    rng = random.Random(seed)
    return [_sentence(rng, number) for number in range(count)]


def _sentence(rng: random.Random, number: int) -> Sentence:
    if rng.random() < 0.05:
        return _build([("cat", "NOUN", "root", ROOT)], number)
    words: list[tuple[str, str, str, int]] = []
    subject = _phrase(rng, words, "nsubj")
    verb = len(words)
    words.append((rng.choice(VERBS), "VERB", "root", ROOT))
    words[subject] = (*words[subject][:3], verb)
    if rng.random() < 0.8:
        target = _phrase(rng, words, "obj")
        words[target] = (*words[target][:3], verb)
    words.append((".", "PUNCT", "punct", verb))
    return _build(words, number)


def _phrase(rng: random.Random, words: list[tuple[str, str, str, int]], relation: str) -> int:
    adjectives = rng.randrange(3)
    noun = len(words) + 1 + adjectives
    words.append((rng.choice(("the", "a")), "DET", "det", noun))
    words.extend((rng.choice(ADJECTIVES), "ADJ", "amod", noun) for _ in range(adjectives))
    words.append((rng.choice(NOUNS), "NOUN", relation, 0))
    return noun


def _build(rows: list[tuple[str, str, str, int]], number: int) -> Sentence:
    text, words = "", []
    for form, tag, relation, head in rows:
        text += " " if text and form != "." else ""
        start = len(text)
        text += form
        words.append(Word(form, start, len(text), upos=tag, head=head, deprel=relation))
    return Sentence(text, tuple(words), document=f"d{number // 10}", id=f"s{number}")


@cache
def treebank(count: int = 600) -> Corpus:
    return Corpus.from_sentences(make_sentences(count))


@cache
def causal_model() -> Model:
    """GPT-2's shape in small: 3 layers of 2 heads, byte-level pieces."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        [sentence.text for sentence in make_sentences(50)],
        trainers.BpeTrainer(vocab_size=120, special_tokens=["<|end|>"], show_progress=False),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=3, n_head=2, n_embd=16, n_positions=48, vocab_size=len(fast),
        bos_token_id=0, eos_token_id=0, initializer_range=0.6,
    )  # fmt: skip
    return Model(GPT2LMHeadModel(config), fast, name="tiny-causal")


@cache
def bidirectional_model() -> Model:
    """BERT's shape in small: 2 layers of 3 heads, word pieces between [CLS] and [SEP]."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        [sentence.text for sentence in make_sentences(50)],
        trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    torch.manual_seed(0)
    config = BertConfig(
        num_hidden_layers=2, num_attention_heads=3, hidden_size=12, intermediate_size=24,
        vocab_size=len(fast), max_position_embeddings=64, initializer_range=0.6, pad_token_id=0,
    )  # fmt: skip
    return Model(BertForMaskedLM(config), fast, name="tiny-bidirectional")


MODELS = {"causal": causal_model, "bidirectional": bidirectional_model}


def llama() -> Model:
    """An RMSNorm, rotary positions, and two heads for every key."""
    torch.manual_seed(0)
    tokenizer = causal_model().tokenizer
    config = LlamaConfig(
        vocab_size=len(tokenizer) + 8, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=48,
        initializer_range=0.5, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    network = LlamaForCausalLM(config)
    for norm in [m for m in network.modules() if "Norm" in type(m).__name__]:
        norm.weight.data.uniform_(0.5, 2.0)  # pyright: ignore
    return Model(network, tokenizer, name="tiny-llama")


def with_mentions(sentence: Sentence) -> Sentence:
    """Every noun is a mention of the entity that its word names."""
    found = tuple(
        Mention(word.text, ((index, index + 1),))
        for index, word in enumerate(sentence.words)
        if word.upos == "NOUN"
    )
    return replace(sentence, mentions=found)


def annotated(count: int = 60) -> Corpus:
    return Corpus.from_sentences(with_mentions(each) for each in make_sentences(count))
