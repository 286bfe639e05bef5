"""luger2026: what heads do over a broad sample of raw text, after HeadVis."""

from dataclasses import replace

import xarray as xr

from headscope.metrics.where import surface
from headscope.studies import importance, records
from headscope.studies.luger2026.exhibits import FIGURES, TABLES
from headscope.studies.luger2026.findings import FINDINGS
from headscope.studies.luger2026.inputs import check_room, settle_context
from headscope.studies.luger2026.kinds import BEHAVIOUR, behaviour
from headscope.studies.luger2026.parts import left_out, parts
from headscope.studies.option import Option
from headscope.studies.reading import DOCUMENTS
from headscope.studies.study import Study

SINK_RATE = replace(surface.SINK_RATE, formula="heads with first_share > 0.3 / heads",
                    cost="from first_share alone")  # fmt: skip


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add the behaviour of every head, and the sink rate."""
    rate = surface.sink_rate(result["first_share"].values)
    return result.assign(behaviour=behaviour(result)).assign_attrs(sink_rate=rate)


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
    citation="Luger, Kamath et al. (2026), HeadVis",
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
        Option("repeated_sequences", int, 16, "random sequences said twice", least=1),
        Option("period", int, 32, "tokens until such a sequence repeats", least=1),
        Option("needles", int, 8, "texts that a needle is hidden in, at every depth", least=1),
        Option(
            "depths",
            list[int],
            [10, 30, 50, 70, 90],
            "per cent of a text before the needle",
            least=0,
            most=100,
        ),
        DOCUMENTS,
        importance.OPTION,
        *records.OPTIONS,
    ),
    labels=lambda corpus: {},
    left_out=left_out,
    parts=parts,
    derive=derive,
    measures=(BEHAVIOUR, SINK_RATE, *records.MEASURES),
    figures=FIGURES,
    tables=(TABLES[0], importance.TABLE, *TABLES[1:]),
    findings=FINDINGS,
    choices=lambda result: [],
    notes=notes,
    unit="inputs",
    check=check_room,
    settle=settle_context,
    layout="documents",
    remedy="give a smaller --context, or --rest to keep what is shorter; "
    "in a .txt a blank line ends a document",
)
