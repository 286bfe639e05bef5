"""A made-up exemplar."""

from headscope.results.examples import Exemplar
from headscope.results.records import KeptInput


def make_exemplar(
    tokens: list[str],
    query: int,
    key: int,
    *,
    text: str | None = None,
    weight: float = 0.5,
    rank: int = 0,
) -> Exemplar:
    """A sentence and a pair of its tokens; its text is that of the tokens unless it is given."""
    joined = "".join(tokens).replace(" ##", "").replace("##", "") if text is None else text
    shown = KeptInput(0, "d", 0, tuple(tokens), "s1", joined)
    return Exemplar(rank, weight, query, key, shown)
