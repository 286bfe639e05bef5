"""Small tokenizers of the kinds that models use."""

from itertools import product
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertweetTokenizer, EsmTokenizer, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")


def word_piece() -> PreTrainedTokenizerFast:
    words = [*SPECIAL, "the", "cat", "##s", "sat", ".", "on", "mat"]
    built = Tokenizer(models.WordPiece(_numbered(words), unk_token="[UNK]"))
    built.normalizer = normalizers.BertNormalizer(lowercase=True)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    built.decoder = decoders.WordPiece()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return _wrapped(built)


def byte_level(padding: int = 0) -> PreTrainedTokenizerFast:
    """Bytes, and two words; `padding` moves all ids up."""
    unused = [f"[unused{i}]" for i in range(padding)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = ["th", "the", "ca", "cat", "Ġcat"]
    vocabulary = _numbered([*SPECIAL, *unused, *alphabet, *merged])
    merges = [("t", "h"), ("th", "e"), ("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("Ġ", "b")]
    vocabulary["Ġb"] = len(vocabulary)
    built = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    return _wrapped(built)


def metaspace() -> PreTrainedTokenizerFast:
    pieces = [*SPECIAL, "▁the", "▁cat", "▁", "s", "▁of▁the"]
    scored = [(piece, -float(i)) for i, piece in enumerate(pieces)]
    built = Tokenizer(models.Unigram(scored, unk_id=3))
    built.pre_tokenizer = pre_tokenizers.Metaspace()
    built.decoder = decoders.Metaspace()
    return _wrapped(built)


def byte_level_after_splitting() -> PreTrainedTokenizerFast:
    """Bytes of words that an expression has cut out, as in Llama 3; some are merged."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("ä", "½"), ("Ġ", "ä½")]  # the first two bytes of 你, and a space before them
    pieces = [*SPECIAL, *alphabet, *("".join(pair) for pair in merges)]
    built = Tokenizer(models.BPE(vocab=_numbered(pieces), merges=merges))
    words = Regex(r" ?\p{L}+| ?[^\s\p{L}]+|\s+")
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(words, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    built.decoder = decoders.ByteLevel()
    return _wrapped(built)


def byte_fallback() -> PreTrainedTokenizerFast:
    """SentencePiece as in Llama 2: a character without a piece becomes its bytes."""
    pieces = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a"]
    built = Tokenizer(
        models.BPE(
            vocab=_numbered(pieces), merges=[("▁", "a")], byte_fallback=True, unk_token="[UNK]"
        )
    )
    built.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return _wrapped(built)


def _numbered(tokens: list[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}


def _wrapped(built: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
    )


def protein(folder: Path) -> EsmTokenizer:
    """ESM's: a token for every amino acid, in Python."""
    letters = "LAGVSERTIDPKQNFYMHWCXBUZO.-"
    return _esm(folder, ["<cls>", "<pad>", "<eos>", "<unk>", *letters, "<mask>"])


def dna(folder: Path) -> EsmTokenizer:
    """Six bases a token, single ones for the rest, as in the Nucleotide Transformer."""
    words = ["".join(bases) for bases in product("ACGT", repeat=6)]
    return _esm(folder, ["<cls>", "<pad>", "<eos>", "<unk>", *words, *"ACGTN", "<mask>"])


def tweets(folder: Path) -> BertweetTokenizer:
    """BERTweet's: pieces of words that go on end in @@, in Python."""
    pieces = ["he@@", "ll@@", "hell@@", "o", "wor@@", "l@@", "d", "w@@", "o@@", "r@@", "cat", "é"]
    (folder / "vocab.txt").write_text("".join(f"{piece} 9\n" for piece in pieces))
    merges = ["h e", "l l", "he ll", "w o", "wo r", "c a", "ca t</w>"]
    rows = "".join(f"{pair} {9 - n}\n" for n, pair in enumerate(merges))
    (folder / "bpe.codes").write_text(f"#version: 0.2\n{rows}")
    return BertweetTokenizer(str(folder / "vocab.txt"), str(folder / "bpe.codes"))


def _esm(folder: Path, tokens: list[str]) -> EsmTokenizer:
    (folder / "vocab.txt").write_text("\n".join(tokens))
    return EsmTokenizer(str(folder / "vocab.txt"))


def sentencepiece_like() -> PreTrainedTokenizerFast:
    """A tokenizer that begins every text with a space of its own."""
    pieces = {"▁": 0, "▁do": 1, "n": 2, "'": 3, "t": 4, "▁n": 5, "▁a": 6, "o": 7}
    tokenizer = Tokenizer(models.WordLevel(pieces, unk_token="n"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="always"), pre_tokenizers.Split("'", "isolated")]
    )
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)
