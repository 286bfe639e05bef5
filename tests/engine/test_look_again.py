"""The second look at examples equals a plain reading of the same inputs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from headscope.engine import (
    Inputs,
    LookAgain,
    Setup,
    largest_of_rows,
    look_again,
    look_at,
    why_no_examples,
)
from headscope.head import Head
from headscope.metrics import Axis
from headscope.model.inputs.encode import encode
from headscope.model.model import Model
from headscope.observe import Example
from headscope.results.examples import counts_itself, distance_kind, exemplars_of
from headscope.results.records import (
    EXAMPLES,
    INPUTS,
    TOP_BAND,
    Records,
    records_of,
)
from headscope.text.corpus import Corpus
from tests.references import vig2019 as plain
from tests.references.random_attention import HEADS, LAYERS, make_batch, make_layer_of, random_input
from tests.references.tiny_models import MODELS, make_sentences

TAGS = ("ADJ", "DET", "NOUN", "PUNCT", "VERB")
RELATIONS = ("amod", "det", "nsubj", "obj", "punct", "root")
COUNT = 40


def read_again(setup: Setup, numbers: Sequence[int]) -> Inputs:
    """One input for each sentence, with the tag and the relation of the word of every token."""
    examples: list[Example] = []
    for number, sentence in zip(numbers, setup.corpus.select(numbers), strict=True):
        encoded = encode(setup.model.tokenizer, sentence.text, special=not setup.model.is_causal)
        tags, relations = [], []
        for (start, end), is_special in zip(encoded.offsets, encoded.special, strict=True):
            inside = [w for w in sentence.words if not is_special and w.start < end > start < w.end]
            tags.append(TAGS.index(inside[0].upos or "") if inside else -1)
            relations.append(RELATIONS.index(inside[0].deprel or "") if inside else -1)
        first = setup.model.is_causal
        null = [special or (first and place == 0) for place, special in enumerate(encoded.special)]
        labels = {"tag": tags, "deprel": relations}
        examples.append(Example(number, encoded, null, labels, sentence=sentence))
    return Inputs(examples)


def setup_of(kind: str, *, with_self: bool = False) -> Setup:
    corpus, labels = (
        Corpus.from_sentences(make_sentences(COUNT)),
        {"tag": TAGS, "deprel": RELATIONS},
    )
    return Setup(MODELS[kind](), corpus, {"self_exemplars": with_self}, labels, 64, 3)


def chosen(setup: Setup, seed: int = 0) -> xr.Dataset:
    """A result that names some inputs as examples of every head."""
    rng = np.random.default_rng(seed)
    grid, shape = setup.grid, (*setup.grid.shape, 1, 4)
    axes = Axis("band", (TOP_BAND,)), Axis("pick", range(4))
    inputs = np.stack([rng.permutation(COUNT)[:4] for _ in range(np.prod(shape[:2]))])
    inputs = inputs.reshape(shape)
    inputs[..., 3] = np.where(rng.random(shape[:-1]) < 0.5, -1, inputs[..., 3])
    peaks = np.where(inputs < 0, np.nan, rng.random(shape)).astype(np.float32)
    variables = {
        "example_input": grid.array(inputs, *axes), "example_peak": grid.array(peaks, *axes)
    }  # fmt: skip
    return xr.Dataset(variables, attrs={"options": '{"self_exemplars": false}'})


def look(stage: LookAgain, setup: Setup, result: xr.Dataset, folder: Path) -> Records:
    """Run the stage as the engine does, and read what it has written."""
    work = stage.work(setup, result, 1, folder)
    work.open()
    outcomes = {piece: work(piece) for piece in stage.pieces(setup, result)}
    finished = stage.finish(setup, result, outcomes, folder)
    stage.check_files(finished, folder)
    return records_of(finished, folder)


def weights_of(model: Model, example: Example) -> list[np.ndarray]:
    """The weights of every layer by the network itself."""
    with torch.no_grad():
        network = model.network.eval()
        network.set_attn_implementation("eager")
        ids = torch.tensor([example.tokens.ids])
        return [layer[0].numpy() for layer in network(ids, output_attentions=True).attentions]


@pytest.mark.parametrize("with_self", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_examples_have_the_largest_weights_of_their_rows_and_the_surest_pair(
    kind: str, with_self: bool, tmp_path: Path
) -> None:
    setup = setup_of(kind, with_self=with_self)
    result, stage = chosen(setup), LookAgain(read_again, lambda setup: with_self)
    records = look(stage, setup, result, tmp_path)
    assert set(records.files) == {EXAMPLES, INPUTS}
    seen = 0
    for layer in range(setup.grid.shape[0]):
        kept = records.examples(layer, 1)
        numbers = result["example_input"].values[layer, 1, 0]
        assert [example.input for example in kept] == numbers[numbers >= 0].tolist()
        for example in kept:
            (read,) = read_again(setup, [example.input]).examples
            weights = weights_of(setup.model, read)[layer][1]
            wanted, largest = {}, (0.0, -1, -1)
            for query, row in enumerate(weights.tolist()):
                best = sorted(range(len(row)), key=lambda key: -row[key])[:8]
                wanted |= {(query, key): row[key] for key in best if row[key] > 0.005}
                for key, weight in enumerate(row):
                    counts = not read.null[query] and not read.null[key]
                    if counts and (with_self or query != key) and weight > largest[0]:
                        largest = (weight, query, key)
            pairs = zip(example.query, example.key, strict=True)
            assert dict(zip(pairs, example.weight, strict=True)) == pytest.approx(wanted, abs=2e-6)
            if largest[1] >= 0:
                pair = example.attending, example.attended
                assert weights[pair] == pytest.approx(largest[0], abs=2e-6)
            seen += 1
    assert seen > 5


@pytest.mark.parametrize("kind", MODELS)
def test_inputs_are_kept_once_with_tokens_labels_and_where_they_are_from(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_again, "BLOCK", 7)  # several pieces
    setup = setup_of(kind)
    result = chosen(setup)
    records = look(LookAgain(read_again, lambda setup: False), setup, result, tmp_path)
    numbers = sorted({number for number in result["example_input"].values.ravel() if number >= 0})
    kept = records.inputs(numbers)
    sentences = list(setup.corpus)
    for number in numbers:
        (read,) = read_again(setup, [number]).examples
        assert kept[number].tokens == tuple(read.tokens.labels)
        assert kept[number].text == sentences[number].text and kept[number].start == 0
        assert (kept[number].document, kept[number].id) == (f"d{number // 10}", f"s{number}")
        assert kept[number].null == tuple(np.flatnonzero(read.null).tolist())
        tags = [TAGS[code] if code >= 0 else "" for code in read.labels["tag"]]
        relations = [RELATIONS[code] if code >= 0 else "" for code in read.labels["deprel"]]
        assert (list(kept[number].tags), list(kept[number].relations)) == (tags, relations)


def is_of(kind: str, tags: Sequence[str], relations: Sequence[str], query: int, key: int) -> bool:
    what, _, name = kind.partition(" ")
    if what == "tag":
        return tags[key] == name
    if what == "relation":
        return relations[key] == name
    return query != key and distance_kind(abs(query - key)) == kind


@pytest.mark.parametrize("kind", MODELS)
def test_pairs_of_a_kind_are_those_of_a_plain_search(kind: str, tmp_path: Path) -> None:
    setup = setup_of(kind)
    result = chosen(setup)
    records = look(LookAgain(read_again, lambda setup: False), setup, result, tmp_path)
    kinds = ["tag DET", "tag NOUN", "relation nsubj", "relation none", "distance 1", "distance 2–3"]
    count: Counter[str] = Counter()
    for pairs in kinds:
        for head in (Head(0, 0), Head(2, 1)):
            wanted = []
            for example in records.examples(*head):
                shown = records.inputs([example.input])[example.input]
                own = [
                    (-weight, query, key)
                    for query, key, weight in zip(
                        example.query, example.key, example.weight, strict=True
                    )
                    if query not in shown.null and key not in shown.null and query != key
                    if is_of(pairs, shown.tags, shown.relations, query, key)
                ]
                wanted += [(*min(own), example.input)] if own else []
            exemplars = exemplars_of(records, head, pairs)
            assert [(-e.weight, e.query, e.key, e.input.input) for e in exemplars] == sorted(
                wanted, key=lambda item: item[0]
            )[:3]
            count[pairs] += len(exemplars)
    assert count["tag DET"] and count["distance 1"] and not count["relation none"]
    assert not counts_itself(result)
    surest = exemplars_of(records, Head(1, 1))
    assert [(e.rank, e.weight, e.query, e.key) for e in surest] == [
        (example.rank, example.peak, example.attending, example.attended)
        for example in records.examples(1, 1)
    ]


@pytest.mark.parametrize("kind", LAYERS)
def test_the_surest_pair_is_the_first_of_the_largest_whatever_the_blocks(kind: str) -> None:
    for seed in range(8):
        rng, with_self = np.random.default_rng(seed), seed % 4 < 2
        inputs = [random_input(rng, seed % 2 == 0) for _ in range(4)]
        batch = make_batch(inputs)
        layer = make_layer_of(kind, inputs, batch)
        pairs = [(row, head) for row in (2, 0, 3) for head in range(HEADS)]
        places, sparse = look_at(layer, pairs, with_self=with_self)
        weights = torch.stack(
            [layer.text(row, 0, batch.mask.shape[1])[head] for row, head in pairs]
        )
        for number, (row, head) in enumerate(pairs):
            found = [p for p in plain.exemplars(inputs, head, with_self) if p[1] == row]
            if found and kind != "parts":  # where weights are rounded, others may be equal
                assert places[number].tolist() == list(found[0][2:])
            length = inputs[row].length
            one = largest_of_rows(weights[number : number + 1, :length, :length])
            torch.testing.assert_close(sparse[1:, sparse[0] == number], one[1:])


def test_the_first_peak_token_leaves_those_before_it_out() -> None:
    rng = np.random.default_rng(2)
    inputs = [random_input(rng, True) for _ in range(3)]
    inputs = [replace(each, null=[False] * each.length) for each in inputs]
    batch = replace(make_batch(inputs), first_peak_token=1)
    for kind in LAYERS:
        layer = make_layer_of(kind, inputs, batch)
        pairs = [(row, head) for row in range(3) for head in range(HEADS)]
        places, _ = look_at(layer, pairs, with_self=True)
        for (row, head), (query, key) in zip(pairs, places.tolist(), strict=True):
            weights = inputs[row].weights[0, head, 1:, 1:]
            if weights.size:
                assert weights[query - 1, key - 1] == pytest.approx(weights.max(), abs=2e-6)


def test_equal_weights_of_a_row_are_kept_up_to_the_bound() -> None:
    weights = torch.tensor([[[0.5, 0.3, 0.2], [0.004, 0.9, 0.05]]])
    example, query, key, weight = largest_of_rows(weights, count=2)
    assert example.tolist() == [0] * 4
    assert query.tolist() == [0, 0, 1, 1] and key.tolist() == [0, 1, 1, 2]
    assert weight.tolist() == pytest.approx([0.5, 0.3, 0.9, 0.05])


def test_a_study_without_examples_has_no_pieces_and_no_files(tmp_path: Path) -> None:
    stage, setup = LookAgain(read_again, lambda setup: False), setup_of("causal")
    assert stage.pieces(setup, xr.Dataset()) == ()
    assert stage.finish(setup, xr.Dataset(), {}, tmp_path).attrs == {}
    assert not list(tmp_path.iterdir())
    assert why_no_examples(setup) is None
    assert "do not fit" in (why_no_examples(replace(setup, options={"context": 70_000})) or "")


def test_a_kind_is_named_after_the_distance_it_holds() -> None:
    assert [distance_kind(tokens) for tokens in (0.2, 1, 2, 3.4, 4, 15, 16, 900)] == [
        "distance 1", "distance 1", "distance 2–3", "distance 2–3", "distance 4–7",
        "distance 8–15", "distance 16 or more", "distance 16 or more",
    ]  # fmt: skip
