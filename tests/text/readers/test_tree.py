from hypothesis import given
from hypothesis import strategies as st

from headscope.text.readers.words import find_cycle
from headscope.text.sentence import ROOT


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.none() | st.integers(-1, n - 1), min_size=n, max_size=n)
    )
)
def test_a_cycle_is_found_exactly_when_climbing_never_ends(heads: list[int | None]) -> None:
    def climbs_forever(word: int) -> bool:
        current: int | None = word
        for _ in range(len(heads) + 1):
            if current is None or current == ROOT:
                return False
            current = heads[current]
        return True

    endless = {word for word in range(len(heads)) if climbs_forever(word)}
    found = find_cycle(heads)
    assert (found is not None) == bool(endless)
    assert found is None or found in endless
