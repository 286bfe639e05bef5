"""Top tokens, examples and maps of every head, as part of any study whose inputs can be made again.

A study that keeps them gives its part a way to make inputs again, and adds OPTIONS, MEASURES,
`left_out` and `with_records` to its own.
"""

from dataclasses import replace

from headscope.metrics.records import maps
from headscope.metrics.records.drawn import POINTS, BandedExamples, TokenSample
from headscope.metrics.records.tokens import TopTokens
from headscope.model.inputs.batch import vocabulary_size
from headscope.model.writes import why_no_writes
from headscope.results.records import EDGES, EXAMPLES, INPUTS, MAPS, TOP_TOKENS, WRITES
from headscope.studies.option import Option
from headscope.studies.study import Part, Setup

OPTIONS = (
    Option("records", bool, True, "whether top tokens, examples and maps are kept"),
    Option(
        "points", int, POINTS, "tokens whose queries, keys, values and outputs are kept", least=0
    ),
)
MEASURES = maps.MEASURES
FILES = (TOP_TOKENS, EXAMPLES, INPUTS, MAPS, WRITES, EDGES)
AS_ASKED = "left out as asked"
LONGEST = 2**16  # tokens of an input whose places fit into the files


def left_out(setup: Setup) -> dict[str, str]:
    """The files that a run will lack, and why."""
    if not setup.options["records"]:
        return dict.fromkeys(FILES, AS_ASKED)
    if (reason := _why_none(setup)) is not None:
        return dict.fromkeys(FILES, reason)
    missing: dict[str, str] = {}
    if (reason := why_no_vectors(setup)) is not None:
        missing[MAPS] = reason
    if (reason := why_no_writes(setup.model)) is not None:
        missing |= dict.fromkeys((WRITES, EDGES), reason)
    if setup.options["points"] == 0:
        missing |= dict.fromkeys((MAPS, WRITES), AS_ASKED)
    return missing


def with_records(setup: Setup, part: Part) -> Part:
    """The part with the metrics that choose what is kept, unless they were not asked for."""
    if not setup.options["records"] or _why_none(setup) is not None:
        return part
    chosen = (
        TopTokens(setup.grid, vocabulary_size(setup.model.network)),
        BandedExamples(setup.grid, setup.seed),
        TokenSample(setup.seed, setup.options["points"]),
    )
    return replace(part, metrics=(*part.metrics, *chosen))


def why_no_vectors(setup: Setup) -> str | None:
    """Why queries, keys and values are not seen, or None."""
    if setup.model.plan.backend.name != "interface":
        return "this family computes attention outside the attention interface"
    return None


def _why_none(setup: Setup) -> str | None:
    if setup.context is not None and setup.context > LONGEST:
        return f"places in an input of more than {LONGEST:,} tokens do not fit into the files"
    return None
