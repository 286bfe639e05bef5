"""The vig2019 study beside the forward pass it rides on, all in one run on the same sentences.

python -m benchmarks.study                 8 layers × 8 heads, width 256
python -m benchmarks.study --shape gpt2    12 × 12, width 768, as GPT-2 small
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

import headscope as hs
from headscope.engine import CPU_TOKENS as BATCH_TOKENS
from headscope.engine import SHARD_SENTENCES, Measuring, Setup
from headscope.engine import forward as engine
from headscope.metrics import Ratio
from headscope.model.inputs.batch import Batch, buckets
from headscope.model.model import Model
from headscope.studies import find_study, running
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt

SHAPES = {"mini": (8, 8, 256), "gpt2": (12, 12, 768)}
TOKENIZER = Path(hs.__file__).parent / "model" / "bundled" / "mini-gpt2"
LOOPED = 24  # sentences for the slow version, scaled up


def make_model(shape: str) -> Model:
    """Random weights: what is measured does not depend on their values."""
    return make_random(shape, *SHAPES[shape])


def make_random(name: str, layers: int, heads: int, width: int) -> Model:
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    config = GPT2Config(
        n_layer=layers, n_head=heads, n_embd=width, n_positions=512, vocab_size=len(tokenizer),
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return Model(GPT2LMHeadModel(config).eval(), tokenizer, name=name)


def make_corpus(sentences: int) -> Corpus:
    """The demo corpus over and over, long sentences only, to have about 28 tokens each."""
    usual = [each for each in hs.demo_corpus() if 15 <= len(each.words) <= 35]
    return Corpus.from_sentences(islice(cycle(usual), sentences))


def make_batches(model: Model, corpus: Corpus) -> list[Batch]:
    """The very batches that the study makes."""
    study = find_study("vig2019")
    options, labels = study.with_options({}), study.labels(corpus)
    setup = Setup(model, corpus, options, labels, BATCH_TOKENS)
    (part,) = study.parts(setup)
    batches = []
    for shard in corpus.shards(SHARD_SENTENCES):
        encoded = [
            example.tokens
            for example in part.kind.make(setup, Excerpt(corpus.read(shard)), shard.start).examples
        ]
        lengths = [len(each) for each in encoded]
        batches += [model.batch(encoded, rows) for rows in buckets(lengths, BATCH_TOKENS)]
    return batches


def forward(model: Model, batches: list[Batch], implementation: str, head: bool) -> None:
    """The network alone, with or without the head of the language model."""
    model.network.set_attn_implementation(implementation)
    network = model.network if head else model.network.base_model
    with torch.inference_mode():
        for batch in batches:
            network(input_ids=batch.ids, attention_mask=batch.mask.long(), use_cache=False)


def forward_in_training(model: Model, batches: list[Batch]) -> None:
    """The network as its class makes it, not in evaluation mode."""
    model.network.train()
    forward(model, batches, "sdpa", head=False)
    model.network.eval()


def forward_with_attentions(model: Model, batches: list[Batch]) -> None:
    """output_attentions=True and nothing done with them."""
    model.network.set_attn_implementation("eager")
    with torch.inference_mode():
        for batch in batches:
            model.network.base_model(
                input_ids=batch.ids,
                attention_mask=batch.mask.long(),
                use_cache=False,
                output_attentions=True,
            )


def run_study(model: Model, corpus: Corpus) -> None:
    """Everything: reading, tokenizing, aligning, observing, writing shards, merging, result."""
    model.network.set_attn_implementation("eager")
    with tempfile.TemporaryDirectory() as folder:
        hs.study("vig2019", model, corpus, folder)


def run_numpy(model: Model, corpus: Corpus) -> None:
    """One sentence at a time, one head at a time: the same statistics written down directly."""
    model.network.set_attn_implementation("eager")
    tags = sorted({word.upos for each in corpus for word in each.words if word.upos})
    relations = sorted({word.deprel for each in corpus for word in each.words if word.deprel})
    for sentence in islice(corpus, LOOPED):
        encoded = model.encode(sentence.text, special=False)
        ids = torch.tensor([encoded.ids])
        with torch.inference_mode():
            attentions = model.network.base_model(
                input_ids=ids, use_cache=False, output_attentions=True
            ).attentions
        word = [_word(sentence.words, *span) for span in encoded.offsets]
        for layer in attentions:
            for weights in layer[0].numpy():
                _reduce(weights[1:, 1:], word[1:], sentence.words, tags, relations)


def _word(words: tuple, start: int, end: int) -> int:
    return next((n for n, word in enumerate(words) if word.start < end and start < word.end), -1)


def _reduce(a: np.ndarray, word: list[int], words: tuple, tags: list, relations: list) -> None:
    size, total = len(a), a.sum()
    for tag in tags:
        has = np.array([w >= 0 and words[w].upos == tag for w in word])
        _ = a[:, has].sum() / total, a[has].sum() / total
    for relation in relations:
        has = np.array([w >= 0 and words[w].deprel == relation for w in word])
        _ = a[:, has].sum() / total
    parent = np.array([words[w].head if w >= 0 else -2 for w in word])
    own = np.array(word)
    related = parent[None, :] == own[:, None]
    place = np.arange(size)
    _ = (a * related).sum() / total, (a * related.T).sum() / total
    _ = (a * np.abs(place[:, None] - place[None, :])).sum() / total
    rows = a / a.sum(1, keepdims=True)
    _ = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(1).mean()
    _ = np.unravel_index(a.argmax(), a.shape), a[:9, :9].copy()


def measure(ways: dict[str, Callable[[], None]], repeats: int) -> dict[str, tuple[float, float]]:
    """Best wall-clock and CPU seconds of each way, the ways taking turns."""
    best = {name: (float("inf"), float("inf")) for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            way()
            taken = time.perf_counter() - wall, time.process_time() - cpu
            best[name] = (min(best[name][0], taken[0]), min(best[name][1], taken[1]))
    return best


def print_parts(model: Model, corpus: Corpus) -> None:
    """CPU seconds of the parts of a study."""
    watched = {
        "shards": (Measuring, "__call__"), "batches": (engine, "_see_batch"),
        "layers": (Ratio, "see_layer"), "all": (running, "_finish"),
    }  # fmt: skip
    spent: dict[str, list[float]] = {name: [] for name in watched}
    with ExitStack() as stack:
        for name, (place, function) in watched.items():
            timed = _timed(getattr(place, function), spent[name])
            stack.enter_context(patch.object(place, function, timed))
        run_study(model, corpus)
    shards, batches, layers, whole = (sum(seconds) for seconds in spent.values())
    parts = {
        "the network, its weights, statistics that are no ratios": batches - layers,
        "ratios of every layer": layers,
        "texts read, tokenized and aligned": shards - batches,
        "values, statements and files": whole - shards,
    }
    print("where the CPU seconds of the study go")
    for name, seconds in parts.items():
        print(f"  {name:56s}{seconds:9.2f}")


def _timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            spent.append(time.process_time() - start)

    return run


def peak_memory(shape: str, sentences: int) -> float:
    """Peak resident memory in MiB of a process that runs the study on so many sentences."""
    command = [sys.executable, "-m", "benchmarks.study", "--shape", shape]
    command += ["--memory", str(sentences)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def print_memory(shape: str, sentences: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.parquet"
        usual = [each for each in hs.demo_corpus() if 15 <= len(each.words) <= 35]
        corpus = Corpus.write(path, islice(cycle(usual), sentences))
        run_study(make_model(shape), corpus)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="mini")
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory runs")
    given = parser.parse_args()
    if given.memory:
        print_memory(given.shape, given.memory)
        return
    model, corpus = make_model(given.shape), make_corpus(given.sentences)
    batches = make_batches(model, corpus)
    tokens = sum(int(batch.mask.sum()) for batch in batches)
    print(f"{given.sentences} sentences, {tokens} tokens, {torch.get_num_threads()} threads")
    print_table(model, corpus, batches, given.repeats)
    print_parts(model, corpus)
    if not given.no_memory:
        for count in (500, 5000):
            peak = peak_memory(given.shape, count)
            print(f"peak memory of the study, {count:5d} sentences  {peak:8.0f} MiB")


def print_table(model: Model, corpus: Corpus, batches: list[Batch], repeats: int) -> None:
    ways: dict[str, Callable[[], None]] = {
        "plain forward, sdpa": lambda: forward(model, batches, "sdpa", head=False),
        "the same with dropout, as in training": lambda: forward_in_training(model, batches),
        "the same with language-model head": lambda: forward(model, batches, "sdpa", head=True),
        "output_attentions=True alone": lambda: forward_with_attentions(model, batches),
        "the study": lambda: run_study(model, corpus),
    }
    ways["plain forward, sdpa"]()  # warm up
    best = measure(ways, repeats)
    (looped,) = measure({"": lambda: run_numpy(model, corpus)}, 1).values()
    scale = len(corpus) / LOOPED
    name = f"per-sentence numpy ({LOOPED} × {scale:.0f})"
    best[name] = (looped[0] * scale, looped[1] * scale)
    plain = best["plain forward, sdpa"]
    print(f"{'':38s}{'seconds':>9s}{'× plain':>9s}{'CPU s':>9s}{'× plain':>9s}")
    for name, (wall, cpu) in best.items():
        print(f"{name:38s}{wall:9.2f}{wall / plain[0]:9.2f}{cpu:9.2f}{cpu / plain[1]:9.2f}")


if __name__ == "__main__":
    main()
