"""What probes train on and what they are tested on when only one corpus is given."""

import random

from headscope.text.corpus import Corpus

TRAIN_SHARE = 0.8
FEWEST_DOCUMENTS = 5  # with fewer, four fifths cannot be cut at documents


def split_documents(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    """A seeded four fifths of the documents, and the rest; of few documents, of the sentences."""
    names = [sentence.document for sentence in corpus]
    if len(set(names)) < FEWEST_DOCUMENTS:
        names = [str(place) for place in range(len(corpus))]
    documents = sorted(set(names))
    chosen = set(random.Random(seed).sample(documents, round(len(documents) * TRAIN_SHARE)))
    train = [place for place, name in enumerate(names) if name in chosen]
    test = [place for place, name in enumerate(names) if name not in chosen]
    return corpus.select(train), corpus.select(test)
