"""Every head gets the sentence it was wired for, and heads that do nothing get none."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.errors import RunError
from headscope.metrics.dependencies import (
    DEPENDENCY_ALIGNMENT,
    DEPENDENCY_BASELINE,
    DEPENDENCY_EXPECTED,
)
from headscope.observe import FORMS
from headscope.results.replicates import GROUPS
from headscope.results.roles import describe_heads
from headscope.results.statements import (
    Statements,
    make_statements,
    read_statements,
    write_statements,
)
from tests.references.grouped import with_sums, write_run
from tests.references.wired import (
    even,
    first,
    previous,
    relations_of,
    result_of,
    scattered,
    to_verbs,
)

LINGUISTIC = {"tag", "relation", "coreference"}


@pytest.fixture(scope="module")
def wired() -> xr.Dataset:
    return result_of((previous, first, to_verbs, even, scattered))


def test_heads_wired_by_hand_are_told_by_what_they_were_wired_for(wired: xr.Dataset) -> None:
    sentences = [one.sentence for one in describe_heads(wired)]
    assert sentences[0].startswith("L0H0: the previous token, 0.")
    assert sentences[0].endswith("(even attention 0.02)")
    assert sentences[1].startswith("L0H1: the first token, 0.7")
    assert sentences[2].startswith("L0H2: verbs, 0.")
    assert sentences[3].startswith("L0H3: broadly, over all it sees, 1.00 ± 0.01 of the entropy")
    assert sentences[4] == "L0H4: no clear role"


def test_a_role_holds_its_numbers_and_the_share_it_accounts_for(wired: xr.Dataset) -> None:
    described = describe_heads(wired)[0]
    (role,) = described.roles
    value = float(wired["offset_share"].sel(layer=0, head=0, offset=-1))
    base = float(wired["offset_share_even"].sel(offset=-1))
    assert (role.kind, role.spec) == ("position", "offset_share~-1")
    assert role.value == pytest.approx(value)
    assert role.strength == pytest.approx((value - base) / (1 - base))
    assert 0 <= role.low < value < role.high <= 1
    assert role.q is not None and role.q < 1e-6
    assert described.share == pytest.approx(value)


def test_several_roles_come_strongest_first_and_are_added_up() -> None:
    def both(tags: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return 2 * previous(tags, random) + np.eye(len(tags))

    (one,) = describe_heads(result_of((both,)))
    assert [role.words for role in one.roles] == ["the previous token", "itself"]
    assert one.share == pytest.approx(sum(role.value for role in one.roles))


def test_the_description_is_the_same_every_time(wired: xr.Dataset) -> None:
    assert describe_heads(wired) == describe_heads(wired.copy(deep=True))


def test_shuffled_labels_give_at_most_one_head_in_twenty_a_linguistic_role() -> None:
    found = describe_heads(result_of((scattered, to_verbs) * 40, seed=3, shuffled=True))
    named = [one for one in found if LINGUISTIC & {role.kind for role in one.roles}]
    assert len(found) == 80
    assert len(named) <= 4


def relations(
    rates: tuple[float, ...], words_a_group: int, base: float, seed: int = 0
) -> xr.Dataset:
    random = np.random.default_rng(seed)
    words = np.full((GROUPS, 2), words_a_group)
    right = random.binomial(words[:, None], np.array(rates)[None, :, None], (GROUPS, len(rates), 2))
    return relations_of(right, words, random.binomial(words, base), ("det", "nsubj"))


def test_a_relation_is_a_role_only_beyond_the_best_fixed_offset() -> None:
    found = describe_heads(relations((0.94, 0.74), 20, 0.72))
    assert "det: dependents to their head, 0.95 ± 0.02 (always" in found[0].sentence
    assert "(always the word at offset +1: 0.7" in found[0].sentence
    assert found[1].sentence == "L0H1: no clear role"
    assert found[0].share is None  # of words, not of attention


def test_heads_that_guess_at_rare_labels_get_a_role_no_more_often_than_one_in_twenty() -> None:
    found = describe_heads(relations((0.3,) * 60, 1, 0.3, seed=5))
    assert sum(bool(one.roles) for one in found) <= 3


def test_one_group_of_documents_is_too_little_to_name_a_role(wired: xr.Dataset) -> None:
    single = wired.copy(deep=True)
    for name in single.data_vars:
        if str(name).endswith(("_numerator", "_denominator")):
            single[name][1:] = 0
    assert {one.sentence.split(": ")[1] for one in describe_heads(single)} == {"no clear role"}


def test_a_head_without_values_has_no_role_and_disturbs_no_other(wired: xr.Dataset) -> None:
    broken = wired.copy(deep=True)
    for name in ("offset_share", "first_token_share", "pos_to", "entropy"):
        broken[f"{name}_numerator"][:, 0, 1] = np.nan
    found = describe_heads(broken)
    assert found[1].sentence == "L0H1: no clear role"
    assert found[0].sentence == describe_heads(wired)[0].sentence


def test_sentences_are_stored_with_the_run_and_read_back(wired: xr.Dataset, tmp_path: Path) -> None:
    said = make_statements((), (), lambda result: [], wired)
    assert said.heads == describe_heads(wired)
    assert read_statements(write_statements(wired, said)).heads == said.heads
    write_run(tmp_path / "run", write_statements(wired, said))
    shown = CliRunner().invoke(app, ["heads", str(tmp_path / "run")]).stdout.splitlines()
    assert len(shown) == 5 and shown[4] == "L0H4: no clear role"
    assert "accounts for" in shown[0]
    verbs = CliRunner().invoke(app, ["heads", str(tmp_path / "run"), "--role", "verb"]).stdout
    assert verbs.startswith("L0H2: verbs") and len(verbs.splitlines()) == 1


def test_the_table_of_heads_has_a_row_for_each_role(wired: xr.Dataset, tmp_path: Path) -> None:
    said = make_statements((), (), lambda result: [], wired)
    run = write_run(tmp_path / "run", write_statements(wired, said))
    table = hs.heads(run)
    assert table["head"].tolist() == ["L0H0", "L0H1", "L0H2", "L0H3", "L0H4"]
    assert table["kind"].tolist()[:4] == ["position", "special", "tag", "spread"]
    assert hs.heads(run, role="special")["role"].tolist() == ["the first token"]
    with pytest.raises(RunError, match="no layer 4; there are 0 to 0"):
        hs.heads(run, layer=4)
    with pytest.raises(RunError, match="No head has a role 'nsubj'"):
        hs.heads(run, role="nsubj")


def test_a_run_made_before_says_how_to_run_again(wired: xr.Dataset) -> None:
    with pytest.raises(RunError, match="again with a new --out"):
        read_statements(wired)
    empty = write_statements(wired.drop_vars(list(wired.data_vars)), Statements())
    assert read_statements(empty).heads == ()


def test_a_head_that_only_looks_near_has_no_relation_and_one_that_knows_arcs_has() -> None:
    random = np.random.default_rng(0)
    weight = np.full((GROUPS, 1, 2, 3), 50.0)
    axes = {"layer": [0], "head": [0, 1], "form": list(FORMS)}
    shares = np.broadcast_to(np.array([0.4, 0.0, 0.4]), weight.shape)
    expected = np.stack([shares[:, :, 0], 0.1 * shares[:, :, 1]], axis=2)
    varied = weight * (1 + random.normal(0, 0.01, weight.shape))
    result = with_sums(xr.Dataset(), DEPENDENCY_ALIGNMENT, shares * varied, varied, axes)
    result = with_sums(result, DEPENDENCY_EXPECTED, expected * varied, varied, axes)
    even = np.full((GROUPS, 3), 0.05) * varied[:, 0, 0]
    result = with_sums(result, DEPENDENCY_BASELINE, even, varied[:, 0, 0], {"form": list(FORMS)})
    near, knowing = describe_heads(result)
    assert near.sentence == "L0H0: no clear role"
    assert knowing.sentence == (
        "L0H1: words that depend on the attending one, 0.40 ± 0.02 (expected from its distances "
        "0.04)"
    )
    without = describe_heads(result.drop_vars([n for n in result if "expected" in str(n)]))
    assert "0.40 ± 0.02 (share of pairs 0.05)" in without[0].sentence
