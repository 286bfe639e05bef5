"""luger2026: what heads do over a broad sample of raw text, after HeadVis."""

from dataclasses import replace

import xarray as xr

from headscope.engine.look_again import LookAgain
from headscope.metrics import surface
from headscope.metrics.composition import COMPOSITION
from headscope.studies.additions import IMPORTANCE, IMPORTANCE_TABLE, with_portrait
from headscope.studies.luger2026 import maps
from headscope.studies.luger2026.claims import CLAIMS
from headscope.studies.luger2026.composition import COMPOSED, Compose
from headscope.studies.luger2026.figures import FIGURES
from headscope.studies.luger2026.inputs import check_room, inputs_again, settle_context, start_of
from headscope.studies.luger2026.kinds import BEHAVIOUR, behaviour
from headscope.studies.luger2026.metrics import KINDS_OF_INPUT, RECORD_OPTIONS
from headscope.studies.luger2026.tables import TABLES
from headscope.studies.luger2026.vectors import Vectors
from headscope.studies.option import ATTENTION, BOS, DOCUMENTS, Option, say_errors
from headscope.studies.study import Study
from headscope.studies.untrained import UNTRAINED

SINK_RATE = replace(surface.SINK_RATE, formula="heads with first_share > 0.3 / heads",
)  # fmt: skip


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add the sink rate, and the behaviour of heads that have no portrait."""
    rate = surface.sink_rate(result["first_share"].values)
    result = result.assign_attrs(sink_rate=rate)
    return result if "behaviour" in result else result.assign(behaviour=behaviour(result))


def notes(result: xr.Dataset) -> str:
    """How to read the numbers of this study."""
    return (
        "Inputs are consecutive stretches of raw text. Nothing is left out of a row: attention to "
        "the first token counts as any other. Values are ratios of sums over all inputs. "
        f"Layers and heads count from 0. {say_errors(result)}"
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
        ATTENTION,
        BOS,
        Option(
            "repeated_sequences", int, 16, "sequences of random tokens that occur twice", least=1
        ),
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
        IMPORTANCE,
        UNTRAINED,
        COMPOSED,
        *RECORD_OPTIONS,
    ),
    inputs=KINDS_OF_INPUT,
    later_stages=(
        LookAgain(
            inputs_again,
            with_self=lambda setup: True,
            start=start_of,
            beside=Vectors(),
        ),
        Compose(),
    ),
    derive=derive,
    shown_first=("previous_share", "induction"),
    measures=(BEHAVIOUR, SINK_RATE, COMPOSITION, *maps.MEASURES),
    figures=FIGURES,
    tables=(TABLES[0], IMPORTANCE_TABLE, *TABLES[1:]),
    claims=CLAIMS,
    notes=notes,
    unit="inputs",
    drawn="texts",
    check=check_room,
    settle=settle_context,
    layout="documents",
    remedy="give a smaller --context, or --rest to keep what is shorter; "
    "in a .txt a blank line ends a document",
    demo={"mini-gpt2": {"sentences": 300, "rest": True}},
)

STUDY = with_portrait(STUDY, raw=True)
