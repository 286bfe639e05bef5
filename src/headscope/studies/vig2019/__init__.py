"""vig2019: "Analyzing the Structure of Attention in a Transformer Language Model"."""

import xarray as xr

from headscope.studies.study import Study
from headscope.studies.vig2019.choices import choose_heads
from headscope.studies.vig2019.figures import FIGURES
from headscope.studies.vig2019.findings import FINDINGS
from headscope.studies.vig2019.inputs import find_labels
from headscope.studies.vig2019.metrics import derive, left_out, parts
from headscope.studies.vig2019.tables import TABLES


def notes(result: xr.Dataset) -> str:
    """How to read the numbers of this study."""
    null = (
        "the first token of every sentence"
        if result.attrs["is_causal"]
        else "the delimiters, as rows and as columns"
    )
    return (
        "Unless said otherwise, attention to null tokens is left out of every value, as in the "
        f"paper: {null}. Shares are ratios of sums over the whole corpus; bars show two standard "
        "errors over sentences. Layers and heads count from 0."
    )


STUDY = Study(
    name="vig2019",
    title="The structure of attention",
    citation="Vig & Belinkov (2019), Analyzing the Structure of Attention in a Transformer "
    "Language Model",
    question="Where does each head look: at which parts of speech, along which relations, how far, "
    "how widely, and does it depend on what the sentence says?",
    options={
        "exemplars": 5,
        "self_exemplars": True,
        "corner": 10,
        "example_tokens": 14,
        "context": None,  # documents of so many tokens as inputs, instead of sentences
        "attention": None,  # dense, rows or fused; by the length of the inputs if not given
    },
    labels=find_labels,
    left_out=left_out,
    parts=parts,
    derive=derive,
    figures=FIGURES,
    tables=TABLES,
    findings=FINDINGS,
    choices=choose_heads,
    notes=notes,
)
