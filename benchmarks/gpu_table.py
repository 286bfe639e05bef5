"""Every aim on a GPU in one run: statistics and whole studies beside the plain forward pass.

python -m benchmarks.gpu_table
python -m benchmarks.gpu_table --device cpu --tiny

First the statistics of vig2019. The plain pass (sdpa, no language-model head, evaluation mode) is
measured twice: in batches of the study's own size, and in small ones, which have less padding. The
first two lines are whole studies of sentences in memory (`benchmarks.gpu_study`); the next have
their inputs on the device already (`benchmarks.gpu_lengths`).

Then whole studies in bfloat16, with all files and where the seconds go (`benchmarks.studies`), and
the method of HeadVis written plainly (`benchmarks.headvis`) beside luger2026. The last two lines
are a small network on two cores of the CPU, everything from reading to the finished result
(`benchmarks.study`), beside the network in evaluation mode and with dropout, as it was when the
aim was set.
"""

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks import gpu_lengths, gpu_study, headvis, studies
from benchmarks import study as cpu_study
from benchmarks.long_inputs import measure
from headscope.engine import SHARD_SENTENCES_CUDA, default_batch_tokens

SMALL = 16384  # tokens of a batch: the plain pass is fastest so, or nearly
WIDTH = 44


@dataclass(frozen=True)
class Inputs:
    """A line of inputs of one length: how many of what, for which shape, and the aim."""

    count: int
    tokens: int
    shape: str
    aim: float


STUDIES = (("float32", 1.3), ("bfloat16", 1.6))
LINES = (
    Inputs(2048, 512, "gpt2", 2.0),
    Inputs(1, 32768, "llama-135m", 2.0),
    Inputs(512, 512, "llama-8b", 1.25),
)
TINY_LINES = (Inputs(8, 40, "tiny", 2.0),)
CPU_AIM, CORES = 1.15, 2
PLAIN_INPUTS = 24  # that go through HeadVis' method, which takes as long for each


def print_study(dtype: str, aim: float, sentences: list, options: argparse.Namespace) -> None:
    """One line: a whole study of many sentences."""
    shape, device = ("tiny" if options.tiny else "gpt2"), options.device
    model = gpu_study.make_model(shape, device, getattr(torch, dtype))
    tokens = default_batch_tokens(model)
    setup = gpu_study.make_setup(model, sentences, tokens)
    shards = setup.corpus.shards(options.shard)
    plain = {most: gpu_study.time_forward(setup, shards, most, device) for most in {tokens, SMALL}}
    with tempfile.TemporaryDirectory() as folder:
        gpu_study.run_study(setup, shards[:2], Path(folder))
    found = measure(partial(_study, setup, shards), 3, device, warm=False)
    name = f"{len(sentences):,} sentences, {shape}, {dtype}"
    print_line(name, plain[tokens], plain[SMALL], found, aim)


def _study(setup: gpu_study.Setup, shards: list[gpu_study.Shard]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gpu_study.run_study(setup, shards, Path(folder))


def print_inputs(line: Inputs, device: str) -> None:
    """One line: inputs of one length."""
    model = gpu_lengths.make_model(line.shape, line.tokens, torch.bfloat16, device)
    columns = gpu_lengths.make_columns(line.count, line.tokens)
    tokens = max(default_batch_tokens(model), line.tokens)

    def best(run: Callable[[], object]) -> tuple[float, float]:
        return measure(run, 2, device)

    sizes = {max(most, line.tokens) for most in (tokens, SMALL)}
    plain = {most: best(partial(gpu_lengths.forward, model, columns, most))[0] for most in sizes}
    found = best(lambda: gpu_lengths.study(model, columns, tokens))
    name = f"{line.count:,} × {line.tokens:,} tokens, {line.shape}, bfloat16"
    print_line(name, plain[tokens], plain[max(SMALL, line.tokens)], found, line.aim)


def print_cpu(sentences: int) -> None:
    """Two lines: a small network on two cores, in a process that has no others."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        plain, dropped, found = processes.submit(measure_cpu, sentences).result()
    name = f"{sentences:,} sentences, 8 × 8 heads, {CORES} cores"
    print_line(name, plain, plain, (found, 0.0), CPU_AIM)
    print_line("the same beside dropout", dropped, dropped, (found, 0.0), CPU_AIM)


def measure_cpu(sentences: int) -> list[float]:
    """Seconds of the plain pass, of the same with dropout, and of the study."""
    torch.set_num_threads(CORES)
    model, corpus = cpu_study.make_model("mini"), cpu_study.make_corpus(sentences)
    batches = cpu_study.make_batches(model, corpus)
    ways: dict[str, Callable[[], None]] = {
        "plain": lambda: cpu_study.forward(model, batches, "sdpa", head=False),
        "with dropout": lambda: cpu_study.forward_in_training(model, batches),
        "study": lambda: cpu_study.run_study(model, corpus),
    }
    for way in ways.values():
        way()  # warm up
    return [seconds for seconds, _ in cpu_study.measure(ways, 3).values()]


def print_whole(shapes: list[str], device: str) -> None:
    """Lines of the three studies with all files, and of HeadVis' method at the first shape."""
    if gpu_study.MISSING:
        print(f"Whole studies are not measured: {', '.join(gpu_study.MISSING)} missing.")
        return
    studies.print_shapes(shapes, list(studies.OPTIONS), device)
    model = studies.make_model(shapes[0], device)
    inputs = headvis.token_inputs(model, headvis.make_inputs(model, PLAIN_INPUTS))
    headvis.run_plainly(model, inputs[:1])  # warm up
    start = time.perf_counter()
    headvis.run_plainly(model, inputs)
    spent = time.perf_counter() - start
    print(f"HeadVis written plainly on {shapes[0]}: {len(inputs) / spent:.1f} inputs a second")


def print_line(
    name: str, same: float, small: float, found: tuple[float, float], aim: float
) -> None:
    """Seconds of both passes and of the study, the ratios, the aim, and the study's memory."""
    seconds, memory = found
    print(
        f"{name:{WIDTH}s}{same:9.3f}{small:9.3f}{seconds:9.3f}{seconds / same:8.2f}"
        f"{seconds / small:8.2f}{aim:7.2f}{memory:8.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--shard", type=int, default=SHARD_SENTENCES_CUDA)
    parser.add_argument("--tiny", action="store_true", help="small shapes, to see that it works")
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    torch.set_float32_matmul_precision("high")  # TF32 for the network's own products
    print(f"{name}, torch {torch.__version__}; seconds, best of two or three, and GB")
    print(f"{'':{WIDTH}s}{'plain pass in':>18s}{'':9s}{'study beside':>16s}")
    print(f"{'':{WIDTH}s}{'the same':>9s}{'small':>9s}{'':9s}{'the same':>8s}{'small':>8s}")
    print(
        f"{'':{WIDTH}s}{'batches':>9s}{'batches':>9s}{'study':>9s}{'':16s}{'aim':>7s}{'memory':>8s}"
    )
    sentences = gpu_study.make_sentences(options.sentences or (200 if options.tiny else 100_000))
    gc.freeze()  # a real corpus is no million Python objects that are searched for garbage
    for dtype, aim in STUDIES:
        print_study(dtype, aim, sentences, options)
    for line in TINY_LINES if options.tiny else LINES:
        print_inputs(line, options.device)
        if options.device == "cuda":
            torch.cuda.empty_cache()
    print_whole(["tiny"] if options.tiny else ["gpt2", "llama-8b"], options.device)
    print_cpu(64 if options.tiny else 1024)


if __name__ == "__main__":
    main()
