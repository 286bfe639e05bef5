"""Real networks compared: with themselves, a permuted copy, a shorter copy, and a stranger."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope.head import Head
from headscope.model.model import Model
from headscope.results.compare import clear_and_all, compare, rows_of
from headscope.results.compare.matching import likeness

SENTENCES = 48


def layers_of(model: Model) -> nn.ModuleList:
    (found,) = [
        module for module in model.network.modules()
        if isinstance(module, nn.ModuleList) and len(module) == model.layers
    ]  # fmt: skip
    return found


def copy_of(model: Model) -> Model:
    return Model(deepcopy(model.network), model.tokenizer, name="copy")


def permuted(model: Model, seed: int) -> tuple[Model, dict[Head, Head]]:
    """The heads of every layer in another order, which changes nothing but their numbers."""
    copy, random = copy_of(model), np.random.default_rng(seed)
    went = {}
    for index, layer in enumerate(layers_of(copy)):
        order = random.permutation(model.heads)
        went |= {Head(index, int(old)): Head(index, new) for new, old in enumerate(order)}
        for name, module in layer.get_submodule("attention").named_modules():
            if isinstance(module, nn.Linear):
                _permute(module, order, model.heads, into="output" in name)
    return copy, went


def _permute(module: nn.Linear, order: np.ndarray, heads: int, *, into: bool) -> None:
    size = module.weight.shape[1 if into else 0] // heads
    units = torch.from_numpy((order[:, None] * size + np.arange(size)).ravel())
    with torch.no_grad():
        module.weight.copy_(module.weight[:, units] if into else module.weight[units])
        if not into and module.bias is not None:
            module.bias.copy_(module.bias[units])


def without_last_layer(model: Model) -> Model:
    network = deepcopy(model.network)
    copy = Model(network, model.tokenizer, name="shorter")
    del layers_of(copy)[-1]
    network.config.num_hidden_layers -= 1
    return Model(network, model.tokenizer, name="shorter")


@pytest.fixture(scope="module")
def bert() -> Model:
    return hs.load("mini-bert")


@pytest.fixture(scope="module")
def run(bert: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study(bert, tmp_path_factory.mktemp("first") / "run")


def study(model: Model, path: Path, seed: int = 0) -> Path:
    # A fit ends where rounding lets it, and distances of equal heads are to be near 0.
    options = {"sentences": SENTENCES, "portrait": False}
    hs.study("vig2019", model, hs.demo_corpus(), path, seed=seed, **options)
    return path


def test_two_samples_of_one_network_hardly_differ(bert: Model, run: Path, tmp_path: Path) -> None:
    found = compare(run, study(bert, tmp_path / "again", seed=1))
    clear, count = clear_and_all(found)
    assert found.by == ("index",) and not found.relation.same_texts
    assert count > 4000
    assert clear < 0.01 * count


def test_matching_finds_the_whole_permutation_of_heads(
    bert: Model, run: Path, tmp_path: Path
) -> None:
    model, went = permuted(bert, 7)
    other = study(model, tmp_path / "permuted")
    by_number, matched = compare(run, other, by="index"), compare(run, other)
    assert matched.relation.one_lineage and matched.by == ("matched", "depth")
    assert any("a partner of another number, whatever the embeddings say" in note
               for note in matched.notes)  # fmt: skip
    assert clear_and_all(by_number)[0] > 1000
    assert matched.matching is not None
    assert {match.first: match.second for match in matched.matching.matches} == went
    assert max(match.distance for match in matched.matching.matches) < 1e-3
    assert clear_and_all(matched)[0] == 0


def test_a_copy_without_its_last_layer_matches_in_all_others(
    bert: Model, run: Path, tmp_path: Path
) -> None:
    found = compare(run, study(without_last_layer(bert), tmp_path / "shorter"))
    assert found.by == ("matched", "depth") and found.matching is not None
    assert all(match.first == match.second for match in found.matching.matches)
    last = bert.layers - 1
    assert found.matching.first_alone == tuple(Head(last, head) for head in range(bert.heads))
    assert len({row["second_at"] for row in rows_of(found, "layers")}) == last


def test_strangers_are_compared_by_what_heads_do_and_by_depth_never_by_index(
    run: Path, tmp_path: Path
) -> None:
    found = compare(run, study(hs.load("mini-gpt2"), tmp_path / "gpt2"))
    assert found.by == ("matched", "depth") and found.relation.same_texts
    assert found.matching is not None
    good = sum(match.is_good for match in found.matching.matches)
    assert 0 < good < 32  # of 64: some do the same, most do not
    for row in [*rows_of(found, "heads"), *rows_of(found, "layers")]:
        assert np.isnan(row["low"]) or row["low"] < row["high"]
        if row["measure"].startswith(("pos_", "deprel_", "dependency_", "null_")):
            assert np.isnan(row["low"]) or -1 <= row["low"] <= row["high"] <= 1


def embedding_of(model: Model) -> torch.Tensor:
    module = model.network.get_input_embeddings()
    assert isinstance(module, nn.Embedding)
    return module.weight


def test_embeddings_tell_a_lineage(bert: Model) -> None:
    tuned = copy_of(bert)
    weight = embedding_of(tuned)
    with torch.no_grad():
        weight.add_(torch.randn(weight.shape) * 0.3 * weight.std())
    fresh = copy_of(bert)
    with torch.no_grad():
        embedding_of(fresh).normal_()
    assert len(bert.sketch.split()) == 256
    assert likeness(bert.sketch, bert.sketch) == pytest.approx(1)
    assert (likeness(bert.sketch, tuned.sketch) or 0) > 0.9
    assert abs(likeness(bert.sketch, fresh.sketch) or 1) < 0.3
    assert likeness(bert.sketch, "") is None
