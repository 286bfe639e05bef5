"""Documents as inputs of vig2019: consecutive sentences of one document, up to so many tokens.

```
document   s0 s1 s2 s3 s4        context 100 tokens, sentences of 40, 30, 20, 60, 30
inputs    [s0 s1 s2][s3 s4]      tags and arcs are those of the sentences, nulls those of an input
```
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from headscope.model.encode import encode_all
from headscope.studies.study import Inputs, Setup
from headscope.studies.vig2019.inputs import TOO_LONG, Numbered, Read, make_inputs, read_usable
from headscope.text.sentence import Sentence
from headscope.text.windows import GAP, cut, join


def document_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """Inputs of at most the context's tokens; sentences that cannot be used are left out."""
    skipped: Counter[str] = Counter()
    read, _ = read_usable(setup, list(enumerate(sentences, start=first)), skipped)
    return make_inputs(setup, list(_windows(setup, read, skipped)), skipped)


def _windows(setup: Setup, read: Read, skipped: Counter[str]) -> Iterator[Numbered]:
    """The sentences of every input as one, numbered by the first of them."""
    delimiters = sum(read.encodings[0].special_tokens_mask) if read.encodings else 0
    lengths = _lengths(setup, read) - delimiters
    rows = range(len(read.sentences))
    for _, run in groupby(rows, key=lambda row: read.sentences[row].document):
        document = list(run)
        room = setup.options["context"] - delimiters
        windows, too_long = cut(lengths[document].tolist(), room)
        skipped[TOO_LONG] += len(too_long)
        for window in windows:
            chosen = [document[place] for place in window]
            yield read.numbers[chosen[0]], join([read.sentences[row] for row in chosen])


def _lengths(setup: Setup, read: Read) -> np.ndarray:
    """Tokens of every sentence; a tokenizer may need one more or less after a space."""
    model = setup.model
    texts = [GAP + sentence.text for sentence in read.sentences]
    spaced = encode_all(model.tokenizer, texts, special=not model.is_causal) if texts else []
    lengths = [len(encoding) for encoding in spaced]
    return np.maximum(read.lengths, np.array(lengths, dtype=np.int64))
