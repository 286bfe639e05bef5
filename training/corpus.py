"""The training text: reading it, keeping some documents aside, turning it into token ids."""

from __future__ import annotations

import argparse
import lzma
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

HELD_OUT_SHARE = 0.015
SPLIT_SEED = 2019


class Split(NamedTuple):
    """Documents to learn from and documents that no model and no tokenizer ever sees."""

    training: list[str]
    held_out: list[str]


def read_documents(path: Path) -> list[str]:
    """The documents of an xz-compressed text: a blank line between two, one paragraph per line."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read().strip("\n").split("\n\n")


def split_documents(documents: list[str]) -> Split:
    """Keep a fixed random share of whole documents aside, the same one for both models."""
    count = round(HELD_OUT_SHARE * len(documents))
    chosen = set(random.Random(SPLIT_SEED).sample(range(len(documents)), count))
    return Split(
        training=[text for index, text in enumerate(documents) if index not in chosen],
        held_out=[text for index, text in enumerate(documents) if index in chosen],
    )


def encode(tokenizer: Tokenizer, texts: list[str]) -> list[np.ndarray]:
    """Token ids of every text, without special tokens; uses all processor cores."""
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]


def describe(options: argparse.Namespace) -> str:
    """A log's first line: the options of a run, without the paths."""
    values = vars(options).items()
    return ", ".join(f"{name} {value}" for name, value in values if not isinstance(value, Path))
