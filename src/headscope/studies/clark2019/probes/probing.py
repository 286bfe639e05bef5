"""Table 3: the probes that clark2019 trains and tests once the shards are merged."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.engine.run import RunFolder
from headscope.engine.setup import ModelWork, Setup
from headscope.engine.stage import Stage
from headscope.files import names_in
from headscope.metrics.metric import GROUP, Axis, Variables, label, ratio_variables
from headscope.model.untrained import untrained
from headscope.results.measure import Measure
from headscope.results.run import read_settings
from headscope.studies.clark2019.probes.inputs import bos_of_words, frame_of_words, why_no_probes
from headscope.studies.clark2019.probes.relations import DIRECTION, SUMS
from headscope.studies.clark2019.probes.trained_probes import Seeds
from headscope.studies.clark2019.probes.training import (
    CONTROL,
    GROUPS,
    PROBES,
    SHARES,
    Group,
    Outcome,
    ProbeStream,
    Schedule,
    evaluate,
    make_learners,
    split_documents,
    train,
)
from headscope.studies.clark2019.probes.trees import accuracy, interval_variable
from headscope.studies.clark2019.probes.vectors import InputEmbeddings, VectorSource, read_vectors
from headscope.text.corpus import Corpus
from headscope.text.read import demo_corpus, read_corpus
from headscope.wording import counted

STREAM_TOKENS = 512  # per batch: all layers' word maps of a batch are held at once
NOTHING_LEFT = "no sentence is left to train or to test probes on; give a larger corpus"

PARSING_UAS = Measure(
    name="parsing_uas",
    title="Attachment by a probe",
    meaning="Words that a trained probe attaches to their governor: mean, deviation and values "
    "over seeds.",
    formula="words attached to their governor / words, punctuation left out",
    reference="Clark et al. 2019, §5, Table 3",
    axes={"probe": "Probe"},
    with_errors=False,
    also=(
        "parsing_uas_sd",
        "parsing_uas_by_seed",
        *(f"parsing_uas{end}" for end in (*SUMS, "_ci")),
    ),
)
PARSING_CURVE = Measure(
    name="parsing_curve",
    title="Learning curve of a probe",
    meaning="Attachment after shares of the training; what still rises is not learned yet.",
    formula="parsing_uas of the probe as it was then",
    reference="Clark et al. 2019, §5",
    axes={"probe": "Probe", "share": "Share of the training"},
    with_errors=False,
)
PROBE_SELECTIVITY = Measure(
    name="probe_selectivity",
    title="Selectivity of a probe",
    meaning="How much better a probe learns trees than the control task: word types that attach "
    "at random to themselves, the first or the last word.",
    formula="parsing_uas − the accuracy of the same probe trained on the control task",
    reference="Hewitt & Liang 2019",
    axes={"probe": "Probe"},
    with_errors=False,
    also=("probe_control",),
)
PARSING_PARAMETERS = Measure(
    name="parsing_parameters",
    title="Size of a probe",
    meaning="Learned numbers of every probe, words tested on, and what the probes learned from.",
    formula="counted",
    reference="Clark et al. 2019, §5",
    unit="",
    axes={"probe": "Probe"},
    with_errors=False,
    also=("parsing_words", "parsing_trained_on", "parsing_vectors"),
)
PROBE_WEIGHT = Measure(
    name="probe_weight",
    title="Probe weight",
    meaning="How much a trained probe relies on the head.",
    formula="mean over gold arcs of the weight that a probe gives to the head",
    reference="after Clark et al. 2019, §5",
    unit="",
    more="the probe relies on it more",
    axes={"attention_probe": "Probe", "direction": "Direction"},
    with_errors=False,
)
MEASURES = (PARSING_UAS, PARSING_CURVE, PROBE_SELECTIVITY, PARSING_PARAMETERS, PROBE_WEIGHT)


@dataclass(frozen=True)
class Training(ModelWork[Group]):
    """Trains and tests one group of probes; what it learned so far lies in `folder`."""

    folder: Path

    def open(self) -> None:
        """Check the model, and read what all groups share."""
        super().open()
        self.vectors.size  # noqa: B018  a file that cannot be read is of no use to any group

    def compute(self, group: Group, /) -> bytes:
        """The outcome of a group as the content of a file."""
        return self.train(group).pack()

    def describe(self, group: Group, /) -> str:
        """The group by the names of its probes."""
        return f"The training of {' and '.join(GROUPS[group])}"

    @cached_property
    def vectors(self) -> VectorSource:
        """The word vectors that were asked for, or the model's own input embeddings."""
        path = self.setup.options["vectors"]
        if path is None:
            return InputEmbeddings.of_model(self.setup.model)
        corpora = corpora_of(self.setup)
        sentences = chain.from_iterable(corpora)
        words = {word.text.lower() for sentence in sentences for word in sentence.words}
        return read_vectors(path, frozenset(words))

    def train(self, group: Group) -> Outcome:
        """Train a group of probes from scratch, or from its checkpoint, and test them."""
        trained_on, tested_on = corpora_of(self.setup)
        options, seed = self.setup.options, self.setup.seed
        schedule = Schedule(options["epochs"], options["probe_batch"], options["probe_rate"], seed)
        learners = make_learners(
            group,
            2 * int(np.prod(self.setup.grid.shape)),
            self.vectors.size,
            Seeds(options["probe_seeds"], seed, self.setup.model.device),
            has_special=len(frame_of_words(self.setup)) > 0,
            rate=schedule.rate,
            has_control=options["control"],
        )
        stream = self._stream(group)
        for _ in train(learners, stream, trained_on, schedule, *self._checkpoint(group)):
            pass
        return evaluate(learners, stream, tested_on, self.setup.group)

    def _stream(self, group: Group) -> ProbeStream:
        setup = self.setup
        network = None if group == "text" else setup.model
        if group == "random network":
            network = untrained(setup.model, setup.seed, with_embeddings=True)
        tokens = min(setup.batch_tokens, STREAM_TOKENS)
        control = setup.seed if setup.options["control"] else None
        row, sharing = setup.options["row"], setup.sharing
        return ProbeStream(
            setup.model,
            network,
            self.vectors,
            tokens,
            row,
            sharing,
            control,
            setup.reading,
            bos_of_words(setup),
        )

    def _checkpoint(self, group: Group) -> tuple[Path | None, str]:
        """Its place and its owner; none if another machine of a cluster trains."""
        if not names_in(self.folder):
            return None, ""
        name = f"probes-{group.replace(' ', '-')}.npz"
        run = RunFolder(self.folder, read_settings(self.folder))
        return self.folder / name, run.files(name, "").owner


@dataclass(frozen=True)
class ProbeStage(Stage[Group]):
    """Trains the probes of Table 3: one piece for each group of probes that read the same maps."""

    name: str = "probes"

    def pieces(self, setup: Setup, result: xr.Dataset) -> tuple[Group, ...]:
        """All groups, or none where the corpus has no trees or no probes are wanted."""
        return () if why_no_probes(setup) else tuple(GROUPS)

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> Training:
        """The training of a group."""
        return Training(setup, threads, folder)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Group, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with the rows of Table 3."""
        if not outcomes:
            return result
        groups = [Outcome.unpack(outcomes[group]) for group in GROUPS]
        words, vectors = int(groups[0].words.sum()), groups[0].vectors
        if words == 0:
            missing = {**json.loads(result.attrs["left_out"]), "parsing_uas": NOTHING_LEFT}
            return result.assign_attrs(left_out=json.dumps(missing))
        share = "" if setup.options["train"] else ", four fifths of the documents"
        trained_on = f"{counted(len(corpora_of(setup)[0]), 'sentences')}{share}"
        facts = {"vectors": vectors, "trained_on": trained_on, "words": words}
        facts = {f"parsing_{name}": fact for name, fact in facts.items()}
        return result.assign(_variables(setup, groups)).assign_attrs(facts)


@lru_cache(maxsize=2)
def _corpora(corpus: Corpus, train_on: str | None, seed: int) -> tuple[Corpus, Corpus]:
    if train_on is None:
        return split_documents(corpus, seed)
    return demo_corpus() if train_on == "demo" else read_corpus(train_on), corpus


def corpora_of(setup: Setup) -> tuple[Corpus, Corpus]:
    """What the probes are trained on, and what they are tested on."""
    return _corpora(setup.corpus, setup.options["train"], setup.seed)


def _variables(setup: Setup, groups: list[Outcome]) -> Variables:
    seeds, words = setup.options["probe_seeds"], groups[0].words
    counts = {name: right for group in groups for name, right in group.right.items()}
    sizes = {name: size for group in groups for name, size in group.parameters.items()}
    # Right-branching has the same for every seed.
    every = [np.broadcast_to(counts[name], (len(counts[name]), seeds)) for name in PROBES]
    right = np.stack(every, axis=1)
    shares = accuracy(right.sum(0), words.sum())
    probe, seed = Axis("probe", PROBES), Axis("seed", range(seeds))
    spread = shares.std(1, ddof=1) if seeds > 1 else np.full(len(PROBES), np.nan)
    attached = label(right.mean(2), GROUP, probe)
    attachment = ratio_variables("parsing_uas", attached, label(words, GROUP))
    return {
        **attachment,
        "parsing_uas_sd": label(spread, probe),
        "parsing_uas_ci": interval_variable(attachment, "parsing_uas"),
        "parsing_uas_by_seed": label(shares, probe, seed),
        "parsing_parameters": label(np.array([sizes.get(name, 0) for name in PROBES]), probe),
        "parsing_curve": _curve(groups, shares.mean(1)),
        **_selectivity(counts, shares.mean(1), words.sum()),
        **_weights(setup, groups),
    }


def _curve(groups: list[Outcome], final: Float[np.ndarray, "probe"]) -> xr.DataArray:
    """Attachment of every probe after shares of its training; right-branching learns nothing."""
    curves = {name: curve for group in groups for name, curve in group.curve.items()}
    values = np.full((len(PROBES), len(SHARES)), np.nan)  # where nothing was trained on
    for row, name in enumerate(PROBES):
        if name in curves:
            values[row, -len(curves[name]) :] = curves[name].mean(1) / groups[0].words.sum()
        else:
            values[row] = final[row]
    coords = {"probe": list(PROBES), "share": list(SHARES)}
    return xr.DataArray(values, coords, ("probe", "share"))


def _selectivity(
    counts: Mapping[str, np.ndarray], uas: Float[np.ndarray, "probe"], words: float
) -> Variables:
    """Attachment − accuracy on the control task, and the latter; nothing without that task."""
    learned = [counts.get(f"{name}{CONTROL}") for name in PROBES]
    if all(right is None for right in learned):
        return {}
    control = np.array(
        [np.nan if right is None else right.sum(0).mean() / words for right in learned]
    )
    probe = Axis("probe", PROBES)
    return {
        "probe_selectivity": label(uas - control, probe),
        "probe_control": label(control, probe),
    }


def _weights(setup: Setup, groups: list[Outcome]) -> Variables:
    """Mean weight of every head on gold arcs; the first half of the maps looks from dependents."""
    relied = {
        name: weights.mean(0) for group in groups for name, weights in group.arc_weights.items()
    }
    means = np.stack(list(relied.values()))
    shaped = np.moveaxis(means.reshape(len(relied), 2, *setup.grid.shape), (0, 1), (2, 3))
    probe = Axis("attention_probe", tuple(relied))
    return {"probe_weight": setup.grid.array(shaped, probe, DIRECTION)}
