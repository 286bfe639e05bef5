"""Results of a GPU are copied whole; a host that never waits gets the same states."""

import numpy as np
import pytest
import torch

from headscope.engine.forward import observe
from headscope.engine.setup import Setup
from headscope.metrics import metric as states
from headscope.metrics.metric import Axis, State, label
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from tests.engine.tiny import MODELS, make_sentences


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor counts as one on a GPU."""
    monkeypatch.setattr(states, "is_far", lambda tensor: True)


def observed(study: str, kind: str) -> dict[str, State]:
    corpus, chosen = Corpus.from_sentences(make_sentences(40)), find_study(study)
    setup = Setup(MODELS[kind](), corpus, chosen.with_options({}), chosen.labels(corpus), 64)
    part = chosen.parts(setup)[0]
    examples = part.inputs(setup, Excerpt(list(corpus)), 0).examples
    return observe(setup.model, examples, part.metrics, 64)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("study", ["vig2019", "clark2019"])
def test_states_that_are_copied_late_are_the_same(
    study: str, kind: str, request: pytest.FixtureRequest
) -> None:
    near = observed(study, kind)
    request.getfixturevalue("far_away")
    late = observed(study, kind)
    for name, state in near.items():
        assert not late[name].pending and not late[name].on_device
        for key, values in state.sums.items():
            np.testing.assert_array_equal(late[name].sums[key], values, err_msg=f"{name} {key}")
        for key, values in state.records.items():
            np.testing.assert_array_equal(late[name].records[key], values, err_msg=f"{name} {key}")


def test_nothing_is_applied_before_it_is_copied_and_then_in_order(far_away: None) -> None:
    state, seen = State({}), []
    state.receive(lambda values: seen.append(values.tolist()), torch.tensor([1]))
    state.receive(lambda values: seen.append(values.tolist()), torch.tensor([2]))
    assert seen == []
    state.settle()
    assert seen == [[1], [2]]
    state.settle()
    assert seen == [[1], [2]]


def test_labels_that_are_equal_but_of_another_kind_stay_what_they_are() -> None:
    for labels, kind in (((0, 1), "i"), ((0.0, 1.0), "f"), ((0, 1), "i")):
        assert label(np.zeros(2), Axis("place", labels))["place"].dtype.kind == kind
