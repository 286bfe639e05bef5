"""What feeds each head, on some inputs of a run: a stage that is off unless it is asked for.

The inputs are those of the tokens that were sampled for maps, which are as good as drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from headscope.engine.forward import observe
from headscope.engine.look_again import Block
from headscope.engine.measure import Counts, pack, unpack
from headscope.engine.setup import ModelWork, Setup
from headscope.engine.stage import Stage
from headscope.metrics.composition import HeadComposition
from headscope.model.why import source_names
from headscope.studies.luger2026.inputs import inputs_again
from headscope.studies.option import Option

BLOCK = 4  # inputs of a piece
SAMPLE = "sample_input"
NO_SAMPLE = "no tokens were sampled (records, points), whose inputs it takes"
COMPOSED = Option(
    "composition", int, 0, "inputs on which it is computed what feeds each head", least=0
)


def why_no_composition(setup: Setup) -> str | None:
    """Why it is not computed what feeds each head, where it was asked for."""
    if not setup.options["composition"]:
        return None
    if not setup.options["records"] or not setup.options["points"]:
        return NO_SAMPLE
    return setup.model.why_no_reasons


def _metric(setup: Setup) -> HeadComposition:
    return HeadComposition(setup.grid, source_names(setup.model))


@dataclass(frozen=True)
class Compose(Stage[Block]):
    """Takes the scores of all heads on some inputs apart."""

    name: str = "composition"
    noun = "inputs"
    ending = ".npz"

    def pieces(self, setup: Setup, result: xr.Dataset) -> Sequence[Block]:
        """Blocks of the first inputs of the sample; none where it was not asked for."""
        count = setup.options["composition"]
        if not count or SAMPLE not in result or why_no_composition(setup) is not None:
            return ()
        numbers = [number for number in result[SAMPLE].values.ravel().tolist() if number >= 0]
        inputs = list(dict.fromkeys(numbers))[:count]
        return [tuple(inputs[start : start + BLOCK]) for start in range(0, len(inputs), BLOCK)]

    def size(self, piece: Block) -> int:
        """Its inputs."""
        return len(piece)

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> "ComposeInputs":
        """What is done to a block."""
        return ComposeInputs(setup, threads)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Block, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with the shares of every part in the choices of every head."""
        if not outcomes:
            return result
        metric = _metric(setup)
        sums, inputs = metric.zero(), 0
        for block in outcomes:
            more, counts = unpack(outcomes[block])
            sums = metric.merge(sums, more[metric.name])
            inputs += counts.inputs
        return result.assign(metric.compute(sums)).assign_attrs(composition_inputs=inputs)


@dataclass(frozen=True)
class ComposeInputs(ModelWork[Block]):
    """Computes the sums of a block, in any process."""

    def compute(self, block: Block, /) -> bytes:
        """The content of a block's file."""
        setup = self.setup
        inputs = inputs_again(setup, block)
        sums = observe(
            setup.model,
            inputs.columns,
            (_metric(setup),),
            setup.batch_tokens,
            setup.attention,
            setup.reading,
        )
        return pack(sums, Counts(inputs=len(inputs.examples)))

    def describe(self, block: Block, /) -> str:
        """The block by its first input."""
        return f"The composition of {len(block)} inputs from {block[0]} on"
