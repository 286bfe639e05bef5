"""A real network beside its own copy in eight bits, compared head with head.

python -m tests.results.check_quantised MODEL CORPUS [SENTENCES]
"""

import sys
import tempfile
from copy import deepcopy
from pathlib import Path

import torch
from torch import nn

import headscope as hs
from headscope.model.model import Model
from headscope.results.compare import clear_and_all, compare, rows_of


def in_eight_bits(model: Model) -> Model:
    """A copy whose linear layers torch has quantised."""
    network = torch.ao.quantization.quantize_dynamic(
        deepcopy(model.network), {nn.Linear}, dtype=torch.qint8
    )
    return Model(network, model.tokenizer, name=f"{model.name} in eight bits")


def main() -> None:
    name, corpus, *count = sys.argv[1:]
    model, texts = hs.load(name), hs.read_corpus(corpus)
    sentences = int(count[0]) if count else None
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / part for part in ("full", "int8")]
        for each, path in zip((model, in_eight_bits(model)), paths, strict=True):
            hs.study("vig2019", each, texts, path, sentences=sentences)
        found = compare(*paths)
        clear, known = clear_and_all(found)
        print(f"compared by {', '.join(found.by)}; likeness {found.relation}")
        print(f"{clear} of {known} differences stand")
        for row in rows_of(found, "heads", 8):
            print(row)


if __name__ == "__main__":
    main()
