"""A batch cut out of flat columns is what its examples say."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.model.inputs.tokens import Tokens
from headscope.observe import NO_LABEL, Columns, Example

PAD = 99


@st.composite
def examples(draw: st.DrawFn, number: int) -> Example:
    size = draw(st.integers(1, 5))
    ids = tuple(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    token = st.integers(0, size - 1)
    tokens = Tokens(ids, ("",) * size, (None,) * size, (False,) * size, segments=ids)
    arcs = draw(st.lists(st.tuples(token, token), max_size=4))
    null = tuple(index == 0 for index in range(size))
    return Example(number, tokens, null, {"tag": ids}, arcs)


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_a_cut_batch_has_the_tokens_labels_and_arcs_of_its_examples(data: st.DataObject) -> None:
    made = [data.draw(examples(number)) for number in range(data.draw(st.integers(1, 5)))]
    rows = data.draw(st.permutations(range(len(made))))[: data.draw(st.integers(1, len(made)))]
    cut = Columns.of(made).cut(rows, pad=PAD, is_causal=True)
    width = max(len(made[row].tokens) for row in rows)
    for place, row in enumerate(rows):
        ids = list(made[row].tokens.ids)
        rest = width - len(ids)
        assert cut.batch.ids[place].tolist() == ids + [PAD] * rest
        assert cut.batch.mask[place].tolist() == [True] * len(ids) + [False] * rest
        assert cut.annotated.labels["tag"][place].tolist() == ids + [NO_LABEL] * rest
        assert cut.annotated.null[place].tolist() == [True] + [False] * (width - 1)
        arcs = cut.annotated.arcs
        assert arcs is not None
        own = arcs[arcs[:, 0] == place, 1:].tolist()
        assert own == [list(arc) for arc in made[row].arcs or ()]
    assert cut.batch.rows == tuple(rows)
    assert cut.annotated.numbers.tolist() == list(rows)
    assert cut.batch.ids.dtype == torch.long and cut.annotated.numbers.dtype == np.int64
