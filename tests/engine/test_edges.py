"""What the strongest edges of examples add, held against a plain reading of the network."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Model

import headscope as hs
from headscope.engine import second_pass
from headscope.engine.edges import EDGES, TOKENS, strongest
from headscope.engine.setup import Setup
from headscope.model.inputs.tokens import display
from headscope.model.model import Model
from headscope.results.dataset import left_out
from headscope.results.records import EDGES as FILE
from headscope.results.records import WrittenEdge
from headscope.results.run import Run, read_finished
from headscope.studies.luger2026.inputs import inputs_again
from headscope.text.corpus import Corpus
from tests.engine.tiny import MODELS, causal_model, make_sentences

OPTIONS: dict[str, Any] = {
    "context": 12,
    "points": 0,
    "depths": [],
    "repeated_sequences": 2,
    "period": 4,
}
LAYER, HEAD = 1, 1


def corpus() -> Corpus:
    return Corpus.from_sentences(make_sentences(30))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Model, Run]]:
    """The models and their finished runs, each made once."""

    @cache
    def case(kind: str) -> tuple[Model, Run]:
        model, out = MODELS[kind](), tmp_path_factory.mktemp("run")
        hs.study("luger2026", model, corpus(), out, seed=3, **OPTIONS)
        return model, read_finished(out)

    return case


def ids_of(model: Model, number: int) -> list[int]:
    setup = Setup(model, corpus(), {**OPTIONS, "rest": False}, {}, 1024, 3)
    (example,) = inputs_again(setup, [number]).examples
    return list(example.encoded.ids)


def seen_by(modules: dict[str, nn.Module], run: Callable[[], Any]) -> dict[str, tuple[Any, Any]]:
    """What some modules were given and gave."""
    seen: dict[str, tuple[Any, Any]] = {}
    handles = [
        module.register_forward_hook(
            lambda _, given, gave, name=name: seen.update({name: (given, gave)})
        )
        for name, module in modules.items()
    ]
    run()
    for handle in handles:
        handle.remove()
    return seen


def gpt2_edge(network: Any, ids: list[int], query: int, key: int) -> Tensor:
    """Logits of one edge of GPT-2, number by number from its matrices."""
    block = network.transformer.h[LAYER].attn
    modules = {"made": block.c_attn, "norm": network.transformer.ln_f}
    answers: list[Any] = []
    seen = seen_by(modules, lambda: answers.append(forward(network, ids)))
    weight = answers[0].attentions[LAYER][0, HEAD, query, key].item()
    width = block.embed_dim
    size = width // block.num_heads
    value = seen["made"][1][0, key, 2 * width :][HEAD * size : (HEAD + 1) * size]
    written = [
        sum(weight * value[d].item() * matrix[d].item() for d in range(size))
        for matrix in block.c_proj.weight[HEAD * size : (HEAD + 1) * size].T
    ]
    residual = seen["norm"][0][0][0, query].tolist()
    mean = sum(residual) / width
    norm = network.transformer.ln_f
    spread = (sum((each - mean) ** 2 for each in residual) / width + norm.eps) ** 0.5
    middle = sum(written) / width
    read = [norm.weight[d].item() * (written[d] - middle) / spread for d in range(width)]
    matrix = network.lm_head.weight.tolist()
    return torch.tensor([sum(a * b for a, b in zip(row, read, strict=True)) for row in matrix])


def bert_edge(network: Any, ids: list[int], query: int, key: int) -> Tensor:
    """Logits of one edge of BERT: how they grow as the last state moves along what is written."""
    attention = network.bert.encoder.layer[LAYER].attention
    modules = {"value": attention.self.value, "head": network.cls}
    answers: list[Any] = []
    seen = seen_by(modules, lambda: answers.append(forward(network, ids)))
    weight = answers[0].attentions[LAYER][0, HEAD, query, key].item()
    size = attention.self.attention_head_size
    part = slice(HEAD * size, (HEAD + 1) * size)
    value = seen["value"][1][0, key, part].double()
    written = weight * attention.output.dense.weight.double()[:, part] @ value
    state, step = seen["head"][0][0][0, query].double(), 1e-5
    network.double()
    with torch.no_grad():
        up, down = (network.cls(state + sign * step * written) for sign in (1, -1))
    network.float()
    return ((up - down) / (2 * step)).float()


def forward(network: Any, ids: list[int]) -> Any:
    network.eval().set_attn_implementation("eager")
    with torch.no_grad():
        return network(torch.tensor([ids]), output_attentions=True)


READ = {"causal": gpt2_edge, "bidirectional": bert_edge}


@pytest.mark.parametrize("kind", MODELS)
def test_an_edge_adds_what_a_plain_reading_of_the_network_gives(
    kind: str, cases: Callable[[str], tuple[Model, Run]]
) -> None:
    model, run = cases(kind)
    shown = display(model.tokenizer, range(len(model.tokenizer)))
    for edge in run.records.edges(LAYER, HEAD)[::7]:
        ids = ids_of(model, edge.input)
        logits = READ[kind](model.network, ids, edge.query, edge.key)[: len(shown)]
        for direction, sign in (("raises", -1), ("lowers", 1)):
            order = sorted(range(len(shown)), key=lambda token: sign * logits[token].item())
            wanted = [logits[token].item() for token in order[:TOKENS]]
            assert getattr(edge, f"{direction}_logit") == pytest.approx(wanted, rel=1e-6, abs=1e-5)
            assert getattr(edge, direction) == tuple(shown[token] for token in order[:TOKENS])
        check_predicted(model, edge, ids, logits, shown)


def check_predicted(
    model: Model, edge: WrittenEdge, ids: list[int], logits: Tensor, shown: tuple[str, ...]
) -> None:
    place = edge.query + int(model.is_causal)
    if place == len(ids):
        assert edge.token is None and edge.logit is None
    else:
        assert edge.token == shown[ids[place]]
        assert edge.logit == pytest.approx(logits[ids[place]].item(), rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_the_edges_are_the_strongest_of_every_example(
    kind: str, cases: Callable[[str], tuple[Model, Run]]
) -> None:
    _, run = cases(kind)
    for head in range(2):
        edges = run.records.edges(LAYER, head)
        examples = {one.input: one for one in run.records.examples(LAYER, head)}
        assert sorted({edge.input for edge in edges}) == sorted(examples)
        for number, example in examples.items():
            best: dict[int, tuple[float, int]] = {}
            for query, key, weight in zip(example.query, example.key, example.weight, strict=True):
                if query > 0 and key > 0:
                    best[query] = max(best.get(query, (0.0, 0)), (weight, key))
            wanted = sorted(((w, q, k) for q, (w, k) in best.items()), reverse=True)[:EDGES]
            own = [(e.weight, e.query, e.key) for e in edges if e.input == number]
            assert own == wanted
            assert own[0][0] == pytest.approx(example.peak, rel=1e-5)


def test_blocks_of_rows_give_the_same_edges(
    cases: Callable[[str], tuple[Model, Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, run = cases("causal")
    monkeypatch.setattr(second_pass, "DENSE_TOKENS", 4)
    monkeypatch.setattr(second_pass, "block_rows", lambda *_: 5)
    hs.study("luger2026", model, corpus(), tmp_path, seed=3, **OPTIONS)
    ours, theirs = run.records.edges(0, 1), read_finished(tmp_path).records.edges(0, 1)
    assert [(e.input, e.query, e.key) for e in ours] == [(e.input, e.query, e.key) for e in theirs]
    for own, other in zip(ours, theirs, strict=True):
        assert own.raises_logit == pytest.approx(other.raises_logit, rel=1e-6, abs=1e-5)


def test_one_edge_of_each_row_and_none_of_the_first_token() -> None:
    kept = np.array(
        [[0, 1, 1, 1, 2, 2, 3], [0, 0, 1, 2, 1, 2, 3], [1, 0.9, 0.5, 0.6, 0.7, 0.8, 0.1]]
    )
    assert list(strongest(kept, 2)) == [(2, 2, 0.8), (1, 2, 0.6)]
    assert list(strongest(np.zeros((3, 0)))) == []


def test_without_an_unembedding_the_reason_is_said(tmp_path: Path) -> None:
    whole = causal_model()
    model = Model(GPT2Model(whole.network.config), whole.tokenizer, name="headless")
    result = hs.study("luger2026", model, corpus(), tmp_path, seed=3, **OPTIONS)
    assert "no unembedding" in left_out(result)[FILE]
    records = read_finished(tmp_path).records
    assert FILE not in records.files and records.edges(0, 0) == ()
