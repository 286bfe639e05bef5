"""The vig2019 study on a GPU beside the forward pass of the same batches.

python -m benchmarks.gpu_study                                    100,000 sentences on CUDA
python -m benchmarks.gpu_study --device cpu --shape tiny --sentences 200 --shard 100

The study is measured from sentences in memory to the merged numbers: tokenizing, aligning,
observing, packing and writing shards, merging, computing values and errors. Reading Parquet and
writing netCDF are left out, as the GPU machine has neither. The forward pass is the network alone
(sdpa, no language-model head), its batches on the device already.
"""

import argparse
import cProfile
import gc
import pstats
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from benchmarks.absent import stand_in

MISSING = stand_in()

from headscope.engine import (  # noqa: E402  # noqa: E402
    SHARD_SENTENCES_CUDA,
    Counts,
    Measuring,
    Setup,
    default_batch_tokens,
    observe,
    pack,
    read_ahead,
    unpack,
)
from headscope.metrics import Ratio, Sums  # noqa: E402
from headscope.metrics.metric import DENOMINATOR, NUMERATOR  # noqa: E402
from headscope.model.inputs.batch import Batch  # noqa: E402
from headscope.model.model import Model  # noqa: E402
from headscope.studies import find_study  # noqa: E402
from headscope.text.corpus import Shard  # noqa: E402
from headscope.text.segments import Excerpt  # noqa: E402
from headscope.text.sentence import ROOT, Sentence, Word  # noqa: E402

TOKENIZER = Path(__file__).parents[1] / "src" / "headscope" / "model" / "bundled" / "mini-gpt2"
SHAPES = {"gpt2": (12, 12, 768), "tiny": (2, 2, 32)}
TAGS = tuple(f"tag{n:02d}" for n in range(17))
RELATIONS = tuple(f"relation{n:02d}" for n in range(45))
DISTINCT = 10_000  # sentences; more are the same over and over
FORWARD_TOKENS = (16384, 32768, 131072)  # of a batch, padding included
MEAN, SHORTEST, LONGEST = 28, 4, 90  # tokens
STUDY = find_study("vig2019")


@dataclass(frozen=True, eq=False)
class Memory:
    """Sentences in memory: what the engine asks of a corpus."""

    sentences: list[Sentence]
    fingerprint: str = "synthetic"

    def __len__(self) -> int:
        return len(self.sentences)

    def has(self, field: str) -> bool:
        return field in ("words", "upos", "head", "deprel")

    def read(self, shard: Shard) -> list[Sentence]:
        return self.sentences[shard.start : shard.stop]

    def shards(self, size: int) -> list[Shard]:
        starts = range(0, len(self), size)
        return [Shard(n, start, min(start + size, len(self))) for n, start in enumerate(starts)]


def make_model(shape: str, device: str, dtype: torch.dtype) -> Model:
    layers, heads, width = SHAPES[shape]
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    config = GPT2Config(
        n_layer=layers, n_head=heads, n_embd=width, vocab_size=len(tokenizer),
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    network = GPT2LMHeadModel(config).eval()  # no dropout in the forward pass either
    network = network.to(dtype).to(torch.device(device))  # pyright: ignore[reportArgumentType]
    return Model(network, tokenizer, name=shape)


def make_sentences(count: int) -> list[Sentence]:
    """Words of one token each, with random tags and trees."""
    rng = random.Random(0)
    vocabulary = AutoTokenizer.from_pretrained(TOKENIZER).get_vocab()
    words = sorted(w[1:] for w in vocabulary if w[0] == "Ġ" and w[1:].isascii() and w[1:].isalpha())
    made = [_sentence(rng, words, n) for n in range(min(count, DISTINCT))]
    return list(islice(cycle(made), count))


def _sentence(rng: random.Random, words: list[str], number: int) -> Sentence:
    length = min(max(round(rng.lognormvariate(np.log(MEAN) - 0.1, 0.45)), SHORTEST), LONGEST)
    root, place, made = rng.randrange(length), 0, []
    for index in range(length):
        form = rng.choice(words)
        near = min(max(index + rng.choice((-3, -2, -1, 1, 2)), 0), length - 1)
        head = ROOT if index == root else near if near != index else root
        made.append(
            Word(form, place, place + len(form), rng.choice(TAGS), head=head,
                 deprel=rng.choice(RELATIONS))
        )  # fmt: skip
        place += len(form) + 1
    return Sentence(" ".join(word.text for word in made), tuple(made), id=str(number))


def make_setup(model: Model, sentences: list[Sentence], batch_tokens: int) -> Setup:
    corpus = Memory(sentences)
    labels = {"tag": TAGS, "deprel": RELATIONS}
    return Setup(model, corpus, STUDY.with_options({}), labels, batch_tokens)  # pyright: ignore[reportArgumentType]


def make_batches(setup: Setup, shards: list[Shard], most: int) -> Iterator[Batch]:
    """The inputs of the study in batches of similar length, on the device."""
    (part,) = STUDY.parts(setup)
    for shard in shards:
        columns = part.kind.make(setup, Excerpt(setup.corpus.read(shard)), shard.start).columns
        for rows in setup.model.buckets(columns.lengths.tolist(), most):
            cut = columns.cut(rows, pad=setup.model.pad, is_causal=True)
            yield cut.to(setup.model.device).batch


def time_forward(setup: Setup, shards: list[Shard], most: int, device: str) -> float:
    """Seconds of the plain forward pass in batches of at most so many tokens, padding included."""
    batches = list(make_batches(setup, shards, most))
    forward(setup, batches[:4])
    return min(seconds(lambda: forward(setup, batches), device) for _ in range(2))


def forward(setup: Setup, batches: list[Batch]) -> None:
    setup.model.network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        for batch in batches:
            setup.model.network.base_model(
                input_ids=batch.ids, attention_mask=batch.mask.long(), use_cache=False
            )


def observe_all(setup: Setup, shards: list[Shard]) -> None:
    """The states of every shard, not kept: everything but packing, writing and merging."""
    setup.model.network.set_attn_implementation("eager")
    job = make_job(setup)
    for inputs in read_ahead(setup, job.parts, shards):
        job.measure(inputs)


def make_job(setup: Setup) -> Measuring:
    """The work of the study on a shard."""
    return Measuring(setup, torch.get_num_threads(), STUDY.parts)


def run_study(setup: Setup, shards: list[Shard], folder: Path) -> dict[str, Sums]:
    """Everything from sentences to values; the sums of all metrics."""
    setup.model.network.set_attn_implementation("eager")
    metrics = STUDY.metrics(setup)
    total = {name: metric.zero() for name, metric in metrics.items()}
    for shard, content in make_job(setup).run_ahead(shards):
        (folder / f"{shard.index}.npz").write_bytes(content)
        sums, _ = unpack(content)
        total = {name: metrics[name].merge(total[name], sums[name]) for name in metrics}
    for name, metric in metrics.items():
        metric.compute(total[name])
    return total


def seconds(run: Callable[[], object], device: str) -> float:
    start = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def compare(options: argparse.Namespace, dtype: torch.dtype, sentences: list[Sentence]) -> None:
    torch.set_float32_matmul_precision("high")  # TF32 for the network's own products
    model = make_model(options.shape, options.device, dtype)
    batch_tokens = options.batch_tokens or default_batch_tokens(model)
    setup = make_setup(model, sentences, batch_tokens)
    shards = setup.corpus.shards(options.shard)
    times = {
        f"plain forward, sdpa, {most:,} tokens a batch": time_forward(
            setup, shards, most, options.device
        )
        for most in FORWARD_TOKENS
    }
    fastest = min(times.values())
    with tempfile.TemporaryDirectory() as folder:
        run_study(setup, shards[:2], Path(folder))
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times["the study without files"] = seconds(lambda: observe_all(setup, shards), options.device)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        work = partial(run_study, setup, shards, Path(folder))
        times["the study"] = seconds(work, options.device)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e9
    if options.device == "cuda":
        peak = torch.cuda.max_memory_allocated() / 1e9
        print(f"\npeak memory of the study {peak:.1f} GB", end="")
    print(f"\n{str(dtype).removeprefix('torch.')}: {len(sentences):,} sentences, ", end="")
    print(f"{size:.1f} GB of shards, batches of at most {batch_tokens} tokens")
    for name, taken in times.items():
        print(f"{name:46s}{taken:9.2f} s{taken / fastest:8.2f} ×")
    print_steps(setup, shards[0], options.device)


def print_steps(setup: Setup, shard: Shard, device: str) -> None:
    """One shard, one step after the other; in the study inputs are made by other processes."""
    (part,) = STUDY.parts(setup)
    sentences, made, found = setup.corpus.read(shard), [], []
    steps: dict[str, Callable[[], object]] = {
        "inputs": lambda: made.append(part.kind.make(setup, Excerpt(sentences), shard.start)),
        "observe": lambda: found.append(
            observe(setup.model, made[-1].columns, part.metrics, setup.batch_tokens, "auto")
        ),
        "pack": lambda: pack(found[-1], Counts()),
    }
    taken = {name: min(seconds(step, device) for _ in range(3)) for name, step in steps.items()}
    shown = ", ".join(f"{name} {value:.3f} s" for name, value in taken.items())
    print(f"a shard of {len(sentences)} sentences alone: {shown}")


def check(options: argparse.Namespace, sentences: list[Sentence]) -> None:
    """Values of the device beside those of the CPU, both in true float32."""
    torch.set_float32_matmul_precision("highest")
    found = []
    for device in ("cpu", options.device):
        setup = make_setup(make_model(options.shape, device, torch.float32), sentences, 4096)
        with tempfile.TemporaryDirectory() as folder:
            found.append(run_study(setup, setup.corpus.shards(200), Path(folder)))
    ratios = [name for name, m in STUDY.metrics(setup).items() if isinstance(m, Ratio)]
    worst = max(_difference(found[0][name], found[1][name]) for name in ratios)
    corners = np.abs(found[0]["variability"]["weight"] - found[1]["variability"]["weight"]).max()
    same = (found[0]["exemplars"]["sentence"] == found[1]["exemplars"]["sentence"]).mean()
    print(f"\n{len(sentences)} sentences on {options.device} beside the CPU, both in float32: ")
    print(f"ratios differ by at most {worst:.1e}, sums of corners by {corners:.1e}, ", end="")
    print(f"{100 * same:.1f} % of the exemplars are the same")


def _difference(left: Sums, right: Sums) -> float:
    values = [
        sums[NUMERATOR].sum(0).numpy()
        / np.where((total := sums[DENOMINATOR].sum(0).numpy()) > 0, total, np.nan)
        for sums in (left, right)
    ]
    return float(np.nanmax(np.abs(values[0] - values[1])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", choices=SHAPES, default="gpt2")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--shard", type=int, default=SHARD_SENTENCES_CUDA)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--folder", help="where shards are written; the system's default if absent")
    parser.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"])
    parser.add_argument(
        "--profile", action="store_true", help="only show where the time of a shard goes"
    )
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    print(f"{name}, torch {torch.__version__}, stand-ins for {', '.join(MISSING) or 'nothing'}")
    sentences = make_sentences(options.sentences)
    gc.freeze()  # a real corpus is no million Python objects that are searched for garbage
    if options.profile:
        for dtype in options.dtypes:
            profile(options, getattr(torch, dtype), sentences[: options.shard])
        return
    check(options, sentences[:400])
    for dtype in options.dtypes:
        compare(options, getattr(torch, dtype), sentences)


def profile(options: argparse.Namespace, dtype: torch.dtype, sentences: list[Sentence]) -> None:
    """One shard under the profilers of torch and of Python, to see what to make faster."""
    torch.set_float32_matmul_precision("high")
    model = make_model(options.shape, options.device, dtype)
    tokens = options.batch_tokens or default_batch_tokens(model)
    setup = make_setup(model, sentences, tokens)
    shard = setup.corpus.shards(len(sentences))[0]
    job = make_job(setup)
    job(shard)
    with torch.profiler.profile() as seen:
        job(shard)
    key = "cuda_time_total" if options.device == "cuda" else "cpu_time_total"
    print(seen.key_averages().table(sort_by=key, row_limit=32, max_name_column_width=60))
    python = cProfile.Profile()
    python.runcall(job, shard)
    pstats.Stats(python).sort_stats("cumtime").print_stats(45)


if __name__ == "__main__":
    main()
