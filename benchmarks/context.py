"""Memory and time against the length of one input: whole matrices, row blocks, fused kernels.

python -m benchmarks.context                          512, 2,048 and 8,192 tokens
python -m benchmarks.context --tokens 512 2048        some of them

Every cell runs in a process of its own, so that its peak memory is its own: the plain forward pass
(fused attention, no statistics), then all statistics of vig2019 in the three ways. A Llama with
SmolLM2's heads (9, of which 3 for keys) and one layer; weights are random.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch

from benchmarks.long_inputs import make_batch, make_model, make_network, study
from headscope.model.capture.modes import AttentionPath

WAYS = ("plain", "dense", "rows", "fused")
SHAPE = {"layers": 1, "heads": 9, "key_heads": 3, "width": 576, "device": "cpu"}


def measure(way: str, tokens: int) -> dict[str, float]:
    """Seconds and the memory that the way adds to the loaded network, in MB."""
    torch.set_num_threads(2)
    network = make_network(argparse.Namespace(**SHAPE, tokens=tokens), torch.float32)
    batch, annotated = make_batch(tokens, "cpu")
    network.set_attn_implementation("sdpa")
    if way == "plain":
        run = _plain(network, batch.ids)
    else:
        model = make_model(network)
        warm, labels = make_batch(16, "cpu")
        study(model, warm, labels, "fused")  # imports and proofs do not count
        run = partial(study, model, batch, annotated, cast(AttentionPath, way))
    before = _resident()
    start = time.perf_counter()
    run()
    return {"seconds": time.perf_counter() - start, "memory": _peak() - before}


def _plain(network: Any, ids: torch.Tensor) -> Callable[[], Any]:
    def run() -> Any:
        with torch.no_grad():
            return network.model(ids, use_cache=False)[0]

    network.model(ids[:, :16], use_cache=False)
    return run


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ask(way: str, tokens: int) -> dict[str, float] | None:
    """Measure in another process; None where it ran out of memory."""
    command = [sys.executable, "-m", "benchmarks.context", "--cell", way, str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def table(lengths: list[int]) -> str:
    """One line per length and way, with ratios to the plain forward pass of that length."""
    lines = [f"{'tokens':>7}  {'way':6} {'seconds':>9} {'× plain':>8} {'added MB':>9}"]
    for tokens in lengths:
        found = {way: ask(way, tokens) for way in WAYS}
        plain = found["plain"]
        assert plain is not None
        for way, cell in found.items():
            if cell is None:
                lines.append(f"{tokens:7,}  {way:6} {'out of memory':>9}")
                continue
            ratio = cell["seconds"] / plain["seconds"]
            lines.append(
                f"{tokens:7,}  {way:6} {cell['seconds']:9.2f} {ratio:8.1f} {cell['memory']:9.0f}"
            )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 2048, 8192])
    parser.add_argument("--cell", nargs=2, metavar=("WAY", "TOKENS"))
    given = parser.parse_args()
    if given.cell:
        print(json.dumps(measure(given.cell[0], int(given.cell[1]))))
    else:
        print("1 layer × 9 heads (3 for keys), width 576, float32, two threads, one input")
        print(table(given.tokens))


if __name__ == "__main__":
    main()
