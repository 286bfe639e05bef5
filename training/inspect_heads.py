"""Print what the model cards state: held-out losses and what the heads of both models do.

Measured in float32 on held-out text, with the weights that `transformers` itself returns, so the
numbers do not depend on Headscope. A share is the mean weight that a head gives to some token.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import train_mini_bert
import train_mini_gpt2
from corpus import encode, read_documents, split_documents
from tokenizers import Tokenizer
from torch import Generator, Tensor
from transformers import AutoModelForMaskedLM, GPT2LMHeadModel, PreTrainedModel

BUNDLED = Path(__file__).parent.parent / "src" / "headscope" / "model" / "bundled"
INPUTS = 128
LENGTH = 128
SEED = 1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Share = Callable[[Tensor, Tensor], Tensor]  # (tokens, weights) -> (input, head)


def inspect_gpt2(directory: Path, documents: list[str]) -> None:
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    model = GPT2LMHeadModel.from_pretrained(directory, dtype=torch.float32).to(DEVICE)  # pyright: ignore[reportArgumentType]
    stream = train_mini_gpt2.read_stream(tokenizer, documents).to(DEVICE)
    print(f"mini-gpt2: {model.num_parameters():,} parameters")
    print(f"held-out loss {train_mini_gpt2.held_out_loss(model, stream):.4f} nats/token")

    openings = paragraph_openings(tokenizer, documents)
    print(f"\n{len(openings)} held-out paragraphs, their first {LENGTH} tokens")
    print_table("previous token", measure(model, previous_share, openings))
    print_table("first token", measure(model, first_share, openings))
    repeated = repeated_tokens(model.config.vocab_size)
    print(f"\n{len(repeated)} sequences of {LENGTH // 2} random tokens, each given twice")
    print_table("induction", measure(model, induction_share, repeated))


def inspect_bert(directory: Path, documents: list[str]) -> None:
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    model = AutoModelForMaskedLM.from_pretrained(directory, dtype=torch.float32).to(DEVICE)
    passages = train_mini_bert.read_passages(tokenizer, documents)
    print(f"mini-bert: {model.num_parameters():,} parameters")
    for length in (train_mini_bert.SHORT, train_mini_bert.LONG):
        loss = train_mini_bert.held_out_loss(model, passages, length)
        print(f"held-out loss {loss:.4f} nats/masked token, inputs of {length} tokens")

    tokens, segments = passage_pairs(passages)
    print(f"\n{len(tokens)} held-out pairs of consecutive passages, {LENGTH} tokens, none masked")
    print_table("previous token", measure(model, previous_share, tokens, segments))
    print_table("next token", measure(model, next_share, tokens, segments))
    print_table("[CLS]", measure(model, first_share, tokens, segments))
    print_table("[SEP]", measure(model, separator_share, tokens, segments))


def paragraph_openings(tokenizer: Tokenizer, documents: list[str]) -> Tensor:
    paragraphs = [line for document in documents for line in document.split("\n")]
    long = [ids[:LENGTH] for ids in encode(tokenizer, paragraphs) if len(ids) >= LENGTH]
    return torch.from_numpy(np.stack(long[:INPUTS]))  # (input, position)


def repeated_tokens(vocabulary: int) -> Tensor:
    """Random tokens other than <|endoftext|>, which is token 0."""
    generator = Generator().manual_seed(SEED)
    half = torch.randint(1, vocabulary, (INPUTS, LENGTH // 2), generator=generator)
    return torch.cat([half, half], dim=1)


def passage_pairs(passages: train_mini_bert.Passages) -> tuple[Tensor, Tensor]:
    """Inputs [CLS] A [SEP] B [SEP] as in training, with every masked token put back."""
    windows = train_mini_bert.cut_windows(passages, LENGTH)
    generator = Generator().manual_seed(SEED)
    batch = train_mini_bert.draw_batch(passages, windows, INPUTS, generator)
    return batch.tokens.scatter(1, batch.masked, batch.answers), batch.segments


def previous_share(tokens: Tensor, weights: Tensor) -> Tensor:
    return weights.diagonal(-1, dim1=2, dim2=3).mean(-1)


def next_share(tokens: Tensor, weights: Tensor) -> Tensor:
    return weights.diagonal(1, dim1=2, dim2=3).mean(-1)


def first_share(tokens: Tensor, weights: Tensor) -> Tensor:
    """Without the first query: in a causal model it has nothing else to look at."""
    return weights[:, :, 1:, 0].mean(-1)


def separator_share(tokens: Tensor, weights: Tensor) -> Tensor:
    """Both separators together."""
    separators = (tokens == train_mini_bert.SEP).to(weights.dtype)
    return torch.einsum("ihqk,ik->ihq", weights, separators).mean(-1)


def induction_share(tokens: Tensor, weights: Tensor) -> Tensor:
    """From a token's second occurrence to the token after its first (Olsson et al. 2022)."""
    period = tokens.shape[1] // 2
    return weights.diagonal(1 - period, dim1=2, dim2=3)[..., 1:].mean(-1)


@torch.no_grad()
def measure(
    model: PreTrainedModel, share: Share, tokens: Tensor, segments: Tensor | None = None
) -> Tensor:
    """The mean of a share over all inputs, (layer, head)."""
    model.eval()
    model.set_attn_implementation("eager")
    segments = torch.zeros_like(tokens) if segments is None else segments
    tokens, segments = tokens.to(DEVICE), segments.to(DEVICE)
    shape = model.config.num_hidden_layers, model.config.num_attention_heads
    total = torch.zeros(shape, device=DEVICE)
    for ids, kinds in zip(tokens.split(16), segments.split(16), strict=True):
        kind_of = {"token_type_ids": kinds} if model.config.model_type == "bert" else {}
        weights = model(ids, **kind_of, output_attentions=True).attentions
        total += torch.stack([share(ids, layer).sum(0) for layer in weights])
    return total.cpu() / len(tokens)


def print_table(name: str, shares: Tensor) -> None:
    layer, head = divmod(int(shares.argmax()), shares.shape[1])
    print(f"{name}: best head L{layer}H{head} {shares.max():.3f}, mean {shares.mean():.3f}")
    for index, row in enumerate(shares):
        print(f"  layer {index}  {row.mean():.3f}  |  {'  '.join(f'{x:.2f}' for x in row)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="pretrain.txt.xz")
    parser.add_argument("--models", type=Path, default=BUNDLED)
    options = parser.parse_args()

    documents = split_documents(read_documents(options.text)).held_out
    inspect_gpt2(options.models / "mini-gpt2", documents)
    print()
    inspect_bert(options.models / "mini-bert", documents)


if __name__ == "__main__":
    main()
