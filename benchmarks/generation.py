"""Time per generated token against the length of the prefix, traced and untraced.

python -m benchmarks.generation        a random Llama of eight layers, one thread

Every token is traced in all layers and heads, by one pass when the last token is written.
"""

import argparse
import time
from importlib.resources import files

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from headscope.model.model import Model

WORD = " cat"  # one token of mini-gpt2


def llama(layers: int, width: int, longest: int) -> Model:
    tokenizer = AutoTokenizer.from_pretrained(
        str(files("headscope") / "model" / "bundled" / "mini-gpt2")
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        max_position_embeddings=longest,
        eos_token_id=None,
        bos_token_id=None,
    )
    return Model(LlamaForCausalLM(config), tokenizer, name="random llama")


def seconds(model: Model, prefix: int, tokens: int) -> tuple[float, float]:
    """Until the first token was written, and until all of them were traced, after it."""
    moments: list[float] = []
    start = time.perf_counter()
    model.trace(
        WORD * prefix, generate=tokens + 1, progress=lambda _: moments.append(time.perf_counter())
    )
    return moments[0] - start, time.perf_counter() - moments[0]


def plain_seconds(model: Model, prefix: int, tokens: int) -> float:
    """The same tokens by transformers' own loop, in its fastest attention, without a trace."""
    ids = torch.tensor([model.encode(WORD * prefix).ids])
    network = model.network
    network.set_attn_implementation("sdpa")
    taken: list[float] = []
    for count in (1, tokens + 1):
        start = time.perf_counter()
        network.generate(  # pyright: ignore[reportCallIssue]
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=count
        )
        taken.append(time.perf_counter() - start)
    return (taken[1] - taken[0]) / tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefixes", type=int, nargs="+", default=[64, 256, 1024, 2048])
    parser.add_argument("--tokens", type=int, default=12)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = llama(options.layers, options.width, max(options.prefixes) + options.tokens + 8)
    model.trace(WORD * 8, generate=2)  # tries the cache
    print("| tokens before | prompt, s | written and traced, s | only written, s |")
    print("|---|---|---|---|")
    for prefix in options.prefixes:
        first, traced = seconds(model, prefix, options.tokens)
        plain = options.tokens * plain_seconds(model, prefix, options.tokens)
        print(f"| {prefix:,} | {first:.2f} | {traced:.2f} | {plain:.2f} |")


if __name__ == "__main__":
    main()
