"""The metrics of clark2019's second part (§4): heads as parsers and resolvers."""

from pathlib import Path

from headscope.errors import CorpusError
from headscope.metrics.examples import Exemplars
from headscope.probes.coreference.metric import CorefAccuracy
from headscope.probes.gold import Classes
from headscope.probes.relations import RelationAccuracy
from headscope.probes.trained.training import LEARNING_RATE
from headscope.probes.trained.vectors import check_vectors
from headscope.studies.clark2019.left_out import has_trees
from headscope.studies.clark2019.words.inputs import (
    plain_inputs,
    tree_inputs,
    window_inputs,
    window_reach,
)
from headscope.studies.option import Option
from headscope.studies.study import Part, Setup
from headscope.text.corpus import Corpus

OPTIONS = (
    Option("row", str, "mean", "how a split word attends: as its pieces on average, or as the "
           "first of them", choices=("mean", "first")),
    Option("exemplars", int, 5, "sentences kept per head", least=1),
    Option("few", int, 20, "relations of fewer words are shown in grey", least=0),
    Option("window", int, 128, "most tokens of a coreference window", least=8),
    Option("windows", str, "all", "all windows of a document, or the first only as in the paper",
           choices=("all", "first")),
    Option("probes", bool, True, "whether the probes of Table 3 are trained"),
    Option("train", str, None, "corpus for the probes; four fifths of the documents if none"),
    Option("vectors", str, None, "word vectors for the probes; the model's embeddings if none"),
    Option("epochs", int, 1, "passes over the corpus of the probes", least=1),
    Option("probe_batch", int, 1, "sentences per step of training", least=1),
    Option("probe_rate", float, LEARNING_RATE, "learning rate of the probes", above=0),
    Option("probe_seeds", int, 3, "times that every probe is trained", least=1),
    Option("control", bool, False, "whether probes also learn the control task, in twice the time"),
)  # fmt: skip


def find_relations(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Every relation label that occurs, sorted; any label scheme is taken as it is."""
    if not corpus.has("deprel"):
        return {}
    found = {word.deprel for sentence in corpus for word in sentence.words if word.deprel}
    return {"relation": tuple(sorted(found))}


def parts(setup: Setup) -> tuple[Part, ...]:
    """Sentences for relations and exemplars, windows for coreference where there are mentions."""
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


def check_files(setup: Setup) -> None:
    """Refuse a missing or malformed file before the work begins, not when the probes need it."""
    for name in ("train", "vectors"):
        path = setup.options[name]
        if path is not None and path != "demo" and not Path(path).is_file():
            raise CorpusError(f"There is no file {path}; check the option {name}.")
    if setup.options["vectors"] is not None:
        check_vectors(setup.options["vectors"])
