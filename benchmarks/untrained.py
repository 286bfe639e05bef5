"""How many claims networks of random weights earn: python -m benchmarks.untrained [STUDY …]

Nothing was learned by them, so at most one claim in twenty should be "yes". Queries and keys times
six make their attention as sharp as that of trained networks, without making it less random.
"""

import argparse
import sys
from collections import Counter
from typing import Any

import torch

import headscope as hs
from headscope.model.untrained import untrained
from headscope.results.statements import read_statements

SEEDS = 10
FIRST_SEED = 100
SHARPER = 6.0  # times queries and keys, so 36 times the scores
STUDIES: dict[str, tuple[str, dict[str, Any]]] = {
    "vig2019": ("mini-gpt2", {"sentences": 150, "exemplars": 1}),
    "clark2019": ("mini-bert", {"sentences": 40, "probe_seeds": 1, "gradients": False}),
    "luger2026": ("mini-gpt2", {"sentences": 300, "context": 96, "needles": 4, "records": False}),
}
KINDS = {"trained": None, "random": 1.0, "random, sharpened": SHARPER}


def main(studies: list[str], first_seed: int, seeds: int) -> None:
    """Print the verdicts of some studies on every kind of network, random ones by their seeds."""
    print("| study | network | networks | judged | yes | untrained too | share of yes |")
    print("|---|---|---|---|---|---|---|")
    for study in studies:
        for kind, factor in KINDS.items():
            count = 1 if factor is None else seeds
            verdicts: Counter[str] = Counter()
            for seed in range(first_seed, first_seed + count):
                verdicts += judge_network(study, factor, seed)
            judged = sum(verdicts[verdict] for verdict in ("yes", "no", "unclear", "untrained too"))
            yes, too = verdicts["yes"], verdicts["untrained too"]
            share = f"{100 * yes / judged:.1f} %"
            print(
                f"| {study} | {kind} | {count} | {judged} | {yes} | {too} | {share} |", flush=True
            )


def judge_network(study: str, factor: float | None, seed: int) -> Counter[str]:
    """The verdicts on a bundled network, or on random weights of its shape."""
    name, options = STUDIES[study]
    model = hs.load(name)
    if factor is not None:
        model = untrained(model, seed)
        sharpen(model, factor)
    result = hs.study(study, model, hs.demo_corpus(), portrait=False, **options)
    claims = read_statements(result).findings
    for claim in claims:
        if factor is not None and claim.holds == "yes":
            print(f"{study}, {factor:g}, {seed}: {claim.claim} {claim.measured}", file=sys.stderr)
    return Counter(claim.holds for claim in claims)


def sharpen(model: hs.Model, factor: float) -> None:
    """Multiply queries and keys of a bundled network."""
    with torch.no_grad():
        for name, weights in model.network.named_parameters():
            if ".c_attn." in name:  # GPT-2 keeps queries, keys and values in one matrix
                weights[..., : 2 * weights.shape[-1] // 3] *= factor
            elif ".query." in name or ".key." in name:
                weights *= factor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.untrained", description=__doc__)
    parser.add_argument("studies", nargs="*", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many networks of each kind")
    options = parser.parse_args()
    main(options.studies, options.seed, options.seeds)
