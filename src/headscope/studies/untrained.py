"""Networks of random weights beside every claim of a study: what they show too was not learned.

Networks of the same shape with the same tokenizer read a sample of the same texts. Every claim is
measured on them as on the network itself; the one that is nearest to the claim is what the network
has to go beyond.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import xarray as xr

from headscope.engine.measure import MeasureShards, Measuring
from headscope.engine.question import Part
from headscope.engine.setup import ModelWork, Setup
from headscope.engine.stage import Stage
from headscope.model.untrained import untrained, why_no_untrained
from headscope.results.claims import Claim, Replicates, measure_untrained
from headscope.results.measure import GRID
from headscope.studies.draw import draw_documents
from headscope.studies.option import Option
from headscope.text.corpus import Shard

UNTRAINED = Option(
    "untrained", bool, True, "whether networks of random weights are measured beside every claim"
)
ATTRIBUTE = "untrained"  # the statistic of every claim, until the claims are judged
NETWORKS = 3
SENTENCES = 96  # at least, in whole documents
# Of the last networks in this process: checkpoints of one shape have the same beside them.
_SUMS: dict[tuple[object, ...], bytes] = {}
# What makes a study longer and is no claim's measure, or needs fewer inputs for its mean.
BRIEF = {"importance": False, "gradients": False, "needles": 1, "repeated_sequences": 4}


@dataclass(frozen=True)
class UntrainedNetworks(Stage[int]):
    """Measures networks of random weights, a piece each, and every claim on them."""

    make_parts: Callable[[Setup], tuple[Part, ...]]
    derive: Callable[[xr.Dataset], xr.Dataset]
    claims: tuple[Claim, ...]
    name: str = "untrained"
    noun = "networks"

    def pieces(self, setup: Setup, result: xr.Dataset) -> Sequence[int]:
        """The seeds of the networks."""
        is_wanted = self.claims and setup.options.get(UNTRAINED.name)
        return range(NETWORKS) if is_wanted and why_no_untrained(setup.model) is None else ()

    def work(
        self, setup: Setup, result: xr.Dataset, threads: int, folder: Path
    ) -> "MeasuringUntrained":
        """What is measured of every network."""
        return MeasuringUntrained(sampled(setup), threads, self.make_parts)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[int, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with the statistics of all claims as an attribute, and what they are of.

        NAME_untrained is the mean over the networks of every measure of heads that a claim reads.
        """
        sample = sampled(setup)
        networks: list[Replicates] = []
        for content in outcomes.values():
            measured = MeasureShards(self.make_parts).finish(
                sample, xr.Dataset(attrs=result.attrs), {shard_of(sample): content}, folder
            )
            networks.append(Replicates(self.derive(measured)))
        values = {claim.sentence: measure_untrained(claim, networks) for claim in self.claims}
        variables: dict[str, xr.DataArray] = {}
        for name in sorted(set().union(*(data.names_read for data in networks))):
            measured = [data.result[name] for data in networks if name in data.result]
            if name in result and set(GRID) <= set(result[name].dims) and measured:
                mean = xr.concat(measured, "network", combine_attrs="drop").mean("network")
                variables[f"{name}_untrained"] = mean.astype(result[name].dtype)
        return result.assign(variables).assign_attrs({ATTRIBUTE: json.dumps(values)})


@dataclass(frozen=True)
class MeasuringUntrained(ModelWork[int]):
    """Computes the sums of a network of random weights, in any process."""

    make_parts: Callable[[Setup], tuple[Part, ...]]

    def compute(self, seed: int, /) -> bytes:
        """The sums after all texts of the sample, kept for the next network of this shape."""
        setup = replace(self.setup, model=untrained(self.setup.model, seed))
        read = setup.corpus.fingerprint, setup.seed, setup.batch_tokens, self.threads
        options = repr(sorted(setup.options.items()))
        key = (setup.model.fingerprint, *read, options, self.make_parts)
        if key not in _SUMS:
            if len(_SUMS) == NETWORKS:
                del _SUMS[next(iter(_SUMS))]
            _SUMS[key] = Measuring(setup, self.threads, self.make_parts).compute(shard_of(setup))
        return _SUMS[key]

    def describe(self, seed: int, /) -> str:
        """The network by its seed."""
        return f"The network of random weights with seed {seed}"


def sampled(setup: Setup) -> Setup:
    """The study of some documents, without what takes long."""
    brief = {name: value for name, value in BRIEF.items() if name in setup.options}
    corpus = draw_documents(setup.corpus, SENTENCES, setup.seed)
    return replace(setup, corpus=corpus, options={**setup.options, **brief})


def shard_of(setup: Setup) -> Shard:
    """The first sentences of the sample: a single document may have very many."""
    return Shard(0, 0, min(len(setup.corpus), 2 * SENTENCES))
