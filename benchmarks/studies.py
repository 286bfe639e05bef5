"""All three studies beside the plain forward pass over the same inputs, and where the seconds go.

python -m benchmarks.studies                       both bundled models
python -m benchmarks.studies --studies luger2026   one study

The plain pass reads every input of every kind that the study makes of its corpus, once. CPU
seconds, since the wall time of a machine that others use says little.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import xarray as xr

import headscope as hs
from headscope.engine import CPU_TOKENS, Setup
from headscope.engine import stage as stages
from headscope.engine.part import read_inputs
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.studies import find_study
from headscope.text.corpus import Corpus

MODELS = ("mini-gpt2", "mini-bert")
OPTIONS: dict[str, dict[str, Any]] = {
    "vig2019": {},
    "luger2026": {"rest": True},  # few documents of the demo corpus have 512 tokens
    "clark2019": {},
}


def main() -> None:
    """Print a line for each study and model, and one for each of its stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", nargs="+", choices=OPTIONS, default=list(OPTIONS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    given = parser.parse_args()
    corpus = hs.demo_corpus()
    print(f"{len(corpus)} sentences, {torch.get_num_threads()} threads")
    print(f"{'':38s}{'CPU s':>9s}{'× plain':>9s}")
    for name in given.studies:
        for model in given.models:
            print_study(name, hs.load(model, device="cpu"), corpus)


def print_study(name: str, model: Model, corpus: Corpus) -> None:
    """The seconds of a study and its stages, beside those of a plain pass."""
    batches = make_batches(name, model, corpus)
    run_plain(model, batches[:4])  # warm up
    spent: dict[str, float] = {}
    with timing("plain pass", spent):
        run_plain(model, batches)
    with timing(name, spent), timing_stages(spent), tempfile.TemporaryDirectory() as folder:
        hs.study(name, model, corpus, folder, **OPTIONS[name])
    plain, whole = spent.pop("plain pass"), spent.pop(name)
    print(f"{f'{name} on {model.name}':38s}{whole:9.2f}{whole / plain:9.2f}")
    print(f"{f'  plain pass, {sum(map(len, batches)):,} inputs':38s}{plain:9.2f}{1:9.2f}")
    spent["statements and the rest"] = whole - sum(spent.values())
    for part, seconds in spent.items():
        print(f"{f'  {part}':38s}{seconds:9.2f}{seconds / plain:9.2f}")


def make_batches(name: str, model: Model, corpus: Corpus) -> list[Batch]:
    """The batches that the first stage of a study makes."""
    study = find_study(name)
    options = dict(study.settle(model, study.with_options(OPTIONS[name])))
    drawn = study.draw(corpus, None, 0, options)
    setup = Setup(model, drawn, options, study.labels(drawn), CPU_TOKENS)
    first = study.stages(setup)[0]
    parts = study.parts(setup)
    batches: list[Batch] = []
    for shard in first.pieces(setup, xr.Dataset()):
        for inputs in read_inputs(setup, parts, shard):
            columns = inputs.columns
            for rows in model.buckets(columns.lengths.tolist(), CPU_TOKENS):
                cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal)
                batches.append(cut.batch)
    return batches


def run_plain(model: Model, batches: list[Batch]) -> None:
    """The network without the head of the language model, by its fastest attention."""
    model.network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        for batch in batches:
            model.network.base_model(input_ids=batch.ids, attention_mask=batch.mask.long())
    model.network.set_attn_implementation("eager")


@contextmanager
def timing(name: str, spent: dict[str, float]) -> Iterator[None]:
    """Note the CPU seconds of what is done."""
    start = time.process_time()
    yield
    spent[name] = time.process_time() - start


@contextmanager
def timing_stages(spent: dict[str, float]) -> Iterator[None]:
    """Note the CPU seconds of every stage."""
    run_stage = stages.run_stage

    def run(stage: stages.Stage[Any], *given: Any) -> xr.Dataset:
        with timing(f"stage {stage.name}", spent):
            return run_stage(stage, *given)

    with patch.object(stages, "run_stage", run):
        yield


if __name__ == "__main__":
    main()
