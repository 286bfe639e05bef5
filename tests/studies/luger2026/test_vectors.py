"""The second pass equals a plain reading of the same inputs; records that rot are written again."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.engine import Setup, blocks_of
from headscope.metrics import seeded_hash
from headscope.model.model import Model
from headscope.model.writes import output_part, require_readout
from headscope.results.records import EXAMPLES, MAPS, TOP_TOKENS, WRITES
from headscope.results.run import Run, read_finished
from headscope.studies.luger2026.inputs import inputs_again
from headscope.text.corpus import Corpus
from tests.references.tiny_models import MODELS, make_sentences

OPTIONS: dict[str, Any] = {"context": 12, "points": 9, "depths": []}
SENTENCES = 40


def corpus() -> Corpus:
    return Corpus.from_sentences(make_sentences(SENTENCES))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple]:
    """The models and their finished runs, each made once."""

    @cache
    def case(kind: str) -> tuple:
        model, out = MODELS[kind](), tmp_path_factory.mktemp("run")
        hs.study("luger2026", model, corpus(), out, seed=3, **OPTIONS)
        run = read_finished(out)
        assert run.notes == ()
        return model, run

    return case


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest, cases: Callable[[str], tuple]) -> tuple:
    return cases(request.param)


def weights_of(model: Model, ids: list[int]) -> list[torch.Tensor]:
    with torch.no_grad():
        network = model.network.eval()
        network.set_attn_implementation("eager")
        given = torch.tensor([ids])
        return [each[0] for each in network(given, output_attentions=True).attentions]


def written_by(model: Model, layer: int, head: int, ids: list[int]) -> torch.Tensor:
    """What a head writes at every token, from what its output projection receives."""
    slot = next(each for each in model.plan.slots if each is not None and each.layer == layer)
    assert slot.projection is not None
    seen: list[torch.Tensor] = []
    handle = slot.projection.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    weights_of(model, ids)
    handle.remove()
    found = seen[0][0].unflatten(-1, (model.heads, -1))[:, head]
    return found.detach() @ output_part(model, layer, head)


def made(model: Model, run: Run, number: int) -> list[int]:
    setup = Setup(model, corpus(), {**OPTIONS, "rest": False}, {}, 1024, 3)
    (example,) = inputs_again(setup, [number]).examples
    return list(example.tokens.ids)


def test_examples_have_the_largest_weights_of_their_rows(case: tuple) -> None:
    model, run = case
    seen = 0
    for layer in range(run.data.sizes["layer"]):
        for example in run.records.examples(layer, 1)[::4]:
            weights = weights_of(model, made(model, run, example.input))[layer][1]
            assert example.peak == pytest.approx(weights[1:, 1:].max().item(), rel=1e-5)
            pair = example.attending, example.attended
            assert weights[pair].item() == pytest.approx(example.peak, rel=1e-5)
            wanted = {}
            for query, row in enumerate(weights.tolist()):
                best = sorted(range(len(row)), key=lambda key: -row[key])[:8]
                wanted |= {(query, key): row[key] for key in best if row[key] > 0.005}
            pairs = zip(example.query, example.key, strict=True)
            found = dict(zip(pairs, example.weight, strict=True))
            assert found == pytest.approx(wanted, abs=1e-6)
            assert list(example.query) == sorted(example.query)
            seen += 1
    assert seen > 5


def test_inputs_are_kept_with_their_tokens_once(case: tuple) -> None:
    model, run = case
    blocks = blocks_of(run.data, ("example_input", "sample_input"))
    numbers = [number for block in blocks for number in block]
    kept = run.records.inputs(numbers)
    assert list(kept) == numbers
    for number in numbers[:5]:
        shown = kept[number].tokens
        assert len(shown) == OPTIONS["context"]
        assert model.tokenizer.convert_ids_to_tokens(made(model, run, number)[1])[-1] in shown[1]
        assert kept[number].document.startswith("d")


def test_points_lie_where_plain_vectors_lie(case: tuple) -> None:
    model, run = case
    layer, head = 1, 0
    points = [p for p in run.records.points(layer, head) if p.space == "output"]
    assert len(points) == OPTIONS["points"]
    written = []
    for point in points:
        ids = made(model, run, point.input)
        written.append(written_by(model, layer, head, ids)[point.position].numpy())
    centred = np.array(written, dtype=float) - np.mean(written, axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    places = centred @ directions[:2].T
    own = np.array([[p.component1, p.component2] for p in points])
    signs = np.sign((own * places).sum(0))
    np.testing.assert_allclose(own, places * signs, atol=1e-4 * np.abs(places).max())
    share = run.data["component_share"].sel(layer=layer, head=head, space="output").values
    np.testing.assert_allclose(share, (sizes**2 / (sizes**2).sum())[:2], rtol=1e-4)


def test_sampled_tokens_have_the_smallest_hashes_and_queries_lie_beside_keys(case: tuple) -> None:
    _, run = case
    points = run.records.points(0, 0)
    tokens = [(p.input, p.position) for p in points if p.space == "query"]
    assert tokens == [(p.input, p.position) for p in points if p.space == "value"]
    hashes = {token: int(seeded_hash(3, *token)) for token in tokens}
    sample = run.data["sample_input"].values, run.data["sample_position"].values
    assert set(tokens) == set(zip(*sample, strict=True))
    inputs = run.records.inputs(number for number, _ in tokens)
    others = [(n, p) for n in inputs for p in range(1, OPTIONS["context"])]
    assert sorted(others, key=lambda token: int(seeded_hash(3, *token)))[0] in hashes
    for point in points:
        assert point.token == inputs[point.input].tokens[point.position]
        assert (point.x is None) == (point.space not in ("query", "key"))


def test_writes_are_the_mean_over_sampled_tokens(case: tuple) -> None:
    model, run = case
    layer, head, readout = 0, 1, require_readout(model)
    total = torch.zeros(len(model.tokenizer))
    points = [p for p in run.records.points(layer, head) if p.space == "output"]
    for point in points:
        with readout.watching() as residuals:
            part = written_by(model, layer, head, made(model, run, point.input))
        part = part[point.position][None]
        own = readout.logits(residuals[-1][0, point.position][None], part)[0]
        total += own[: len(total)].detach() / len(points)
    written = run.records.writes(layer, head)
    raised = [each.logit for each in written if each.direction == "raises"]
    np.testing.assert_allclose(raised, total.sort(descending=True).values[:20], atol=1e-4)
    lowered = [each.logit for each in written if each.direction == "lowers"]
    np.testing.assert_allclose(lowered, total.sort().values[:20], atol=1e-4)


def test_any_size_of_a_batch_gives_the_same_records(
    cases: Callable[[str], tuple], tmp_path: Path
) -> None:
    model, run = cases("causal")
    hs.study("luger2026", model, corpus(), tmp_path, seed=3, batch_tokens=24, **OPTIONS)
    again = read_finished(tmp_path)
    for name in ("example_input", "sample_input", "sample_position", "top_token_count"):
        xr.testing.assert_equal(again.data[name].drop_attrs(), run.data[name].drop_attrs())
    assert again.records.points(1, 1) == run.records.points(1, 1)
    theirs, ours = again.records.top_tokens(1, 1), run.records.top_tokens(1, 1)
    assert [each.share for each in theirs] == pytest.approx([e.share for e in ours], rel=1e-5)


def test_damaged_records_are_written_again(
    cases: Callable[[str], tuple], caplog: pytest.LogCaptureFixture
) -> None:
    model, run = cases("bidirectional")
    before = {name: (run.path / name).read_bytes() for name in (TOP_TOKENS, MAPS, EXAMPLES, WRITES)}
    (run.path / MAPS).write_bytes(b"rot")
    (run.path / WRITES).unlink()
    hs.study("luger2026", model, corpus(), run.path, seed=3, **OPTIONS)
    assert "written again" in caplog.text
    assert read_finished(run.path).notes == ()
    for name, content in before.items():
        assert (run.path / name).read_bytes() == content


def test_a_run_without_records_says_so(tmp_path: Path) -> None:
    model = MODELS["causal"]()
    result = hs.study("luger2026", model, corpus(), tmp_path, records=False, **OPTIONS)
    assert "left out as asked" in result.attrs["left_out"] and "example_input" not in result
    assert read_finished(tmp_path).records.files == ()
    few = hs.study("luger2026", model, corpus(), tmp_path / "few", **{**OPTIONS, "points": 0})
    assert "clusters" not in few
    assert MAPS not in read_finished(tmp_path / "few").records.files
