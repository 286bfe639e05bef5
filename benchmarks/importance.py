"""Loss without each head and with its mean: several heads in one pass over copies of the batch,
against a forward pass for each.

python -m benchmarks.importance                  the bundled network and the shape of GPT-2 small
python -m benchmarks.importance --device cuda    on a GPU

Seconds are of the processor on a CPU, so that other work on the machine does not count.
"""

import argparse
import time
from collections.abc import Callable
from importlib.resources import files

import torch
from torch import Tensor, nn
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

import headscope as hs
from headscope.metrics import Grid
from headscope.metrics.gradient import losses
from headscope.metrics.importance import loss_changes
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model


def gpt2_small(device: str) -> Model:
    name = str(files("headscope") / "model" / "bundled" / "mini-gpt2")
    torch.manual_seed(0)
    network = GPT2LMHeadModel(GPT2Config())
    nn.Module.to(network, device)
    return Model(network, AutoTokenizer.from_pretrained(name), name="gpt2's shape")


def make_batch(inputs: int, tokens: int, device: str) -> Batch:
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(10, 2000, (inputs, tokens), generator=random).to(device)
    mask, rows = torch.ones_like(ids, dtype=torch.bool), tuple(range(inputs))
    return Batch(ids, mask, torch.zeros_like(ids), rows, (tokens,) * inputs)


def one_by_one(model: Model, batch: Batch, grid: Grid, means: dict[int, Tensor]) -> dict:
    """A whole pass for every head and both changes, each setting the output of one head."""

    def loss(at: int, head: int, instead: Tensor | None) -> Tensor:
        def change(layer: int, output: Tensor) -> Tensor:
            if layer == at and instead is not None:
                output = output.clone()
                output[:, :, head] = instead
            return output

        logits = model.forward_changed(batch, change).logits
        return losses(logits, batch.ids, batch.mask, causal=True).double()

    before = loss(0, 0, None)
    shape = (len(batch.ids), *grid.shape)
    found = {name: torch.zeros(shape).double() for name in ("removal", "mean_replacement")}
    for place, layer in enumerate(grid.layers):
        for head in range(grid.heads):
            mean = means[layer][head]
            for name, instead in (("removal", mean * 0), ("mean_replacement", mean)):
                found[name][:, place, head] = (loss(layer, head, instead) - before).cpu()
    return found


def measure(work: Callable[[], dict], device: str) -> tuple[dict, float]:
    clock = time.process_time if device == "cpu" else time.perf_counter
    start = clock()
    with torch.inference_mode():
        found = work()
    if device != "cpu":
        torch.cuda.synchronize()
    return found, clock() - start


def spread(layers: int, count: int) -> tuple[int, ...]:
    """So many layers in the middle of equal parts: on average as deep as all of them."""
    count = min(count, layers)
    return tuple(int((place + 0.5) * layers / count) for place in range(count))


def report(model: Model, inputs: int, tokens: int, layers: int, device: str) -> None:
    batch, grid = (
        make_batch(inputs, tokens, device),
        Grid(spread(model.layers, layers), model.heads),
    )
    width = model.network.config.n_embd // model.heads
    means = {layer: torch.randn(grid.heads, width, device=device) for layer in grid.layers}
    with torch.inference_mode():
        model.forward(batch)
    ours, fast = measure(lambda: loss_changes(model, batch, batch.mask, grid, means), device)
    plain, slow = measure(lambda: one_by_one(model, batch, grid, means), device)
    apart = max((ours[name].cpu() - plain[name]).abs().max().item() / tokens for name in plain)
    most = max(plain[name].abs().max().item() / tokens for name in plain)
    shape = f"{len(grid.layers)} of {model.layers} layers × {grid.heads} heads"
    print(f"{model.name}, {shape}, {inputs} inputs of {tokens} tokens")
    print(f"  one head at a time   {slow:7.1f} s")
    print(f"  batches of heads     {fast:7.1f} s   {slow / fast:.1f} × as fast")
    print(f"  largest change per token {most:.2f} nats, largest difference {apart:.1e} nats")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--inputs", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2, help="whose heads are removed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for model in (hs.load("mini-gpt2", device=options.device), gpt2_small(options.device)):
        report(model, options.inputs, options.tokens, options.layers, options.device)


if __name__ == "__main__":
    main()
