"""Model directories from strangers: refused in a sentence before anything is opened."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from headscope.errors import ModelError
from headscope.model.inputs import chat
from headscope.model.loading.load import load
from headscope.model.model import Model
from tests.contracts.family import tokenizer
from tests.references.chats import STYLES, chat_model
from tests.references.tiny_families import family

INDEX = "model.safetensors.index.json"


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    path = tmp_path / "bert"
    family("BERT").network().save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as error:
        load(path)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize(
    "file",
    [
        "pytorch_model.bin",
        "../stranger/model.safetensors",
        "/tmp/model.safetensors",
        "sub/model.safetensors",
        "..safetensors",
        ".hidden.safetensors",
        "model.safetensors.bin",
        "model.safetensors\x00.bin",
        7,
        None,
    ],
)
def test_an_index_may_name_only_safetensors_beside_it(
    bert: Path, tmp_path: Path, file: object
) -> None:
    mark = tmp_path / "ran"
    (bert / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(mark)))
    (bert / INDEX).write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": file}}))
    assert "no .safetensors file beside it" in refusal(bert)
    assert not mark.exists()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"weight_map": 1}', '{"weight_map": []}', "[" * 100_000, "\udcff"]
)
def test_an_index_that_is_none_is_said(bert: Path, content: str) -> None:
    (bert / INDEX).write_text(content, errors="surrogateescape")
    assert f"The {INDEX} of {bert} cannot be read" in refusal(bert)


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 10**7},
        {"num_hidden_layers": 1e7},
        {"num_attention_heads": 10**9},
        {"text_config": {"num_hidden_layers": 10**7}},
        {"parts": [{"decoder_layers": 10**7}]},
    ],
)
def test_more_layers_than_any_network_has_are_refused_before_they_are_built(
    bert: Path, change: dict[str, Any]
) -> None:
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps(config | change))
    assert "the most is 2,000" in refusal(bert)


def spoil_tokenizer(path: Path, charsmap: str) -> None:
    file = path / "tokenizer.json"
    known = json.loads(file.read_text())
    known["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    file.write_text(json.dumps(known))


def test_a_tokenizer_that_panics_when_it_is_loaded_is_a_sentence(bert: Path) -> None:
    spoil_tokenizer(bert, "AAAA")
    assert "no tokenizer that can be loaded" in refusal(bert)


def test_a_tokenizer_that_panics_on_a_text_is_a_sentence(bert: Path) -> None:
    spoil_tokenizer(bert, "BAAAAP////8=")
    model = load(bert)
    with pytest.raises(ModelError, match=r"The tokenizer \w+ fails on this text \(index out of"):
        model.encode("A cat.")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_vocabulary_smaller_than_the_probe_is_enough(size: int) -> None:
    config = GPT2Config(
        vocab_size=size, n_layer=2, n_head=2, n_embd=8, n_positions=16,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = Model(GPT2LMHeadModel(config), tokenizer(), name="small")
    assert (model.layers, model.heads, model.is_causal) == (2, 2, True)


def test_code_that_comes_with_a_model_is_not_run(bert: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (bert / "evil.py").write_text(
        f"from pathlib import Path\nPath({str(mark)!r}).touch()\n"
        "from transformers import BertConfig as Evil\n"
    )
    config = json.loads((bert / "config.json").read_text())
    strange = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil"}}
    (bert / "config.json").write_text(json.dumps(config | strange))
    assert "brings its own code" in refusal(bert)
    assert not mark.exists()


TEMPLATES = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "a product": "{{ 'A' * 10**10 }}",
    "a width": "{{ '%10000000000d' % 5 }}",
    "a format": "{{ '{:>10000000000}'.format('x') }}",
    "nonsense": "{{ lipsum(n=100000) }}",
    "many texts": "{% for a in range(99999) %}{{ 'A' * 1000 }}{% endfor %}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_chat_template_has_limits_of_time_memory_and_text(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "SECONDS", 2)
    model = chat_model(STYLES[0].family)
    template = TEMPLATES[name] + "{{ messages[0]['content'] }}"
    monkeypatch.setattr(model.tokenizer, "chat_template", template)  # others use it, too
    with pytest.raises(ModelError, match=r"chat template of .* (takes more than|writes|refuses)"):
        model.trace(messages=[{"role": "user", "content": "Hello"}])


def test_a_pipe_in_place_of_weights_is_not_waited_for(bert: Path) -> None:
    (bert / "model.safetensors").unlink()
    os.mkfifo(bert / "model.safetensors")
    assert "model.safetensors is not a file" in refusal(bert)


def test_a_normalizer_that_multiplies_a_text_is_refused(bert: Path) -> None:
    told = json.loads((bert / "tokenizer.json").read_text(encoding="utf-8"))
    double = {"type": "Replace", "pattern": {"Regex": "a"}, "content": "aa"}
    told["normalizer"] = {"type": "Sequence", "normalizers": [double] * 30}
    (bert / "tokenizer.json").write_text(json.dumps(told), encoding="utf-8")
    assert "up to 1.07e+09 times as long; the most is 256" in refusal(bert)
