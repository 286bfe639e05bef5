"""The family matrix: what Headscope must capture, what it must refuse.

`python -m tests.contracts.families` prints the tables of docs/models.md.
"""

from collections.abc import Sequence
from functools import lru_cache

from headscope.model.family import REASONS
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


@lru_cache(maxsize=1)
def loaded(name: str) -> Model:
    """The model of a family, kept while the tests of that family run."""
    return next(family for family in FAMILIES if family.name == name).model()


def captured_table() -> str:
    """One line per family: what it shows and how."""
    rows = [_row(family) for family in FAMILIES]
    return _table(("family", "stacks", "backend", "neuron view", "norms", "notes"), rows)


def refused_table() -> str:
    """One line per family that is refused by name."""
    return _table(("model type", "why"), [(f"`{kind}`", why) for kind, why in REASONS.items()])


def _row(family: Family) -> tuple[str, ...]:
    stacks = family.model().stacks
    return (
        family.name,
        " · ".join(stack.name for stack in stacks),
        stacks[0].backend,
        "yes" if all(stack.no_neurons is None for stack in stacks) else "no",
        "yes" if all(stack.no_norms is None for stack in stacks) else "no",
        family.note,
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(captured_table(), refused_table(), sep="\n\n")
