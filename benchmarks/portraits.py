"""How much portraits explain, and how steady names are: python -m benchmarks.portraits [OPTIONS]

    python -m benchmarks.portraits [--corpus FILE.conllu] [--controls SEEDS] [MODEL …]

For each model a table: what each group of features adds for the median head, what the sentences
alone explain, how many heads are recognised, which names there are, and how many heads have the
same name on both halves of the documents. `--controls` counts names of heads that have none to
earn: of random weights, of trained weights whose entries are shuffled, and of random weights with
sharp attention. Models are mini-gpt2 and mini-bert unless named; minilm is all-MiniLM-L6-v2.
"""

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch import Tensor

import headscope as hs
from benchmarks.studies import load_model
from headscope.engine.setup import Setup
from headscope.model.model import Model
from headscope.portrait.facts import Marked, all_facts
from headscope.portrait.pairs import Attention, Pairs, attention_of
from headscope.portrait.sample import TOKENS, Sample
from headscope.portrait.score import (
    even_choices,
    information_of_null,
    information_of_rest,
    log_keys,
    two_choices,
)
from headscope.portrait.stage import PortraitStage
from headscope.portrait.texts import find_documents
from headscope.results.head_map import map_heads
from headscope.text.corpus import Corpus

SWEEPS = 6
NO_NAME = ("evenly", "widely", "unnamed")
SHARP = 5.0  # times the queries and keys of random weights
QUERY_AND_KEY = (".c_attn.", ".query.", ".key.", ".q_proj.", ".k_proj.", ".q_lin.", ".k_lin.")


def main() -> None:
    """Print the tables of all models."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.portraits")
    parser.add_argument("models", nargs="*", default=["mini-gpt2", "mini-bert"])
    parser.add_argument("--corpus", help="a .conllu file instead of the demo corpus")
    parser.add_argument("--controls", type=int, default=0, metavar="SEEDS")
    given = parser.parse_args()
    corpus = hs.demo_corpus() if given.corpus is None else hs.read_corpus(given.corpus)
    for name in given.models:
        model = load_model(name)
        if given.controls:
            print_controls(name, model, corpus, given.controls)
        else:
            print_portraits(name, model, corpus)


def print_portraits(name: str, model: Model, corpus: Corpus) -> None:
    """What the portraits of a model explain, as a table."""
    start = time.perf_counter()
    result = draw(model, corpus)
    seconds = time.perf_counter() - start
    described = map_heads(result)
    assert described is not None
    median = result["explained"].median().item()
    rest = result["explained_rest"].median().item()
    said = float(np.nanmedian(explained_by_sentences(model, corpus, result)))
    first, second = (names_of(draw(model, half)) for half in halves(corpus))
    named = [place for place, names in enumerate(zip(first, second, strict=True))
             if set(names) - set(NO_NAME)]  # fmt: skip
    same = sum(first[place] == second[place] for place in named)
    tally = Counter(cell.name for cell in described.cells).most_common()
    print(f"\n### {name}, {len(described.cells)} heads\n")
    print("| of the median head's attention | explained |\n|---|---|")
    print(f"| all of it | {median:.3f} |\n| null tokens set aside | {rest:.3f} |")
    for group in result["explained_with"].values:
        share = result["explained_by"].sel(explained_with=group).median().item()
        print(f"| added by {group.replace('_', ' ')} | {share:.3f} |")
    print(f"| by the sentence alone | {said:.3f} |")
    one, every = result.attrs["which_head_one"], result.attrs["which_head_all"]
    print(f"| heads recognised from one text, from all | {one:.3f}, {every:.3f} |")
    print(f"| same name in both halves, of heads with a name in either | {same} of {len(named)} |")
    print(f"| seconds | {seconds:.0f} |")
    heads = [cell.head for cell in described.cells]
    changed = [f"{heads[place]} {first[place]} / {second[place]}"
               for place in named if first[place] != second[place]]  # fmt: skip
    print(f"\nOther names in the two halves: {', '.join(changed) or 'none'}.")
    print(f"\nNames: {', '.join(f'{count} {name}' for name, count in tally)}.", flush=True)


def draw(model: Model, corpus: Corpus) -> xr.Dataset:
    """The portraits of all heads, without the rest of a study."""
    setup, stage = Setup(model, corpus, {}, {}, TOKENS), PortraitStage()
    work = stage.work(setup, xr.Dataset(), torch.get_num_threads(), Path())
    outcomes = {layers: work(layers) for layers in stage.pieces(setup, xr.Dataset())}
    return stage.finish(setup, xr.Dataset(), outcomes, Path())


def names_of(result: xr.Dataset) -> list[str]:
    """The names of all heads."""
    return result["behaviour"].values.ravel().tolist()


def halves(corpus: Corpus) -> list[Corpus]:
    """Every second document, and the others."""
    documents = find_documents(corpus)
    parts: list[Corpus] = []
    for half in (0, 1):
        rows: list[int] = []
        for document in documents[half::2]:
            rows += range(document.start, document.stop)
        parts.append(corpus.select(rows))
    return parts


def explained_by_sentences(model: Model, corpus: Corpus, result: xr.Dataset) -> np.ndarray:
    """What a constant share of the sink and the facts of a head's sentence explain."""
    sample = Sample.draw(Setup(model, corpus, {}, {}, TOKENS), "auto")
    pairs = {part: Pairs.of(sample.texts[part], sample.vocabulary) for part in ("fit", "score")}
    layers = range(result.sizes["layer"])
    with torch.inference_mode():
        attention = {
            part: attention_of(model, pairs[part], layers, TOKENS) for part in ("fit", "score")
        }
        slots = facts_said(result, sample)
        marks = {part: marked_by_slot(pairs[part], sample, slots) for part in ("fit", "score")}
        weights = fit_together(pairs["fit"], attention["fit"], marks["fit"])
        gained = gain_together(pairs["score"], attention["score"], marks["score"], weights)
        gained += gain_of_constant(
            pairs["score"], attention["score"], attention["fit"].null.mean(0)
        )
        total = information_of_rest(pairs["score"], attention["score"]).sum(0)
        total += information_of_null(pairs["score"], attention["score"]).sum(0)
    shares = (gained / total).cpu().numpy()
    return np.where(np.isfinite(result["explained"].values.ravel()), shares, np.nan)


def facts_said(result: xr.Dataset, sample: Sample) -> list[list[int]]:
    """The facts of every head's sentence, by their places."""
    place = {fact.name.key: number for number, fact in enumerate(all_facts(sample.vocabulary))}
    portraits = hs.portraits(result)
    return [
        [place[fact.key] for fact in portraits[head].facts if fact.key in place]
        for head in portraits
    ]


def marked_by_slot(pairs: Pairs, sample: Sample, said: Sequence[Sequence[int]]) -> list[Tensor]:
    """Which pairs the first, second … fact of every head marks."""
    facts = all_facts(sample.vocabulary)
    slots: list[Tensor] = []
    for slot in range(max(map(len, said))):
        marks = torch.zeros(len(pairs.key), len(said))
        for number in {numbers[slot] for numbers in said if len(numbers) > slot}:
            heads = [head for head, numbers in enumerate(said)
                     if len(numbers) > slot and numbers[slot] == number]  # fmt: skip
            marks[Marked.of(pairs, facts[number]).pairs[:, None], torch.tensor(heads)] = 1.0
        slots.append(marks)
    return slots


def fit_together(pairs: Pairs, attention: Attention, marks: Sequence[Tensor]) -> list[Tensor]:
    """One weight for every fact of a sentence, fitted in turn by Newton's method."""
    weights = [torch.zeros(attention.pairs.shape[1]) for _ in marks]
    for _ in range(SWEEPS):
        for slot, marked in enumerate(marks):
            likely = pairs.design.row_sums(logits_of(marks, weights, pairs).exp() * marked)
            mass = attention.rest
            slope = (attention.pairs * marked).sum(0) - (mass * likely).sum(0)
            curvature = (mass * likely * (1 - likely)).sum(0) + 1e-3
            weights[slot] = (weights[slot] + (slope / curvature).clamp(-1.5, 1.5)).clamp(-8, 8)
    return weights


def logits_of(marks: Sequence[Tensor], weights: Sequence[Tensor], pairs: Pairs) -> Tensor:
    """The logarithms of what the facts of every head give to the pairs."""
    logits = torch.zeros_like(marks[0])
    for marked, weight in zip(marks, weights, strict=True):
        logits += marked * weight
    return pairs.design.log_softmax(logits)


def gain_together(
    pairs: Pairs, attention: Attention, marks: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """What the facts of every head gain over even attention, in nats × mass."""
    likely = logits_of(marks, weights, pairs)
    even = attention.rest.double() * log_keys(pairs)
    return (pairs.design.row_sums(attention.pairs * likely).double() + even).sum(0)


def gain_of_constant(pairs: Pairs, attention: Attention, share: Tensor) -> Tensor:
    """What one share of the null tokens for all rows gains over even attention."""
    share = share.clamp(1e-6, 1 - 1e-6)
    likely = torch.stack([share, 1 - share]).log().repeat(len(pairs), 1)
    return (two_choices(attention) * (likely - even_choices(pairs))).double().sum(0)


def print_controls(name: str, model: Model, corpus: Corpus, seeds: int) -> None:
    """How many heads have a name where there is none to earn."""
    print(f"\n### {name}: names of {seeds} networks of each kind\n")
    print("| network | names | heads |\n|---|---|---|")
    for kind in ("random", "shuffled", "sharpened"):
        names: Counter[str] = Counter()
        for seed in range(seeds):
            names.update(names_of(draw(control(model, kind, seed), corpus)))
        earned = {name: count for name, count in names.items() if name not in NO_NAME}
        print(f"| {kind} | {said_names(earned)} | {names.total()} |", flush=True)


def said_names(names: Mapping[str, int]) -> str:
    """Names with their counts."""
    listed = ", ".join(f"{count} {name}" for name, count in names.items())
    return f"{sum(names.values())} ({listed})" if names else "0"


def control(model: Model, kind: str, seed: int) -> Model:
    """A network of the same shape that has learned nothing."""
    torch.manual_seed(seed)
    if kind == "shuffled":
        network = deepcopy(model.network)
        for values in network.parameters():
            flat = values.data.flatten()
            values.data = flat[torch.randperm(len(flat))].view_as(values)
        return Model(network, model.tokenizer)
    network = type(model.network)(model.network.config)
    if kind == "sharpened":
        for name, values in network.named_parameters():
            if any(part in f".{name}" for part in QUERY_AND_KEY):
                # GPT-2 keeps queries, keys and values in one matrix; values stay as they are.
                width = values.shape[-1] // 3 * 2 if "c_attn" in name else values.shape[-1]
                values.data[..., :width] *= SHARP
    return Model(network.eval(), model.tokenizer)


if __name__ == "__main__":
    main()
