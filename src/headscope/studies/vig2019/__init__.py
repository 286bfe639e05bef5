"""vig2019: "Analyzing the Structure of Attention in a Transformer Language Model"."""

import xarray as xr

from headscope.studies import importance, norms
from headscope.studies.option import Option
from headscope.studies.reading import ALIGNMENT, DOCUMENTS, say_words
from headscope.studies.study import Study
from headscope.studies.vig2019 import depth, syntax
from headscope.studies.vig2019.exhibits import FIGURES, TABLES
from headscope.studies.vig2019.findings import FINDINGS
from headscope.studies.vig2019.inputs import find_labels
from headscope.studies.vig2019.metrics import derive, left_out, parts
from headscope.studies.vig2019.specialised import choose_heads


def notes(result: xr.Dataset) -> str:
    """How to read the numbers of this study."""
    null = (
        "the first token of every sentence"
        if result.attrs["is_causal"]
        else "the delimiters, as rows and as columns"
    )
    said = (
        "Unless said otherwise, attention to null tokens is left out of every value, as in the "
        f"paper: {null}. Shares are ratios of sums over the whole corpus; bars show two standard "
        "errors over sentences. Layers and heads count from 0."
    )
    return f"{norms.note(result)}{said} {say_words(result)}".strip()


SINK = norms.sink_finding("the null token", "null_share", {})
READINGS = norms.layer_table(
    {
        "null share": ("null_share", {}),
        "alignment": ("dependency_alignment", {"form": "either"}),
    }
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
        Option(
            "attention",
            str,
            None,
            "how layers are observed; by the length of the inputs if none",
            choices=("dense", "rows", "fused"),
        ),
        norms.OPTION,
        importance.OPTION,
    ),
    labels=find_labels,
    left_out=left_out,
    parts=parts,
    derive=derive,
    figures=FIGURES,
    tables=(*TABLES[:2], syntax.TABLE, READINGS, importance.TABLE, *TABLES[2:]),
    findings=(*FINDINGS, *depth.FINDINGS, *syntax.FINDINGS, SINK),
    choices=choose_heads,
    notes=notes,
)
