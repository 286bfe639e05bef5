"""The inputs of heads as parsers and resolvers (§4): sentences with trees, windows of documents."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from headscope.engine.question import Inputs
from headscope.engine.setup import Setup
from headscope.errors import CorpusError
from headscope.model.inputs.frame import Bos, Frame, find_frame
from headscope.observe.batch import Example
from headscope.studies.clark2019.probes.coreference import make_queries
from headscope.studies.clark2019.probes.trained_probes import LEARNING_RATE
from headscope.studies.clark2019.probes.trees import tree_fault
from headscope.studies.clark2019.probes.vectors import check_vectors
from headscope.studies.option import NO_TREES, Option
from headscope.studies.shared.sentences import inputs_again as sentences_again
from headscope.studies.shared.sentences import sentence_inputs
from headscope.studies.shared.words import (
    SkipError,
    WordTokens,
    encode_sentences,
    encode_words,
    settle_bos,
    word_example,
)
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import Excerpt, cut, cut_text, documents_around, indented, join
from headscope.text.sentence import Sentence

NO_PROBES = "left out as asked (probes=False)"
NO_FRAME = Frame((), ())
NO_MENTION = "windows without a scored mention"
TREES, WINDOWS = "trees: ", "windows: "  # begin the reasons and counts of the two kinds of input


def tree_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence that is a tree and fits the model."""
    return _tree_inputs(setup, list(enumerate(sentences, start=first)))


def plain_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence of a corpus without trees."""
    made = sentence_inputs(setup, sentences, first)
    return Inputs(made.examples, {f"sentences: {why}": n for why, n in made.skipped.items()})


def inputs_again(setup: Setup, numbers: Sequence[int]) -> Inputs:
    """The sentences that have these numbers, made once more."""
    if not has_trees(setup):
        return sentences_again(setup, numbers)
    return _tree_inputs(setup, list(zip(numbers, setup.corpus.select(numbers), strict=True)))


def _tree_inputs(setup: Setup, numbered: Sequence[tuple[int, Sentence]]) -> Inputs:
    words: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    trees: list[tuple[int, Sentence]] = []
    for number, sentence in numbered:
        fault = tree_fault(sentence.words)
        if fault is None:
            trees.append((number, sentence))
        else:
            skipped[f"{TREES}{fault}"] += 1
    encoded = _encode(setup, [sentence for _, sentence in trees])
    examples: list[Example] = []
    for (number, _), made in zip(trees, encoded, strict=True):
        if isinstance(made, WordTokens):
            examples.append(_example(setup, number, made))
            words.update(made.counts)
        else:
            skipped[f"{TREES}{made}"] += 1
    return Inputs(examples, skipped, {f"{TREES}{name}": count for name, count in words.items()})


def window_reach(setup: Setup, shard: Shard) -> tuple[int, int]:
    """Where a window begins depends on the length of everything before it in its document."""
    return documents_around(setup.corpus, shard)


def window_inputs(setup: Setup, sentences: Excerpt, first: int) -> Inputs:
    """One example for every window that begins among these sentences and has a scored mention."""
    skipped: Counter[str] = Counter()
    words: Counter[str] = Counter()
    examples: list[Example] = []
    shard = range(first, first + len(sentences))
    numbered = enumerate(sentences.whole, start=first - len(sentences.before))
    for _, document in groupby(numbered, key=lambda item: item[1].document):
        make = _first_tokens if setup.options["windows"] == "cut" else _windows
        for number, window in make(setup, list(document), shard, skipped):
            if len(make_queries([window.sentence])):
                examples.append(_example(setup, number, window))
                words.update(window.counts)
            else:
                skipped[NO_MENTION] += 1
    return Inputs(examples, skipped, {f"{WINDOWS}{name}": n for name, n in words.items()})


def _encode(setup: Setup, sentences: Sequence[Sentence]) -> list[WordTokens | SkipError]:
    return encode_words(setup.model, sentences, setup.sharing, bos_of_words(setup))


def _example(setup: Setup, number: int, made: WordTokens) -> Example:
    group = setup.group(made.sentence, number)
    return word_example(number, made, is_causal=setup.model.is_causal, group=group)


def bos_of_words(setup: Setup) -> Bos:
    """Whether trees and windows begin with the BOS token."""
    return settle_bos(setup.model.tokenizer, setup.bos)


def bos_of_inputs(setup: Setup) -> Bos:
    """The same for the result; without trees sentences are read as vig2019 reads them."""
    return bos_of_words(setup) if has_trees(setup) else setup.bos


def frame_of_words(setup: Setup) -> Frame:
    """The special tokens around trees and windows."""
    return find_frame(setup.model.tokenizer, bos_of_words(setup))


def window_size(setup: Setup) -> int:
    """The most tokens of a window without the special ones around it."""
    limit, asked = setup.model.max_length, setup.options["window"]
    tokens = asked if limit is None else min(asked, limit)
    return tokens - len(frame_of_words(setup))


def _windows(
    setup: Setup, document: Sequence[tuple[int, Sentence]], shard: range, skipped: Counter[str]
) -> Iterator[tuple[int, WordTokens]]:
    """Windows of one document that begin in the shard, with the number of their first sentence."""
    numbers, sentences = zip(*document, strict=True)
    # A sentence inside a window has a space before it, which some tokenizers count to its token.
    lengths = _lengths(setup, [indented(sentence) for sentence in sentences])
    windows, too_long = cut(lengths, window_size(setup))
    unusable = sum(numbers[index] in shard for index in too_long)
    skipped[f"{WINDOWS}sentence cannot be used"] += unusable
    for window in windows if setup.options["windows"] == "all" else windows[:1]:
        if numbers[window[0]] in shard:
            (made,) = _encode(setup, [join([sentences[index] for index in window])])
            if isinstance(made, SkipError):
                skipped[f"{WINDOWS}{made}"] += 1
            else:
                yield numbers[window[0]], made


def _first_tokens(
    setup: Setup, document: Sequence[tuple[int, Sentence]], shard: range, skipped: Counter[str]
) -> Iterator[tuple[int, WordTokens]]:
    """The words that lie whole within the first tokens of a document."""
    number, size = document[0][0], window_size(setup)
    if number not in shard:
        return
    # A word has hardly less than one token; of the rest nothing is needed.
    text = join([sentence for _, sentence in document[: 2 * size]])
    apart = setup.sharing != "overlap"
    (tokens,) = encode_sentences(setup.model.tokenizer, [text], NO_FRAME, apart=apart)
    end = len(text.text)
    if len(tokens) > size:  # characters may be split over tokens
        end = min(tokens.offsets[size - 1][1], tokens.offsets[size][0])
    (made,) = _encode(setup, [cut_text(text, end)])
    if isinstance(made, SkipError):
        skipped[f"{WINDOWS}{made}"] += 1
    else:
        yield number, made


def _lengths(setup: Setup, sentences: Sequence[Sentence]) -> list[int]:
    """Tokens of every sentence; one more than fits for those that cannot be used."""
    frame = len(frame_of_words(setup))
    unusable = window_size(setup) + 1
    return [
        len(words.tokens) - frame if isinstance(words, WordTokens) else unusable
        for words in _encode(setup, sentences)
    ]


OPTIONS = (
    Option("row", str, "mean", "how a split word attends: as its pieces on average, or as the "
           "first of them", choices=("mean", "first")),
    Option("exemplars", int, 5, "sentences kept per head", least=1),
    Option("figure5_special", bool, False, "whether Figure 5 shows [CLS] and [SEP], too"),
    Option("few", int, 20, "relations of fewer words are shown in grey", least=0),
    Option("window", int, 128, "most tokens of a coreference window", least=8),
    Option("windows", str, "all", "all windows of whole sentences, the first of a document, or "
           "cut: its first tokens as in the paper", choices=("all", "first", "cut")),
    Option("clitics", bool, False, "whether the prediction of 's counts for its possessor in `all` "
           "too, as in the paper's released notebook"),
    Option("offsets_in_paper", bool, False, "whether the baseline tries offsets from -3 to +2 that "
           "end at the first and last word, as the paper's released code does"),
    Option("every_relation", bool, False, "whether Table 1 has rows for root and punct"),
    Option("probes", bool, True, "whether the probes of Table 3 are trained"),
    Option("train", str, None, "corpus for the probes; four fifths of the documents if none"),
    Option("vectors", str, None, "word vectors for the probes; the model's embeddings if none"),
    Option("epochs", int, None, "passes over the corpus of the probes; one, or up to five where it "
           "has fewer than 1,000 sentences, if none", least=1),
    Option("probe_batch", int, 1, "sentences per step of training", least=1),
    Option("probe_rate", float, LEARNING_RATE, "learning rate of the probes", above=0),
    Option("probe_seeds", int, 3, "times that every probe is trained", least=1),
    Option("control", bool, False, "whether probes also learn the control task, in twice the time"),
)  # fmt: skip


def find_relations(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Every relation label that occurs, sorted; any label scheme is taken as it is."""
    if not corpus.has("deprel"):
        return {}
    labels = {word.deprel for sentence in corpus for word in sentence.words if word.deprel}
    return {"relation": tuple(sorted(labels))}


def has_trees(setup: Setup) -> bool:
    """Whether the corpus has governors and relations."""
    return setup.corpus.has("head") and bool(setup.labels.get("relation"))


def why_no_probes(setup: Setup) -> str | None:
    """Why no probes are trained; None if they are."""
    if not has_trees(setup):
        return NO_TREES
    return None if setup.options["probes"] else NO_PROBES


def check_files(setup: Setup) -> None:
    """Refuse a missing or malformed file before the work begins, not when the probes need it."""
    for name in ("train", "vectors"):
        path = setup.options[name]
        if path is not None and path != "demo" and not Path(path).is_file():
            raise CorpusError(f"There is no file {path}; check the option {name}.")
    if setup.options["vectors"] is not None:
        check_vectors(setup.options["vectors"])
