"""Learn both tokenizers from the training documents: byte-level BPE and uncased WordPiece."""

from __future__ import annotations

import argparse
from pathlib import Path

from corpus import read_documents, split_documents
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

VOCABULARY = 8192
CONTEXT = 512
END_OF_TEXT = "<|endoftext|>"
BUNDLED = Path(__file__).parent.parent / "src" / "headscope" / "model" / "bundled"


def byte_level_bpe(documents: list[str]) -> PreTrainedTokenizerFast:
    """GPT-2's kind of tokenizer (Radford et al. 2019): every string has an encoding."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(documents, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        model_max_length=CONTEXT,
    )


def word_piece(documents: list[str]) -> PreTrainedTokenizerFast:
    """BERT's kind of tokenizer (Devlin et al. 2019), without case and accents."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        limit_alphabet=128,  # rarer characters are stray Greek and Arabic letters: [UNK]
    )
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        mask_token="[MASK]",
        model_max_length=CONTEXT,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="pretrain.txt.xz")
    parser.add_argument("--out", type=Path, default=BUNDLED)
    options = parser.parse_args()

    documents = split_documents(read_documents(options.text)).training
    byte_level_bpe(documents).save_pretrained(options.out / "mini-gpt2")
    word_piece(documents).save_pretrained(options.out / "mini-bert")


if __name__ == "__main__":
    main()
