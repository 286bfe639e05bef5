"""Tokenizers of every kind, trained in a moment on a few words."""

from functools import cache

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import trainers as train

TEXTS = [
    "The cat doesn't sit on the mat, it sat on a well-known matter.",
    "Don't don't can't won't it's he's 10 000 e-mail",
    "Das Fenster öffnet sich über café naïve Zurbarán’s",
    "猫が座った。東京 北京大学 สวัสดี नमस्ते ab🙂cd 👩‍👩‍👧",
] * 3
UNKNOWN, BYTES = "<unk>", [f"<0x{value:02X}>" for value in range(256)]


def _byte_level(trim: bool) -> Tokenizer:
    """GPT-2's kind: bytes, not characters, are merged; a space belongs to the word after it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = train.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def _word_piece() -> Tokenizer:
    """BERT's kind: lower-cased, accents and control characters gone, [CLS] and [SEP] around."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]"]
    trainer = train.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer


def _unigram(byte_fallback: bool) -> Tokenizer:
    """SentencePiece's kind: the space is a letter, and unknown characters become bytes."""
    trained = Tokenizer(models.Unigram())
    trained.normalizer = normalizers.NFKC()
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = train.UnigramTrainer(
        vocab_size=120, special_tokens=[UNKNOWN, *BYTES], unk_token=UNKNOWN, show_progress=False
    )
    trained.train_from_iterator(TEXTS[:2], trainer)
    if not byte_fallback:
        return trained
    pieces = sorted(trained.get_vocab(with_added_tokens=True).items(), key=lambda item: item[1])
    scored = [(piece, -float(rank)) for rank, (piece, _) in enumerate(pieces)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def _byte_fallback_bpe() -> Tokenizer:
    """Llama's kind: merges of characters, bytes for the rest, a space put before the text."""
    vocabulary = {piece: number for number, piece in enumerate([UNKNOWN, *BYTES, *"▁abcdeht"])}
    vocabulary |= {"he": len(vocabulary), "▁t": len(vocabulary) + 1}
    model = models.BPE(
        vocabulary, [("h", "e"), ("▁", "t")], unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return tokenizer


def _characters() -> Tokenizer:
    """Every character a token, most of them unknown."""
    tokenizer = Tokenizer(models.WordLevel({UNKNOWN: 0, "a": 1}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"(?m:.)"), "isolated")
    return tokenizer


@cache
def tiny_tokenizers() -> dict[str, Tokenizer]:
    return {
        "byte-level BPE": _byte_level(trim=True),
        "byte-level BPE, spaces kept": _byte_level(trim=False),
        "WordPiece": _word_piece(),
        "Unigram": _unigram(byte_fallback=False),
        "Unigram with byte fallback": _unigram(byte_fallback=True),
        "BPE with byte fallback": _byte_fallback_bpe(),
        "characters": _characters(),
    }
