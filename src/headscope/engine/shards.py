"""How a corpus is cut into shards: anywhere between sentences, or only between documents."""

from collections.abc import Iterator
from random import Random

from headscope.errors import RunError
from headscope.studies.study import Setup
from headscope.text.corpus import Corpus, Shard
from headscope.text.excerpt import documents_of

LONGEST = 16  # shards' worth of sentences after which even a document is cut


def make_shards(setup: Setup, size: int) -> list[Shard]:
    """The shards of a run; where documents are inputs, a shard holds whole ones."""
    if setup.context is None:
        return setup.corpus.shards(size)
    return list(_of_documents(setup.corpus, size))


def draw_documents(corpus: Corpus, count: int, seed: int) -> Corpus:
    """Whole documents drawn with the seed until they have `count` sentences, in corpus order."""
    documents = documents_of(corpus)
    chosen: list[tuple[int, int]] = []
    for document in Random(seed).sample(documents, len(documents)):
        if sum(stop - start for start, stop in chosen) >= count:
            break
        chosen.append(document)
    return corpus.select([row for document in sorted(chosen) for row in range(*document)])


def check_context(setup: Setup) -> None:
    """Refuse inputs longer than the model has positions for."""
    context, limit = setup.context, setup.model.max_length
    if context is not None and limit is not None and context > limit:
        raise RunError(
            f"{setup.model.name} has positions for {limit:,} tokens, fewer than a context of "
            f"{context:,}; give --context {limit} or less."
        )


def _of_documents(corpus: Corpus, size: int) -> Iterator[Shard]:
    index = begin = end = 0
    for start, stop in documents_of(corpus):
        for cut in (*range(start + LONGEST * size, stop, LONGEST * size), stop):
            end = cut
            if end - begin >= size:
                yield Shard(index, begin, end)
                index, begin = index + 1, end
    if end > begin:
        yield Shard(index, begin, end)
