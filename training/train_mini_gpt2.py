"""Train mini-gpt2: a GPT-2 of 8 layers × 8 heads that reads 512 tokens, on one GPU in minutes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from corpus import describe, encode, read_documents, split_documents
from optimizer import Optimizer, learning_rate
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AttentionInterface, GPT2Config, GPT2LMHeadModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

BUNDLED = Path(__file__).parent.parent / "src" / "headscope" / "model" / "bundled" / "mini-gpt2"
CONTEXT = 512
BATCH = 128  # windows of CONTEXT tokens: 65,536 tokens a step
REPEATED = 4  # windows of a batch in which a passage is repeated
STEPS = 5800
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.7
DROPOUT = 0.1
REPORT_EVERY = 1000
SEED = 1

# Causal attention needs no mask tensor. Under torch.compile transformers makes one all the same,
# which rules out the fast kernel; an attention under a name it has no mask for is given none.
AttentionInterface.register("sdpa_without_mask", sdpa_attention_forward)


def read_stream(tokenizer: Tokenizer, documents: list[str]) -> Tensor:
    """All documents as one run of token ids, <|endoftext|> before each."""
    separator = np.array([tokenizer.token_to_id("<|endoftext|>")])
    pieces = [piece for ids in encode(tokenizer, documents) for piece in (separator, ids)]
    return torch.from_numpy(np.concatenate(pieces))


def batches(stream: Tensor, size: int, repeated: int) -> Iterator[Tensor]:
    """Windows of CONTEXT + 1 tokens without end; each pass cuts the stream at other places.

    In the first `repeated` windows of a batch a passage is said again and again, to give induction
    heads (Olsson et al. 2022) something to do.
    """
    generator = torch.Generator().manual_seed(SEED)
    position = torch.arange(CONTEXT + 1, device=stream.device)
    while True:
        phase = int(torch.randint(CONTEXT, (), generator=generator))
        windows = stream[phase:].unfold(0, CONTEXT + 1, CONTEXT)  # (window, CONTEXT + 1)
        order = torch.randperm(len(windows), generator=generator).to(stream.device)
        for rows in order.split(size):
            if len(rows) == size:
                batch = windows[rows]
                period = int(torch.randint(32, CONTEXT // 2, (), generator=generator))
                batch[:repeated] = batch[:repeated, position % period]
                yield batch


def new_model(tokenizer: Tokenizer, dropout: float) -> GPT2LMHeadModel:
    end_of_text = tokenizer.token_to_id("<|endoftext|>")
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(),
        n_positions=CONTEXT,
        n_embd=256,
        n_layer=8,
        n_head=8,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=0.0,
        bos_token_id=end_of_text,
        eos_token_id=end_of_text,
    )
    return GPT2LMHeadModel._from_config(config, attn_implementation="sdpa_without_mask")


def loss(model: GPT2LMHeadModel, windows: Tensor) -> Tensor:
    """Mean negative log-likelihood, in nats, of every token given those before it in its window."""
    hidden = model.transformer(windows[:, :-1], use_cache=False).last_hidden_state
    logits = model.lm_head(hidden)
    return F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def held_out_loss(model: GPT2LMHeadModel, stream: Tensor) -> float:
    """Loss over a stream cut into windows one after the other, in nats per token."""
    model.eval()
    windows = stream.unfold(0, CONTEXT + 1, CONTEXT)
    total = sum(float(loss(model, part)) * len(part) for part in windows.split(32))
    model.train()
    return total / len(windows)


def train(
    model: GPT2LMHeadModel, training: Tensor, held_out: Tensor, options: argparse.Namespace
) -> None:
    """Train in place, printing both losses; at the end the weights are rounded to float16."""
    optimizer = Optimizer(model, inside="transformer.h.", decay=options.weight_decay)
    compiled_loss = torch.compile(loss, dynamic=False, disable=not training.is_cuda)
    source = batches(training, options.batch, options.repeated)
    recent = torch.zeros((), device=training.device)
    started = time.monotonic()
    for step in range(options.steps):
        value = compiled_loss(model, next(source))
        value.backward()
        optimizer.step(learning_rate(step, options.steps, peak=options.learning_rate))
        recent += value.detach()
        if (step + 1) % REPORT_EVERY == 0 or step + 1 == options.steps:
            mean = float(recent) / (step % REPORT_EVERY + 1)
            print(
                f"step {step + 1:6d}  {time.monotonic() - started:5.0f} s  training {mean:.4f}  "
                f"held-out {held_out_loss(model, held_out):.4f}",
                flush=True,
            )
            recent.zero_()
    optimizer.finish(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="pretrain.txt.xz")
    parser.add_argument("--out", type=Path, default=BUNDLED, help="holds the tokenizer already")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--repeated", type=int, default=REPEATED)
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    parser.add_argument("--weight-decay", type=float, default=WEIGHT_DECAY)
    parser.add_argument("--dropout", type=float, default=DROPOUT)
    options = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(describe(options), flush=True)
    tokenizer = Tokenizer.from_file(str(options.out / "tokenizer.json"))
    split = split_documents(read_documents(options.text))
    training = read_stream(tokenizer, split.training).to(device)
    held_out = read_stream(tokenizer, split.held_out).to(device)
    print(f"{len(training):,} training tokens, {len(held_out):,} held-out tokens", flush=True)

    torch.manual_seed(SEED)
    model = new_model(tokenizer, options.dropout).to(device)  # pyright: ignore[reportArgumentType]
    train(model, training, held_out, options)
    print(f"final held-out loss {held_out_loss(model, held_out):.4f} nats/token")
    print(f"the same on training text {held_out_loss(model, training[: len(held_out)]):.4f}")
    model.half().save_pretrained(options.out)


if __name__ == "__main__":
    main()
