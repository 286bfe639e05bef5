"""The inputs of vig2019: one sentence is one sequence, labels and arcs copied to word pieces."""

from collections import Counter
from collections.abc import Mapping, Sequence

from headscope.engine.example import NO_LABEL, Arcs, Example
from headscope.errors import AlignmentError, ModelError
from headscope.model.encode import Encoded, encode
from headscope.studies.study import Inputs, Setup
from headscope.text.alignment import Alignment, align
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence, Word

TAG_FIELDS = ("upos", "xpos")  # the first that the corpus has is the tag set
TOO_LONG = "too long"
EMPTY = "empty"


def tag_field(corpus: Corpus) -> str | None:
    """The annotation that serves as tags, or None."""
    return next((field for field in TAG_FIELDS if corpus.has(field)), None)


def find_labels(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Every tag and relation that occurs, sorted; any tag set is taken as it is."""
    fields = {"tag": tag_field(corpus), "deprel": "deprel" if corpus.has("deprel") else None}
    known = {name: field for name, field in fields.items() if field is not None}
    found: dict[str, set[str]] = {name: set() for name in known}
    for sentence in corpus if known else ():
        for word in sentence.words:
            for name, field in known.items():
                found[name].add(getattr(word, field))
    return {name: tuple(sorted(labels - {None})) for name, labels in found.items()}


def sentence_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence that fits the model and whose words match its tokens."""
    codes = {
        name: {label: code for code, label in enumerate(labels)}
        for name, labels in setup.labels.items()
    }
    examples: list[Example] = []
    skipped: Counter[str] = Counter()
    for number, sentence in enumerate(sentences, start=first):
        try:
            examples.append(_example(setup, sentence, number, codes))
        except _SkipError as reason:
            skipped[str(reason)] += 1
    return Inputs(examples, skipped)


class _SkipError(Exception):
    """Why a sentence cannot be used."""


def _example(
    setup: Setup, sentence: Sentence, number: int, codes: Mapping[str, Mapping[str, int]]
) -> Example:
    encoded = _encode(setup, sentence)
    null = _null(encoded, setup.model.is_causal)
    shown = {"token": encoded.ids, "special": [NO_LABEL] * len(encoded)}
    if not codes:
        return Example(number, encoded, null, shown)
    alignment = _align(sentence, encoded)
    fields = {"tag": tag_field(setup.corpus) or "", "deprel": "deprel"}
    labels = {
        name: _label_tokens(sentence.words, fields[name], known, alignment)
        for name, known in codes.items()
    }
    arcs = _arcs(sentence.words, alignment) if setup.corpus.has("head") else None
    return Example(number, encoded, null, shown | labels, arcs)


def _encode(setup: Setup, sentence: Sentence) -> Encoded:
    """No BOS for a causal model: the first token of the text is the sink, as in the paper."""
    model = setup.model
    try:
        encoded = encode(model.tokenizer, sentence.text, special=not model.is_causal)
    except ModelError as error:
        raise _SkipError(EMPTY) from error
    if model.max_length is not None and len(encoded) > model.max_length:
        raise _SkipError(TOO_LONG)
    return encoded


def _null(encoded: Encoded, is_causal: bool) -> tuple[bool, ...]:
    """The first token of a causal model, the delimiters of a bidirectional one."""
    return (True, *[False] * (len(encoded) - 1)) if is_causal else encoded.special


def _align(sentence: Sentence, encoded: Encoded) -> Alignment:
    try:
        return align(sentence.words, sentence.text, encoded.offsets, encoded.special)
    except AlignmentError as error:
        raise _SkipError(f"alignment: {error.reason}") from error


def _label_tokens(
    words: Sequence[Word], field: str, codes: Mapping[str, int], alignment: Alignment
) -> list[int]:
    of_words = [codes.get(getattr(word, field), NO_LABEL) for word in words]
    return [of_words[word] if word >= 0 else NO_LABEL for word in alignment.word_of_token]


def _arcs(words: Sequence[Word], alignment: Alignment) -> Arcs:
    """A relation between two words holds between all their pieces."""
    pieces = alignment.tokens_of_word
    return tuple(
        (parent, token)
        for index, word in enumerate(words)
        if word.head is not None and word.head >= 0 and word.head != index
        for parent in pieces[word.head]
        for token in pieces[index]
    )
