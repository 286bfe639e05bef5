"""A real network beside its own copy in few bits, compared head with head.

python -m tests.tools.check_quantised MODEL CORPUS [SENTENCES] [QUANTIZATION]

QUANTIZATION is what `headscope.load` takes (int8, int4, bitsandbytes-int8 …); without it torch
itself quantises the linear layers. First come the differences of single weights, then those of
heads over the corpus.
"""

import sys
import tempfile
from copy import deepcopy
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn

import headscope as hs
from headscope.model.model import Model
from headscope.results.compare import clear_and_all, compare, rows_of


def in_eight_bits(model: Model) -> Model:
    """A copy whose linear layers torch has quantised."""
    network = torch.ao.quantization.quantize_dynamic(
        deepcopy(model.network), {nn.Linear}, dtype=torch.qint8
    )
    return Model(network, model.tokenizer, name=f"{model.name} in eight bits")


def print_differences(whole: Model, few: Model, texts: list[str]) -> None:
    """How far the weights of the two are apart, and how often a head looks elsewhere most."""
    gaps: list[Tensor] = []
    same: list[Tensor] = []
    for text in texts:
        one, other = whole.trace(text), few.trace(text)
        for layer in one.layers:
            own, copied = one.weights[layer], other.weights[layer]
            gaps.append((own - copied).abs().flatten())
            same.append((own.argmax(-1) == copied.argmax(-1)).flatten())
    gap, kept = torch.cat(gaps), torch.cat(same).float().mean()
    print("; ".join(few.remarks) or "quantised by torch")
    print(
        f"{len(texts)} sentences, {len(gap):,} weights: mean difference {gap.mean():.2g}, largest"
    )
    print(f"{gap.max():.2g}; the same token is looked at most in {kept:.1%} of the rows")


def main() -> None:
    name, corpus, *more = sys.argv[1:]
    model, texts = hs.load(name), hs.read_corpus(corpus)
    sentences = int(more[0]) if more else None
    few = hs.load(name, quantization=more[1]) if len(more) > 1 else in_eight_bits(model)
    few.name = f"{model.name} in few bits"
    print_differences(model, few, [each.text for each in islice(texts, 16)])
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / part for part in ("full", "int8")]
        for each, path in zip((model, few), paths, strict=True):
            hs.study("vig2019", each, texts, path, sentences=sentences)
        found = compare(*paths)
        clear, known = clear_and_all(found)
        print(f"compared by {', '.join(found.by)}; likeness {found.relation}")
        print(f"{clear} of {known} differences stand")
        for row in rows_of(found, "heads", 8):
            print(row)


if __name__ == "__main__":
    main()
