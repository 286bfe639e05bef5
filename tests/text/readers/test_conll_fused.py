from hypothesis import given
from hypothesis import strategies as st

from headscope.text.readers.conll import merge_fused
from headscope.text.sentence import ROOT, Mention, Sentence, Word, problem
from tests.references.random_sentences import heads


@given(st.data())
def test_merged_words_form_a_tree_over_the_written_tokens(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    arcs = data.draw(heads(sum(sizes)))
    starts = [token for token, size in enumerate(sizes) for _ in range(size)]
    words = tuple(
        Word("w", start, start + 1, head=head) for start, head in zip(starts, arcs, strict=True)
    )
    sentence = Sentence("x" * len(sizes), words, (Mention("e", ((0, len(words)),)),))
    merged = merge_fused(sentence)
    if sum(sizes) == len(sizes):
        assert merged == sentence
        return
    assert [word.start for word in merged.words] == list(range(len(sizes)))
    assert problem(merged) is None
    assert merged.mentions == (Mention("e", ((0, len(sizes)),)),)
    for token, word in enumerate(merged.words):
        old = [
            ROOT if a == ROOT else starts[a]
            for s, a in zip(starts, arcs, strict=True)
            if s == token
        ]
        assert word.head in old
