"""Networks on a GPU and elsewhere at once, held against the same network on the CPU.

python -m tests.tools.check_devices        needs a GPU and accelerate
"""

import tempfile
import time
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from headscope.errors import ModelError
from headscope.model.loading.load import load
from headscope.model.model import Model
from tests.contracts.family import IDS, tokenizer
from tests.references.tiny_families import family, tiny

TEXT = "Birds sing."
PARTS = ("embed_tokens", "rotary_emb", "norm")


def places(first: str | int, second: str | int) -> dict[str, str | int]:
    """The first layer and all around the layers on one device, the second layer on another."""
    around = {f"model.{part}": first for part in PARTS}
    return {**around, "lm_head": first, "model.layers.0": first, "model.layers.1": second}


def check_places(folder: Path) -> None:
    own = tiny("Llama").trace(TEXT, generate=4)
    gpu = load(folder, device="cuda").trace(TEXT, generate=4)
    for first, second in ((0, "cpu"), (0, "disk"), ("cpu", "disk"), (0, 0)):
        model = load(folder, device_map=places(first, second))
        trace = model.trace(TEXT, generate=4)
        alike = own if first == "cpu" else gpu
        same = [torch.equal(trace.weights[n], alike.weights[n]) for n in own.layers]
        norms, whole = trace.default.value_norms, alike.default.value_norms
        assert norms is not None and whole is not None
        same += [torch.equal(norms[n], whole[n]) for n in own.layers]
        far = max(float((trace.weights[n] - own.weights[n]).abs().max()) for n in own.layers)
        print(
            f"{first} and {second}: bit for bit {all(same)}, from the CPU {far:.1e}", *model.remarks
        )
        assert all(same) and far < 1e-5


def check_two_devices(folder: Path) -> None:
    """A layer that runs on the CPU between others on the GPU, seen where the inputs are."""
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module

    network = load(folder, device="cuda").network
    layer = network.get_submodule("model.layers.1").to("cpu")
    add_hook_to_module(layer, AlignDevicesHook("cpu", io_same_device=True))
    model, own = Model(network, tokenizer()), tiny("Llama").trace(TEXT)
    print("modes", model.modes.deferred)
    batch = model.batch([model.encode(TEXT)])
    seen: list[torch.Tensor] = []
    model.forward(batch, lambda layer: seen.append(layer.weights))
    rows: list[torch.Tensor] = []
    model.forward(batch, lambda part: rows.append(part.weights), block=4)
    fused: list[torch.Tensor] = []

    def keep(plain: object) -> None:
        texts = getattr(plain, "texts", None)
        if texts is not None:
            fused.append(texts[0].weights(0, texts[0].query.shape[1]))

    model.forward_fused(batch, keep)
    stitched = torch.cat(rows[len(rows) // 2 :], 2)
    for name, found in (("dense", seen[1]), ("rows", stitched), ("fused", fused[-1][None])):
        gap = float((found[0].cpu() - own.weights[1]).abs().max())
        print(f"a layer on the CPU, {name}: on {found.device}, off by {gap:.1e}")
        assert found.device.type == "cuda" and gap < 1e-5


def check_memory() -> None:
    config = LlamaConfig(**{**IDS, "vocab_size": 300}, hidden_size=512, num_hidden_layers=2,
                         num_attention_heads=8, num_key_value_heads=8, intermediate_size=512,
                         max_position_embeddings=2**17)  # fmt: skip
    model = Model(LlamaForCausalLM(config).to("cuda"), tokenizer(), name="long")  # pyright: ignore[reportArgumentType]
    hog = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.97) // 4, device="cuda")
    try:
        model.trace("x" * 40_000, layers=[0], heads=[0])
    except ModelError as error:
        print("refused:", error)
    del hog


def check_speed() -> None:
    """Time per token with layers as wide as those of an 8B Llama, traced."""
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=4096,
        num_hidden_layers=8,
        num_attention_heads=32,
        num_key_value_heads=8,
        intermediate_size=14336,
        max_position_embeddings=16384,
        eos_token_id=None,
    )
    network = LlamaForCausalLM(config).to("cuda", torch.bfloat16)  # pyright: ignore[reportArgumentType]
    model = Model(network, tokenizer(), name="wide")
    moments: list[float] = []
    for prefix in (512, 2048, 8192):
        moments.clear()
        text = "x" * prefix
        model.trace(
            text,
            layers=[3],
            generate=33,
            progress=lambda _: moments.append(time.perf_counter()),
        )
        each = (moments[-1] - moments[1]) / 31
        print(f"{prefix} tokens before: {1e3 * each:.1f} ms a token")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        family("Llama").network().save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        check_places(folder)
        check_two_devices(folder)
    check_memory()
    check_speed()


if __name__ == "__main__":
    main()
