"""Models load from a directory as they were saved; everything else is one plain sentence."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    BertModel,
)

import headscope as hs
from headscope.errors import CaptureError, ModelError
from headscope.model.loading import source
from headscope.model.loading.load import auto_class, load
from tests.contracts.families import REFUSED
from tests.contracts.family import tokenizer
from tests.references.tiny_families import family, save, tiny


def refusal(name: str | Path) -> str:
    with pytest.raises(ModelError) as error:
        load(name)
    return str(error.value)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return save("BERT", tmp_path / "bert")


@pytest.mark.parametrize(
    ("model_type", "architecture", "chosen"),
    [
        ("gpt2", "GPT2LMHeadModel", AutoModelForCausalLM),
        ("bert", "BertForMaskedLM", AutoModelForMaskedLM),
        ("bert", "BertModel", AutoModel),
        ("bert", "BertForSequenceClassification", AutoModel),
        ("bert", "BertLMHeadModel", AutoModelForCausalLM),
        ("t5", "T5ForConditionalGeneration", AutoModelForSeq2SeqLM),
        ("bart", "BartForConditionalGeneration", AutoModelForSeq2SeqLM),
        ("llama", "LlamaForCausalLM", AutoModelForCausalLM),
    ],
)
def test_the_class_follows_the_architecture(
    model_type: str, architecture: str, chosen: object
) -> None:
    assert auto_class(AutoConfig.for_model(model_type, architectures=[architecture])) is chosen


@pytest.mark.parametrize("name", ["BERT", "GPT-2", "T5"])
def test_a_saved_model_comes_back_the_same_and_in_silence(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = save(name, tmp_path)
    capfd.readouterr()
    model = load(directory)
    assert capfd.readouterr() == ("", "")
    original = tiny(name)
    assert type(model.network) is type(original.network)
    assert model.fingerprint == original.fingerprint
    assert not model.network.training
    assert torch.equal(model.trace("Birds.").weights[0], original.trace("Birds.").weights[0])


def test_an_encoder_without_a_head_loads(tmp_path: Path) -> None:
    BertModel(tiny("BERT").network.config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    assert hs.load(str(tmp_path)).layers == 2


def test_another_seed_has_another_fingerprint() -> None:
    other = type(tiny("BERT"))(family("BERT").network(seed=1), tokenizer())
    assert other.fingerprint != tiny("BERT").fingerprint


def test_half_precision_is_captured_within_its_rounding(bert: Path) -> None:
    model = load(bert, dtype="bfloat16")
    exact = load(bert).trace("Birds sing.").weights[0]
    assert model.network.dtype == torch.bfloat16
    torch.testing.assert_close(model.trace("Birds sing.").weights[0], exact, rtol=0, atol=0.02)


@pytest.mark.parametrize("name", ["./no/such", "/no/such", "~/no/such", "a/b/c"])
def test_a_missing_directory_is_named(name: str) -> None:
    with pytest.raises(ModelError, match=f"no model directory {name}"):
        load(name)


def test_a_hub_id_while_offline_says_so() -> None:
    with pytest.raises(ModelError, match=r"hub cannot be reached for nobody/nothing"):
        load("nobody/nothing")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (GatedRepoError, r"some/model is gated: accept its terms .* `hf auth login`\."),
        (RevisionNotFoundError, r"The hub has some/model, but not in the revision asked for\."),
        (RepositoryNotFoundError, r"There is no model some/model on the hub, .*; bundled are mini"),
        (HfHubHTTPError, "The hub cannot be reached for some/model, .*; connect, or give a dir"),
        (LocalEntryNotFoundError, "The hub cannot be reached for some/model"),
        (OfflineModeIsEnabled, "The hub cannot be reached for some/model"),
    ],
)
def test_what_the_hub_refuses_is_a_sentence(kind: type[Exception], sentence: str) -> None:
    error = OSError("We could not load it.")
    error.__cause__ = kind.__new__(kind)
    hub = source.Source("some/model", "some/model", hub=True)
    assert re.match(sentence, str(source.explain(error, hub, "configuration")))
    local = source.Source("some/model", "some/model")
    assert "cannot be loaded (We could not load it)" in str(source.explain(error, local, "weights"))


def test_a_file_is_not_a_model(bert: Path) -> None:
    with pytest.raises(ModelError, match="is a file, not a model"):
        load(bert / "config.json")


def test_a_directory_without_configuration_holds_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json"):
        load(tmp_path)


def test_pickled_weights_are_not_opened(bert: Path) -> None:
    (bert / "model.safetensors").rename(bert / "pytorch_model.bin")
    with pytest.raises(ModelError, match="only pickled weights"):
        load(bert)


def test_a_directory_without_weights_says_so(bert: Path) -> None:
    (bert / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no \.safetensors weights"):
        load(bert)


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        ("model.safetensors", "The weights of {} are damaged: download or export the model again."),
        ("config.json", "The configuration of {} is damaged: download or export the model again."),
    ],
)
def test_a_damaged_file_is_named(bert: Path, damaged: str, sentence: str) -> None:
    content = (bert / damaged).read_bytes()
    (bert / damaged).write_bytes(content[: len(content) // 2])
    assert refusal(bert) == sentence.format(bert)


def edit(bert: Path, **changes: object) -> None:
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps({**config, **changes}))


def test_weights_of_another_size_are_named(bert: Path) -> None:
    edit(bert, vocab_size=100)
    assert refusal(bert) == (
        f"The weights of {bert} do not fit its config.json: bert.embeddings.word_embeddings.weight "
        "is 300 × 32, but the configuration wants 100 × 32; download or export the model again."
    )


def test_a_type_that_transformers_does_not_know_is_named(bert: Path) -> None:
    edit(bert, model_type="nonsense")
    assert re.fullmatch(
        rf"{bert} is a nonsense model, which transformers [\d.]+ does not know; update "
        "transformers, or take a model of another type.",
        refusal(bert),
    )


@pytest.mark.parametrize(
    "changes", [{"intermediate_size": "x"}, {"num_attention_heads": 5}, {"hidden_act": "loud"}]
)
def test_words_of_other_libraries_are_whole_sentences(bert: Path, changes: dict) -> None:
    edit(bert, **changes)
    sentence = refusal(bert)
    assert sentence.endswith("): download or export the model again.")
    assert "\n" not in sentence and "above" not in sentence and len(sentence) < 500


def test_a_long_message_ends_with_a_word() -> None:
    error = ValueError("Look at the report above! " + "word " * 200)
    sentence = str(source.explain(error, source.Source("m", "m"), "weights"))
    assert sentence.startswith("The weights of m cannot be loaded (word word")
    assert "word …): download" in sentence and "above" not in sentence


@pytest.mark.parametrize("typo", ["mini-gtp2", "mini-gpt", "minigpt2"])
def test_a_name_that_is_nearly_right_gets_a_suggestion(typo: str) -> None:
    assert refusal(typo).endswith("; did you mean mini-gpt2?")


def test_a_directory_that_is_nearly_right_gets_a_suggestion(bert: Path) -> None:
    assert refusal(bert.parent / "brt").endswith(f"; did you mean {bert}?")


def test_an_empty_name_is_refused() -> None:
    assert refusal("").startswith("The name of the model is empty; give a directory")


@pytest.mark.parametrize(
    ("present", "missing"), [("gguf", "accelerate"), ("accelerate", "gguf"), ("", "gguf and")]
)
def test_a_gguf_file_names_what_must_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: str, missing: str
) -> None:
    (tmp_path / "model.gguf").touch()
    monkeypatch.setattr(source, "find_spec", lambda name: object() if name == present else None)
    sentence = refusal(tmp_path / "model.gguf")
    assert f"model.gguf needs {missing}" in sentence
    assert sentence.endswith("; install with `pip install 'headscope[gguf]'`.")


def test_missing_weights_are_not_replaced_by_random_ones(bert: Path) -> None:
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ModelError, match=r"lack \d+ tensors, .*layer\.2"):
        load(bert)


def test_a_missing_tokenizer_says_so(bert: Path) -> None:
    for file in bert.glob("*token*"):
        file.unlink()
    with pytest.raises(ModelError, match="no tokenizer"):
        load(bert)


@pytest.mark.parametrize("name", ["Mamba", "FNet", "Longformer"])
def test_a_saved_model_without_dense_attention_is_refused(name: str, tmp_path: Path) -> None:
    refused, reason = next(entry for entry in REFUSED if entry[0].name == name)
    refused.network().config.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(CaptureError, match=reason):
        load(tmp_path)


def test_code_from_elsewhere_runs_only_when_asked(bert: Path) -> None:
    config = json.loads((bert / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.MyConfig"}}
    (bert / "config.json").write_text(json.dumps(config))
    (bert / "mine.py").write_text("raise SystemExit('this must not run')")
    with pytest.raises(ModelError, match="brings its own code"):
        load(bert)


def test_unknown_dtypes_and_devices_are_named() -> None:
    with pytest.raises(ModelError, match=r"no dtype 'int3'; choose one of float32"):
        load("mini-bert", dtype="int3")
    with pytest.raises(ModelError, match="device 'toaster'"):
        load("mini-bert", device="toaster")


def test_a_network_needs_a_tokenizer() -> None:
    with pytest.raises(ModelError, match="tokenizer"):
        load(tiny("BERT").network)
    assert load(tiny("BERT").network, tokenizer=tokenizer()).layers == 2


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package directory whose bundled model may be broken."""
    monkeypatch.setattr(source, "files", lambda _: tmp_path)
    return save("BERT", tmp_path / "model" / "bundled" / "mini-bert")


def test_a_bundled_model_loads_by_its_name(installation: Path) -> None:
    assert load("mini-bert").name == "mini-bert"
    assert load("mini-bert").fingerprint == load(installation).fingerprint


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_bundled_file_is_a_broken_installation(installation: Path, missing: str) -> None:
    (installation / missing).unlink()
    with pytest.raises(ModelError, match=rf"lacks its {missing}: the installation is broken"):
        load("mini-bert")


@pytest.mark.parametrize("damaged", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_damaged_bundled_file_is_a_broken_installation(installation: Path, damaged: str) -> None:
    (installation / damaged).write_text("{")
    with pytest.raises(ModelError, match="installation is broken, repair it with"):
        load("mini-bert")


def test_a_missing_bundled_model_is_a_broken_installation(installation: Path) -> None:
    shutil.rmtree(installation)
    with pytest.raises(ModelError, match="installation is broken"):
        load("mini-bert")
