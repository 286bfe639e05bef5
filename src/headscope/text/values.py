"""Which values an annotation takes in a corpus, found without making its sentences."""

from itertools import groupby

from headscope.text.corpus import Corpus, Field


def values_of(corpus: Corpus, field: Field) -> set[str]:
    """All tags or relations that occur; only columns are read."""
    size = corpus.storage.facts.group_rows
    found: set[str | None] = set()
    for group, run in groupby(corpus.rows, key=lambda row: row // size):
        column = corpus.storage.group(group).column(field)
        within = [row - group * size for row in run]
        chosen = column if len(within) == len(column) else column.take(within)
        found.update(chosen.combine_chunks().flatten().unique().to_pylist())
    return {value for value in found if value is not None}
