"""Every fuzzer for two seconds; `make fuzz` runs them for as long as you like."""

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.fuzzers import FUZZERS, Fuzzer


@pytest.mark.parametrize("kind", FUZZERS, ids=lambda kind: kind.name)
def test_random_damage_ends_in_an_answer_or_a_sentence(
    kind: type[Fuzzer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", "set again by the fuzzer")  # and restored afterwards
    outcome = fuzz(kind, seed=1, seconds=2)
    assert outcome.failures == []
    assert outcome.inputs >= (1 if "runs" in kind.name else 10)  # a run takes most of a second
