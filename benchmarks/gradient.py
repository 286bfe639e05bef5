"""Peak memory and time of gradient importance against a plain training step of the same batch.

python -m benchmarks.gradient        a random BERT-base on one batch; each in a process of its own
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from importlib.resources import files

import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

from headscope.metrics.gradient import gradient_importance
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model


def base(layers: int) -> Model:
    tokenizer = AutoTokenizer.from_pretrained(
        str(files("headscope") / "model" / "bundled" / "mini-bert")
    )
    network = BertForMaskedLM(BertConfig(num_hidden_layers=layers))
    return Model(network, tokenizer, name="random bert-base")


def batch(inputs: int, tokens: int) -> Batch:
    ids = torch.randint(1000, 8000, (inputs, tokens), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids, dtype=torch.bool)
    return Batch(ids, mask, torch.zeros_like(ids), tuple(range(inputs)), (tokens,) * inputs)


def train(model: Model, given: Batch, predicted: torch.Tensor) -> None:
    """What a training step keeps: activations of all layers and a gradient for every parameter."""
    labels = given.ids.masked_fill(~predicted, -100)
    model.network(
        input_ids=given.ids, attention_mask=given.mask.long(), labels=labels
    ).loss.backward()


def measure(what: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    model, given = base(options.layers), batch(options.inputs, options.tokens)
    predicted = torch.rand(given.ids.shape, generator=torch.Generator().manual_seed(1)) < 0.15
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    if what == "training step":
        train(model, given, predicted)
    else:
        gradient_importance(model, given, predicted, given.mask[..., None])
    taken = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"MiB": (after - before) / 1024, "seconds": taken}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--what", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what:
        return measure(options.what, options)
    found = {}
    for what in ("training step", "gradient importance"):
        command = [sys.executable, "-m", "benchmarks.gradient", "--what", what, *sys.argv[1:]]
        found[what] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        print(f"{what:22} {found[what]['MiB']:8.0f} MiB {found[what]['seconds']:7.1f} s")
    ratio = found["gradient importance"]["MiB"] / found["training step"]["MiB"]
    print(f"memory: {ratio:.2f} × a training step (the aim: at most 2)")
    return None


if __name__ == "__main__":
    main()
