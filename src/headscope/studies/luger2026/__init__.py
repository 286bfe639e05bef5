"""luger2026: what heads do over a broad sample of raw text, after HeadVis."""

import xarray as xr

from headscope.studies import importance, records
from headscope.studies.luger2026.inputs import check_room, settle_context
from headscope.studies.luger2026.metrics import left_out, parts
from headscope.studies.option import Option
from headscope.studies.reading import DOCUMENTS
from headscope.studies.study import Study


def notes(result: xr.Dataset) -> str:
    """How to read the numbers of this study."""
    return (
        "Inputs are consecutive stretches of raw text. Nothing is left out of a row: attention to "
        "the first token counts as any other. Values are ratios of sums over all inputs, with "
        "standard errors over documents. Layers and heads count from 0."
    )


STUDY = Study(
    name="luger2026",
    title="Heads in the wild",
    citation="after Luger, Kamath et al. (2026), HeadVis",
    question="What does each head do over a broad sample of raw text?",
    options=(
        Option(
            "context",
            int,
            None,
            "tokens of an input; 512, or what the model has positions for, if none",
            least=2,
        ),
        Option("rest", bool, False, "whether the shorter end of a document is an input too"),
        Option(
            "attention",
            str,
            None,
            "how layers are observed; by the length of the inputs if none",
            choices=("dense", "rows", "fused"),
        ),
        DOCUMENTS,
        importance.OPTION,
        *records.OPTIONS,
    ),
    labels=lambda corpus: {},
    left_out=left_out,
    parts=parts,
    derive=lambda result: result,
    figures=(),
    tables=(importance.TABLE,),
    findings=(),
    choices=lambda result: [],
    notes=notes,
    unit="inputs",
    check=check_room,
    settle=settle_context,
    measures=records.MEASURES,
    remedy="give a smaller --context, or --rest to keep what is shorter",
)
