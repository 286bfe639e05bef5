"""The metrics of clark2019's second part (§4): heads as parsers and resolvers."""

from pathlib import Path

from headscope.errors import CorpusError
from headscope.metrics.exemplars import Exemplars
from headscope.probes.coreference.metric import CorefAccuracy
from headscope.probes.gold import Classes
from headscope.probes.relations import RelationAccuracy
from headscope.probes.trained.training import LEARNING_RATE
from headscope.studies.clark2019.left_out import has_trees
from headscope.studies.clark2019.words.inputs import (
    plain_inputs,
    tree_inputs,
    window_inputs,
    window_reach,
)
from headscope.studies.study import Part, Setup
from headscope.text.corpus import Corpus

OPTIONS = {
    "row": "mean",  # how a split word attends: like the mean of its pieces, or like the first
    "exemplars": 5,  # sentences kept per head
    "few": 20,  # relations on fewer words are shown in grey
    "window": 128,  # tokens of a coreference window
    "windows": "all",  # or "first": cut documents off, as the paper does
    "probes": True,
    "train": None,  # corpus for the probes; else four fifths of the documents
    "vectors": None,  # word vectors for the probes; else the model's input embeddings
    "epochs": 1,
    "probe_batch": 1,  # sentences per step
    "probe_rate": LEARNING_RATE,
    "probe_seeds": 3,
}


def find_relations(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Every relation label that occurs, sorted; any label scheme is taken as it is."""
    if not corpus.has("deprel"):
        return {}
    found = {word.deprel for sentence in corpus for word in sentence.words if word.deprel}
    return {"relation": tuple(sorted(found))}


def parts(setup: Setup) -> tuple[Part, ...]:
    """Sentences for relations and exemplars, windows for coreference where there are mentions."""
    _check_files(setup)
    grid, is_causal, row = setup.grid, setup.model.is_causal, setup.options["row"]
    exemplars = Exemplars(grid, setup.options["exemplars"])
    if has_trees(setup):
        classes = Classes.of(setup.labels["relation"])
        relations = RelationAccuracy(grid, classes, is_causal, row)
        of_sentences = Part(tree_inputs, (relations, exemplars), of_corpus=False)
    else:
        of_sentences = Part(plain_inputs, (exemplars,), of_corpus=False)
    if not setup.corpus.has("mentions"):
        return (of_sentences,)
    coreference = CorefAccuracy(grid, is_causal, row)
    return of_sentences, Part(window_inputs, (coreference,), of_corpus=False, reach=window_reach)


def _check_files(setup: Setup) -> None:
    """Say that a file is missing before the work begins, not when the probes need it."""
    for name in ("train", "vectors"):
        path = setup.options[name]
        if path is not None and path != "demo" and not Path(path).is_file():
            raise CorpusError(f"There is no file {path}; check the option {name}.")
