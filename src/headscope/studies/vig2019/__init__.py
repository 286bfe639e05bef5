"""vig2019: "Analyzing the Structure of Attention in a Transformer Language Model"."""

import xarray as xr

from headscope.engine.look_again import LookAgain
from headscope.metrics import spread
from headscope.studies import additions
from headscope.studies.option import (
    ALIGNMENT,
    ATTENTION,
    BOS,
    DOCUMENTS,
    Option,
    say_errors,
    say_words,
)
from headscope.studies.shared.sentences import find_labels, inputs_again
from headscope.studies.study import Study
from headscope.studies.untrained import UNTRAINED
from headscope.studies.vig2019.claims import CLAIMS
from headscope.studies.vig2019.figures import FIGURES
from headscope.studies.vig2019.inputs import draw_corpus
from headscope.studies.vig2019.metrics import EXEMPLARS, NUMBERS
from headscope.studies.vig2019.published import OF_MEASURES
from headscope.studies.vig2019.specialists import CHOICE_TITLES, choose_heads
from headscope.studies.vig2019.tables import SYNTAX_TABLE, TABLES


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add what follows from the variables alone: the correlations over heads."""
    pairs = {"distance~entropy": (result["distance"], result["entropy"])}
    if "dependency_alignment" in result:
        either = result["dependency_alignment"].sel(form="either")
        pairs["distance~alignment"] = (result["distance"], either)
    return result.assign(spread.correlations(pairs))


def notes(result: xr.Dataset) -> str:
    """How to read the numbers of this study."""
    null = (
        f"the first token of every sentence{_name_bos(result)}"
        if result.attrs["is_causal"]
        else "the delimiters, as rows and as columns"
    )
    said = (
        "Unless said otherwise, attention to null tokens is left out of every value, as in the "
        f"paper: {null}. Shares are ratios of sums over the whole corpus; bars show two standard "
        "errors. Layers and heads count from 0."
    )
    return f"{additions.note(result)}{said} {say_errors(result)} {say_words(result)}".strip()


def _name_bos(result: xr.Dataset) -> str:
    bos = result.attrs.get("bos")
    return f", the BOS token {bos}" if bos else ""


READINGS = additions.layer_table(
    {"null share": ("null_share", {}), "alignment": ("dependency_alignment", {"form": "either"})}
)

STUDY = Study(
    name="vig2019",
    title="The structure of attention",
    citation="Vig & Belinkov (2019), Analyzing the Structure of Attention in a Transformer "
    "Language Model",
    question="Where does each head look: at which parts of speech, along which relations, how far, "
    "how widely, and does it depend on what the sentence says?",
    options=(
        Option("exemplars", int, 5, "inputs kept per head", least=1),
        Option("self_exemplars", bool, False, "whether a token's attention to itself counts there"),
        ALIGNMENT,
        DOCUMENTS,
        Option(
            "exemplar_sentences",
            int,
            None,
            "sentences that exemplars are sought in, more than the sample for the numbers",
            least=1,
        ),
        Option("corner", int, 10, "first tokens of every input that variability compares", least=1),
        Option("example_tokens", int, 14, "most tokens of the input that is drawn", least=2),
        Option("context", int, None, "inputs are documents of up to this many tokens", least=2),
        ATTENTION,
        BOS,
        additions.WEIGHTS,
        additions.IMPORTANCE,
        UNTRAINED,
    ),
    labels=find_labels,
    inputs=(NUMBERS, EXEMPLARS),
    later_stages=(LookAgain(inputs_again, lambda setup: setup.options["self_exemplars"]),),
    derive=derive,
    shown_first=("distance", "entropy"),
    figures=FIGURES,
    tables=(*TABLES[:2], SYNTAX_TABLE, READINGS, additions.IMPORTANCE_TABLE, *TABLES[2:]),
    claims=CLAIMS,
    published=OF_MEASURES,
    choices=choose_heads,
    choice_titles=CHOICE_TITLES,
    draw=draw_corpus,
    notes=notes,
    demo={
        "mini-gpt2": {"sentences": 400, "cost": 24},
        "mini-bert": {"sentences": 400, "cost": 24},
    },
)

STUDY = additions.with_portrait(STUDY)
