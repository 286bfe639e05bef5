"""The family matrix: what Headscope must capture, what it must refuse.

`python -m tests.contracts.families > docs/families.json` writes down what each shows; from that
file `python docs/models_page.py` makes the tables of docs/models.md.
"""

import json
from functools import cache
from typing import Any

from headscope.model.capture.plan import REASONS
from headscope.model.model import Model
from tests.contracts.causal_families import CAUSAL
from tests.contracts.family import IDS, Family
from tests.contracts.masked_families import MASKED
from tests.contracts.seq2seq_families import BART, SEQ2SEQ, T5

FAMILIES: tuple[Family, ...] = (*MASKED, *CAUSAL, *SEQ2SEQ)

FUNNEL = {**IDS, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 40, "block_sizes": [1, 1]}
REFUSED: tuple[tuple[Family, str], ...] = (
    (Family("Longformer", "longformer", "masked", {"attention_window": 4}), "band"),
    (
        Family("LED", "led", "seq2seq", {**BART, "attention_window": 4}, common=False),
        "band",
    ),
    (Family("LongT5 (local)", "longt5", "seq2seq", T5, common=False), "band"),
    (Family("BigBird (sparse)", "big_bird", "masked"), "blocks"),
    (Family("YOSO", "yoso", "masked"), "approximates"),
    (Family("MRA", "mra", "masked"), "approximates"),
    (Family("Nyströmformer", "nystromformer", "masked"), "approximates"),
    (
        Family("Funnel", "funnel", "masked", FUNNEL, common=False),
        "pools its queries",
    ),
    (Family("Mamba", "mamba", "causal"), "no attention"),
    (Family("FNet", "fnet", "masked"), "no attention"),
)


@cache
def loaded(name: str) -> Model:
    """The model of a family, a small one: kept for all tests."""
    return next(family for family in FAMILIES if family.name == name).model()


def described() -> dict[str, Any]:
    """What docs/families.json holds: what each family shows and how, and what is refused."""
    refused = [{"model_type": kind, "why": why} for kind, why in REASONS.items()]
    return {"captured": [_record(family) for family in FAMILIES], "refused": refused}


def _record(family: Family) -> dict[str, Any]:
    stacks = loaded(family.name).stacks
    return {
        "family": family.name,
        "model_type": family.model_type,
        "kind": family.kind,
        "stacks": [stack.name for stack in stacks],
        "backend": stacks[0].backend,
        "neuron_view": all(stack.no_neurons is None for stack in stacks),
        "norms": all(stack.no_norms is None for stack in stacks),
        "notes": family.note,
    }


if __name__ == "__main__":
    print(json.dumps(described(), indent=1, ensure_ascii=False))
