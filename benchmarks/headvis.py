"""luger2026 beside the method of HeadVis written plainly, both on the same inputs in one run.

python -m benchmarks.headvis                  mini-gpt2
python -m benchmarks.headvis --shape gpt2     a random network of GPT-2 small's shape

The plain way runs the network with eager attention, keeps the weights of all layers, and goes
through the heads one by one: means of diagonals, entropy, distances, induction, largest weight,
what tokens pay and receive, the largest weights of every row. Ours is the pass over the same inputs
with all measures and records, and the whole study with its files, which also reads made inputs and
looks at the examples once more: a cost that does not grow with the corpus.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
import torch

import headscope as hs
from benchmarks.study import make_model
from headscope.engine import CPU_TOKENS, Setup, observe
from headscope.model.model import Model
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from headscope.text.sentence import Sentence

CONTEXT = 512
BINS, ROWS, LEAST_SHOWN = 50, 8, 0.005
LEAST = 0.01  # of a weight that counts for induction
SIZES = (8, 64)  # documents, of about 15 inputs of SHORT tokens each, whose memory is compared
SHORT = 64
Sums = defaultdict[str, float]  # of one head, by what is summed


def make_inputs(model: Model, count: int) -> Corpus:
    """Documents of about one input each: the demo corpus over and over."""
    texts = cycle(" ".join(each.text for each in one) for one in hs.demo_corpus().documents())
    joined = (" ".join(islice(texts, 3)) for _ in range(count))
    sentences = (Sentence(text, document=str(place)) for place, text in enumerate(joined))
    return Corpus.from_sentences(sentences)


def token_inputs(model: Model, corpus: Corpus) -> list[np.ndarray]:
    """The ids of every input, as the study cuts them."""
    study = find_study("luger2026")
    setup = Setup(model, corpus, study.with_options({"context": CONTEXT}), {}, CONTEXT)
    columns = study.parts(setup)[0].kind.make(setup, Excerpt(list(corpus)), 0).columns
    return np.split(columns.ids, columns.starts[1:])


def run_plainly(model: Model, inputs: list[np.ndarray]) -> dict[tuple[int, int], Sums]:
    """Every input through the network with all weights kept, then head by head."""
    model.network.set_attn_implementation("eager")
    found: dict[tuple[int, int], Sums] = {}
    for ids in inputs:
        with torch.inference_mode():
            given = torch.from_numpy(ids)[None].to(model.device)
            made = model.network(input_ids=given, use_cache=False, output_attentions=True)
        for layer, weights in enumerate(made.attentions):
            kept = weights[0].float().cpu().numpy()
            for head in range(weights.shape[1]):
                sums = found.setdefault((layer, head), defaultdict(float))
                reduce_head(kept[head], ids.tolist(), sums)
    return found


def reduce_head(a: np.ndarray, tokens: list[int], sums: Sums) -> None:
    """What HeadVis keeps of one head and one input."""
    size = len(a)
    place = np.arange(size)
    apart = np.abs(place[:, None] - place)
    sums["inputs"] += 1
    sums["self"] += np.diagonal(a).mean()
    sums["previous"] += np.diagonal(a, -1).mean()
    sums["entropy"] += -(a * np.log(np.where(a > 0, a, 1))).sum(1).mean()
    sums["distance"] += (a * apart).sum() / a.sum()
    sums["squares"] += (a * apart**2).sum() / a.sum()
    edges = np.ceil(np.log2(apart + 1)).astype(int)
    for far, weight in enumerate(np.bincount(edges.ravel(), weights=a.ravel())):
        sums[f"distance {far}"] += weight
    sums["induction"] += plain_induction(a, tokens)
    inner = a[1:, 1:]
    sums[f"peak {min(int(inner.max() * BINS), BINS - 1)}"] += 1
    for token, paid, received in zip(tokens, a.sum(1), a.sum(0), strict=True):
        sums[f"query {token}"] += paid
        sums[f"key {token}"] += received
    _ = list(sparse_rows(a))


def plain_induction(a: np.ndarray, tokens: list[int]) -> float:
    """Mean attention to what followed an earlier occurrence of the same token."""
    total, queries = 0.0, 0
    for i, token in enumerate(tokens):
        keys = [j for j in range(1, i) if tokens[j - 1] == token]
        if keys:
            queries += 1
            total += sum(a[i, j] for j in keys if a[i, j] >= LEAST)
    return total / max(queries, 1)


def sparse_rows(a: np.ndarray) -> Iterator[tuple[int, float]]:
    """The largest weights of every row as flat indices and values."""
    for i, row in enumerate(a):
        best = np.argsort(row)[-ROWS:]
        for j in best:
            if row[j] > LEAST_SHOWN:
                yield i * len(a) + int(j), float(row[j])


def run_study(model: Model, corpus: Corpus, context: int = CONTEXT) -> None:
    """Everything that luger2026 does, with its files, but the maps of queries and keys."""
    model.network.set_attn_implementation("eager")
    with tempfile.TemporaryDirectory() as folder:
        hs.study("luger2026", model, corpus, folder, context=context, points=0)


def run_pass(model: Model, corpus: Corpus) -> None:
    """All measures and records of the texts alone: what grows with the corpus."""
    model.network.set_attn_implementation("eager")
    study = find_study("luger2026")
    setup = Setup(model, corpus, study.with_options({"context": CONTEXT}), {}, CPU_TOKENS)
    part = study.parts(setup)[0]
    made = part.kind.make(setup, Excerpt(list(corpus)), 0)
    observe(model, made.columns, part.metrics, CPU_TOKENS, "auto")


def run_forward(model: Model, inputs: list[np.ndarray]) -> None:
    """The network alone."""
    model.network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        for ids in inputs:
            model.network.base_model(input_ids=torch.from_numpy(ids)[None], use_cache=False)


def seconds(work: object, *given: object) -> tuple[float, float]:
    """Wall-clock and CPU time of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    work(*given)  # pyright: ignore[reportCallIssue]
    return time.perf_counter() - wall, time.process_time() - cpu


def peak_memory(shape: str, count: int) -> float:
    """Peak resident memory in MiB of a process that runs the study on so many inputs."""
    command = [sys.executable, "-m", "benchmarks.headvis", "--shape", shape]
    done = subprocess.run([*command, "--memory", str(count)], capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def load_shape(shape: str) -> Model:
    return hs.load("mini-gpt2") if shape == "mini" else make_model(shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=("mini", "gpt2"), default="mini")
    parser.add_argument("--inputs", type=int, default=32)
    parser.add_argument("--plain", type=int, default=4, help="inputs for the plain way")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory runs")
    given = parser.parse_args()
    model = load_shape(given.shape)
    if given.memory:
        run_study(model, make_inputs(model, given.memory), SHORT)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    print_table(model, given)
    if not given.no_memory:
        for count in SIZES:
            peak = peak_memory(given.shape, count)
            print(f"peak memory of the study, {count:4d} documents  {peak:8.0f} MiB")


def print_table(model: Model, given: argparse.Namespace) -> None:
    corpus = make_inputs(model, given.inputs)
    inputs = token_inputs(model, corpus)
    layers, heads = len(model.stacks[0].attending), model.heads
    print(f"{len(inputs)} inputs of {CONTEXT} tokens, {layers} × {heads} heads, "
          f"{torch.get_num_threads()} threads")  # fmt: skip
    ways = {
        "the network alone, sdpa": (run_forward, inputs, len(inputs)),
        "HeadVis written plainly": (run_plainly, inputs[: given.plain], given.plain),
        "luger2026, the pass": (run_pass, corpus, len(inputs)),
        "luger2026, the whole study": (run_study, corpus, len(inputs)),
    }
    taken = {}
    for name, (work, what, count) in ways.items():
        wall, cpu = seconds(work, model, what)
        taken[name] = cpu / count
        print(f"{name:28s} {wall / count:8.3f} s {cpu / count:8.3f} s of a core for an input")
    for name in list(ways)[2:]:
        print(f"{name}: {taken['HeadVis written plainly'] / taken[name]:.1f} times as fast")


if __name__ == "__main__":
    main()
