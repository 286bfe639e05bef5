"""Table 3: what clark2019 trains and tests once the shards are merged."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.metrics.metric import Axis, Variables, label
from headscope.probes.encoding import find_frame
from headscope.probes.proportion import accuracy, wilson
from headscope.probes.relations import DIRECTIONS
from headscope.probes.stream import ProbeStream
from headscope.probes.trained.embeddings import FileVectors, InputEmbeddings, VectorSource
from headscope.probes.trained.experiment import (
    PROBES,
    Outcome,
    Schedule,
    evaluate,
    make_learners,
    train,
)
from headscope.probes.trained.random_network import randomise
from headscope.probes.trained.seeds import Seeds
from headscope.probes.trained.split import split_documents
from headscope.probes.trained.training import Learner, count_parameters
from headscope.probes.trained.vectors import read_vectors
from headscope.progress import show_progress
from headscope.studies.study import Setup
from headscope.text.corpus import Corpus
from headscope.text.demo import demo_corpus
from headscope.text.read import read_corpus

CHECKPOINT = "probes.npz"
STREAM_TOKENS = 512  # per batch: all layers' word maps of a batch are held at once
NOTHING_LEFT = "no sentence is left to train or to test probes on; give a larger corpus"


def add_probes(setup: Setup, folder: Path, result: xr.Dataset) -> xr.Dataset:
    """Train and test the probes of Table 3; learned weights lie in the run directory.

    Variables: parsing_uas, parsing_uas_sd, parsing_uas_ci, parsing_uas_by_seed
    Formula: words attached to their governor / words, punctuation left out; mean, deviation and
        values over seeds, and Wilson's 95 % of the mean
    Reference: Clark et al. 2019, §5, Table 3
    Range: 0 to 1
    Cost: a training pass and a test pass over the corpus, twice each: the network and a random one

    Variables: parsing_parameters, parsing_words, parsing_trained_on, parsing_vectors
    Formula: learned numbers of every probe, words tested on, and what the probes had to learn from
    Reference: Clark et al. 2019, §5
    Range: from 0; words
    Cost: none beyond parsing_uas

    Variables: probe_weight
    Formula: mean over gold arcs of the weight that a probe gives to the head
    Reference: after Clark et al. 2019, §5
    Range: any
    Cost: none beyond parsing_uas
    """
    trained_on, tested_on = corpora(setup)
    vectors = find_vectors(setup, trained_on, tested_on)
    networks = (setup.model, randomise(setup.model, setup.seed))
    tokens = min(setup.batch_tokens, STREAM_TOKENS)
    stream = ProbeStream(networks, vectors, tokens, setup.options["row"])
    schedule = _schedule(setup)
    learners = _learners(setup, vectors, schedule)
    chunks = train(learners, stream, trained_on, schedule, folder / CHECKPOINT)
    total = len(trained_on) * schedule.epochs
    for _ in show_progress(
        chunks, total, "sentences", label=f"probes on {setup.model.name}", size=len
    ):
        pass
    outcome = evaluate(learners, stream, tested_on)
    if outcome.words == 0:
        return _without_probes(result)
    facts = {
        "parsing_vectors": vectors.source,
        "parsing_trained_on": f"{len(trained_on)} sentences"
        + ("" if setup.options["train"] else ", four fifths of the documents"),
        "parsing_words": outcome.words,
    }
    return result.assign(_variables(setup, learners, outcome)).assign_attrs(facts)


def corpora(setup: Setup) -> tuple[Corpus, Corpus]:
    """What the probes train on, and what they are tested on."""
    train_on = setup.options["train"]
    if train_on is not None:
        return demo_corpus() if train_on == "demo" else read_corpus(train_on), setup.corpus
    return _split(setup.corpus, setup.seed)


@lru_cache(maxsize=2)
def _split(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    return split_documents(corpus, seed)


def find_vectors(setup: Setup, *corpora: Corpus) -> VectorSource:
    """The vectors asked for, or the model's own input embeddings."""
    if setup.options["vectors"] is None:
        return InputEmbeddings.of_model(setup.model)
    words = {word.text.lower() for each in corpora for s in each for word in s.words}
    return FileVectors(read_vectors(setup.options["vectors"], frozenset(words)))


def _schedule(setup: Setup) -> Schedule:
    options = setup.options
    return Schedule(
        options["epochs"], options["probe_batch"], options["probe_rate"], seed=setup.seed
    )


def _learners(setup: Setup, vectors: VectorSource, schedule: Schedule) -> dict[str, Learner]:
    seeds = Seeds(setup.options["probe_seeds"], setup.seed, setup.model.device)
    heads = int(np.prod(setup.grid.shape))
    frame = len(find_frame(setup.model.tokenizer)) > 0
    return make_learners(2 * heads, vectors.size, seeds, has_special=frame, rate=schedule.rate)


def _variables(setup: Setup, learners: dict[str, Learner], outcome: Outcome) -> Variables:
    seeds = setup.options["probe_seeds"]
    right = np.stack([np.broadcast_to(outcome.right[name], seeds) for name in PROBES])
    shares = accuracy(right, np.array(outcome.words))
    probe, seed = Axis("probe", PROBES), Axis("seed", range(seeds))
    bounds = wilson(right.mean(1), np.array(outcome.words)).T
    sizes = [count_parameters(learners[n].probe) if n in learners else 0 for n in PROBES]
    spread = shares.std(1, ddof=1) if seeds > 1 else np.full(len(PROBES), np.nan)
    return {
        "parsing_uas": label(shares.mean(1), probe),
        "parsing_uas_sd": label(spread, probe),
        "parsing_uas_ci": label(bounds, probe, Axis("bound", ("low", "high"))),
        "parsing_uas_by_seed": label(shares, probe, seed),
        "parsing_parameters": label(np.array(sizes), probe),
        **_weights(setup, outcome),
    }


def _weights(setup: Setup, outcome: Outcome) -> Variables:
    """Mean weight of every head on gold arcs; the first half of the maps looks from dependents."""
    names = tuple(outcome.arc_weights)
    means = np.stack([outcome.arc_weights[name].mean(0) for name in names])
    shaped = np.moveaxis(means.reshape(len(names), 2, *setup.grid.shape), (0, 1), (2, 3))
    axes = Axis("attention_probe", names), Axis("direction", DIRECTIONS)
    return {"probe_weight": setup.grid.array(shaped, *axes)}


def _without_probes(result: xr.Dataset) -> xr.Dataset:
    missing = {**json.loads(result.attrs["left_out"]), "parsing_uas": NOTHING_LEFT}
    return result.assign_attrs(left_out=json.dumps(missing))
