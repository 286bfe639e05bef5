"""Train mini-bert: a BERT of 8 layers × 8 heads on pairs of passages, on one GPU in minutes.

Two tasks at once, as in Devlin et al. 2019: predict masked tokens, and tell whether the second
passage follows the first. Only the masked-language model is kept; the second task is there so that
[CLS] and [SEP] have something to carry.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from corpus import describe, encode, read_documents, split_documents
from optimizer import Optimizer, learning_rate
from tokenizers import Tokenizer
from torch import Generator, Tensor
from transformers import AttentionInterface, BertConfig, BertForMaskedLM, BertForPreTraining
from transformers.integrations.sdpa_attention import sdpa_attention_forward

BUNDLED = Path(__file__).parent.parent / "src" / "headscope" / "model" / "bundled" / "mini-bert"
VOCABULARY = 8192
PAD, UNK, CLS, SEP, MASK = range(5)  # in the tokenizer's order
SHORT, LONG = 128, 512
LONG_EVERY = 4  # one step in four trains on long inputs
BATCH_TOKENS = 65_536  # a step
HELD_OUT_TOKENS, HELD_OUT_BATCH = 262_144, 16_384
MASKED_SHARE = 0.2  # in training; more to learn from per input than the usual 15 %
HELD_OUT_MASKED_SHARE = 0.15
STRANGER_SHARE = 0.125  # inputs whose second passage comes from elsewhere
STEPS = 13_000
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.5
DROPOUT = 0.0
REPORT_EVERY = 1000
SEED = 1
ABBREVIATION = r"(?<!\b[A-Z]\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bDr\.)(?<!\bSt\.)"
SENTENCE_END = re.compile(ABBREVIATION + r"""(?:(?<=[.!?])|(?<=[.!?]["')]))\s+""")

# No input is padded, so attention needs no mask tensor and may use the fastest kernel.
AttentionInterface.register("sdpa_without_mask", sdpa_attention_forward)


class Passages(NamedTuple):
    """Documents as one run of tokens; where their parts begin, with the end of the run as last."""

    tokens: Tensor
    sentences: Tensor
    paragraphs: Tensor
    documents: Tensor

    def to(self, device: str) -> Passages:
        return Passages(*(tensor.to(device) for tensor in self))


class Windows(NamedTuple):
    """Where inputs of one length can be cut from the passages without leaving a document."""

    starts: Tensor  # (window,)
    length: int  # tokens of text: [CLS] and two [SEP] come on top


class Batch(NamedTuple):
    tokens: Tensor  # (input, position), some masked
    segments: Tensor  # (input, position), 0 up to the first [SEP], then 1
    masked: Tensor  # (input, masked token): positions to predict
    answers: Tensor  # (input, masked token): the tokens that stood there
    strangers: Tensor  # (input,), 1 where the second passage does not follow the first


def read_passages(tokenizer: Tokenizer, documents: list[str]) -> Passages:
    sentences: list[str] = []
    first_of_paragraph: list[int] = []
    first_of_document: list[int] = []
    for document in documents:
        first_of_document.append(len(sentences))
        for paragraph in document.split("\n"):
            first_of_paragraph.append(len(sentences))
            sentences.extend(SENTENCE_END.split(paragraph))
    pieces = encode(tokenizer, sentences)
    begin = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    return Passages(
        tokens=torch.from_numpy(np.concatenate(pieces)),
        sentences=torch.from_numpy(begin),
        paragraphs=torch.from_numpy(begin[[*first_of_paragraph, -1]]),
        documents=torch.from_numpy(begin[[*first_of_document, -1]]),
    )


def cut_windows(passages: Passages, length: int) -> Windows:
    """Every window that begins where a sentence begins, and every one that ends where one ends.

    Inputs of one fixed length need no padding. The price is that a window breaks off inside a
    sentence at one end; with both kinds the model sees sentences begin at [CLS] and end at [SEP].
    """
    text = length - 3
    starts = torch.cat([passages.sentences, passages.sentences - text])
    document = torch.searchsorted(passages.documents, starts, right=True) - 1
    inside = (starts >= 0) & (starts + text < passages.documents[-1])
    starts, document = starts[inside], document[inside]
    return Windows(starts[starts + text <= passages.documents[document + 1]], text)


def draw_batch(
    passages: Passages,
    windows: Windows,
    size: int,
    random: Generator,
    *,
    masked_share: float = HELD_OUT_MASKED_SHARE,
    stranger_share: float = 0.0,
) -> Batch:
    """Windows drawn at random, each cut in two and its tokens masked.

    ::

        window        a a a a | b b b b b         cut where a paragraph or a sentence begins
        input   [CLS] a a a a [SEP] b b b b b [SEP]
        segment     0 0 0 0 0     0 1 1 1 1 1     1
    """
    device = random.device
    rows = torch.randint(len(windows.starts), (size,), generator=random, device=device)
    begin = windows.starts[rows]
    cut = _cut(passages, begin, windows.length, random)
    strangers = torch.rand(size, generator=random, device=device) < stranger_share
    second = torch.where(strangers, cut.roll(1), cut)  # a stranger is the neighbour's passage

    position = torch.arange(windows.length + 3, device=device)
    middle = (cut - begin + 1).unsqueeze(1)  # where the first [SEP] stands
    from_first = begin.unsqueeze(1) + position - 1
    from_second = second.unsqueeze(1) + position - middle - 1
    index = torch.where(position < middle, from_first, from_second)
    tokens = passages.tokens[index.clamp(0, len(passages.tokens) - 1)]  # (input, position)
    tokens[:, 0] = CLS
    tokens[:, -1] = SEP
    tokens.scatter_(1, middle, SEP)
    hidden, masked, answers = mask(tokens, masked_share, random)
    return Batch(hidden, (position > middle).long(), masked, answers, strangers.long())


def _cut(passages: Passages, begin: Tensor, length: int, random: Generator) -> Tensor:
    """Where the second passage begins: in the middle half of the window, at a paragraph if any."""
    low, high = begin + length // 4, begin + length - length // 4
    chance = torch.rand(len(begin), generator=random, device=random.device)
    wish = low + (chance * (length // 2)).long()
    cut = wish
    for starts in (passages.sentences, passages.paragraphs):  # the last that fits wins
        for target in (low, wish):
            found = starts[torch.searchsorted(starts, target)]
            cut = torch.where(found < high, found, cut)
    return cut


def mask(tokens: Tensor, share: float, random: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Choose a share of the tokens: 80 % become [MASK], 10 % a random token, 10 % stay.

    Every input has the same number of masked tokens, so the answers form a rectangle.
    """
    lottery = torch.rand(tokens.shape, generator=random, device=random.device)
    lottery[tokens <= MASK] = -1.0  # special tokens are never masked
    masked = lottery.topk(round(share * (tokens.shape[1] - 3))).indices
    answers = tokens.gather(1, masked)
    fate = torch.rand(answers.shape, generator=random, device=random.device)
    other = torch.randint(
        MASK + 1, VOCABULARY, answers.shape, generator=random, device=random.device
    )
    shown = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, other, answers))
    return tokens.scatter(1, masked, shown), masked, answers


def new_model(dropout: float) -> BertForPreTraining:
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        num_hidden_layers=8,
        num_attention_heads=8,
        intermediate_size=1024,
        max_position_embeddings=LONG,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )
    model = BertForPreTraining._from_config(config, attn_implementation="sdpa_without_mask")
    positions = model.bert.embeddings.position_embeddings.weight
    positions.data = waves(*positions.shape) * config.initializer_range
    return model


def waves(positions: int, width: int) -> Tensor:
    """Sines and cosines of the position (Vaswani et al. 2017), of unit mean square.

    Position embeddings are learned from there on. Waves tell from the start which positions are
    neighbours, which a model with random ones has to find out first.
    """
    frequencies = 10_000 ** (-torch.arange(0, width, 2) / width)
    angles = torch.outer(torch.arange(positions), frequencies)
    return math.sqrt(2) * torch.cat([angles.sin(), angles.cos()], dim=1)


def losses(model: BertForPreTraining, batch: Batch) -> tuple[Tensor, Tensor]:
    """Cross-entropy, in nats, of the masked tokens and of telling strangers from neighbours."""
    output = model.bert(batch.tokens, token_type_ids=batch.segments)
    verdict = model.cls.seq_relationship(output.pooler_output)
    return (
        masked_loss(model, output.last_hidden_state, batch),
        F.cross_entropy(verdict.float(), batch.strangers),
    )


def masked_loss(
    model: BertForPreTraining | BertForMaskedLM, hidden: Tensor, batch: Batch
) -> Tensor:
    """Only masked positions meet the vocabulary, which is much of a small model's work."""
    rows = torch.arange(len(hidden), device=hidden.device).unsqueeze(1)
    logits = model.cls.predictions(hidden[rows, batch.masked])
    return F.cross_entropy(logits.float().flatten(0, 1), batch.answers.flatten())


@torch.no_grad()
def held_out_loss(
    model: BertForPreTraining | BertForMaskedLM, passages: Passages, length: int
) -> float:
    """Masked-token loss over a fixed sample of consecutive passages, in nats per masked token.

    The sample is drawn on the CPU, so it is the same on every machine.
    """
    model.eval()
    random = Generator().manual_seed(SEED)
    windows = cut_windows(passages, length)
    total = 0.0
    for _ in range(HELD_OUT_TOKENS // HELD_OUT_BATCH):
        batch = draw_batch(passages, windows, HELD_OUT_BATCH // length, random)
        batch = Batch(*(tensor.to(model.device) for tensor in batch))
        hidden = model.bert(batch.tokens, token_type_ids=batch.segments).last_hidden_state
        total += float(masked_loss(model, hidden, batch))
    model.train()
    return total / (HELD_OUT_TOKENS // HELD_OUT_BATCH)


def train(
    model: BertForPreTraining, training: Passages, held_out: Passages, options: argparse.Namespace
) -> None:
    """Train in place, printing all losses; at the end the weights are rounded to float16."""
    device = training.tokens.device
    random = Generator(device).manual_seed(SEED)
    windows = {length: cut_windows(training, length) for length in (SHORT, LONG)}
    optimizer = Optimizer(model, inside="bert.encoder.", decay=options.weight_decay)
    compiled_losses = torch.compile(losses, dynamic=False, disable=device.type != "cuda")
    recent = torch.zeros(2, device=device)
    started = time.monotonic()
    for step in range(options.steps):
        length = LONG if step % LONG_EVERY == 0 else SHORT
        size = options.batch_tokens // length
        batch = draw_batch(
            training,
            windows[length],
            size,
            random,
            masked_share=MASKED_SHARE,
            stranger_share=STRANGER_SHARE,
        )
        masked, verdict = compiled_losses(model, batch)
        (masked + verdict).backward()
        optimizer.step(learning_rate(step, options.steps, peak=options.learning_rate))
        recent += torch.stack([masked, verdict]).detach()
        if (step + 1) % REPORT_EVERY == 0 or step + 1 == options.steps:
            mean = (recent / (step % REPORT_EVERY + 1)).tolist()
            print(
                f"step {step + 1:6d}  {time.monotonic() - started:5.0f} s  training {mean[0]:.4f}  "
                f"next passage {mean[1]:.4f}  held-out {held_out_loss(model, held_out, SHORT):.4f}",
                flush=True,
            )
            recent.zero_()
    optimizer.finish(model)


def keep_masked_model(model: BertForPreTraining) -> BertForMaskedLM:
    """The same network without the head for the next passage."""
    kept = BertForMaskedLM(model.config)
    kept.load_state_dict(
        {name: w for name, w in model.state_dict().items() if name in kept.state_dict()}
    )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="pretrain.txt.xz")
    parser.add_argument("--out", type=Path, default=BUNDLED, help="holds the tokenizer already")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch-tokens", type=int, default=BATCH_TOKENS)
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    parser.add_argument("--weight-decay", type=float, default=WEIGHT_DECAY)
    parser.add_argument("--dropout", type=float, default=DROPOUT)
    options = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(describe(options), flush=True)
    tokenizer = Tokenizer.from_file(str(options.out / "tokenizer.json"))
    split = split_documents(read_documents(options.text))
    training = read_passages(tokenizer, split.training)
    held_out = read_passages(tokenizer, split.held_out)
    print(
        f"{len(training.tokens):,} training tokens, {len(held_out.tokens):,} held-out tokens",
        flush=True,
    )

    torch.manual_seed(SEED)
    model = new_model(options.dropout).to(device)  # pyright: ignore[reportArgumentType]
    train(model, training.to(device), held_out, options)
    for length in (SHORT, LONG):
        print(
            f"inputs of {length} tokens: "
            f"final held-out loss {held_out_loss(model, held_out, length):.4f} nats/masked token, "
            f"the same on training text {held_out_loss(model, training, length):.4f}"
        )
    keep_masked_model(model).half().save_pretrained(options.out)


if __name__ == "__main__":
    main()
