"""What changes in a text without some heads: every weight, and what is predicted next.

Beside it stands the same without as many other heads of the same layers, drawn at random, since
some weights change whatever is removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.head import Head
from headscope.model.attention import LayerAttention
from headscope.model.capture.changes import Replacement, switch_off

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.model.inputs.batch import Batch
    from headscope.model.model import Model

SHOWN = 5  # tokens that a network finds most probable, with and without the heads
NO_NEXT = "this network predicts no next token"


@dataclass(frozen=True)
class Pass:
    """One pass over the text: weights of the default stack, and probabilities of tokens."""

    weights: Mapping[int, Float[Tensor, "head query key"]]  # by layer
    log_probabilities: Float[Tensor, "token vocabulary"] | None


@dataclass(frozen=True)
class NextToken:
    """How probable a token is after the text: with all heads, without some, and in the control."""

    token: str
    plain: float
    without: float
    control: float | None


@dataclass(frozen=True)
class Losses:
    """Nats per token of the text after its first: with all heads, without some, in the control."""

    plain: float
    without: float
    control: float | None


@dataclass(frozen=True)
class Difference:
    """A text without some heads, less the same text with all of them."""

    without: tuple[Head, ...]
    control: tuple[Head, ...]  # other heads of the same layers; none where a layer has no other
    replacement: Replacement
    labels: tuple[str, ...]  # of the tokens
    plain: Mapping[int, Float[Tensor, "head query key"]]  # weights by layer, with all heads
    change: Mapping[int, Float[Tensor, "head query key"]]  # how much higher they are without some
    control_change: Mapping[int, Float[Tensor, "head query key"]] | None
    next_tokens: tuple[NextToken, ...]
    losses: Losses | None
    no_next_tokens: str | None = None  # why there are none

    @property
    def moved(self) -> Float[np.ndarray, "layer head"]:
        """The share of its attention that every head gives to other tokens, on the mean of rows."""
        return _moved(self.change)

    @property
    def control_moved(self) -> Float[np.ndarray, "layer head"] | None:
        """The same in the control."""
        return None if self.control_change is None else _moved(self.control_change)

    @property
    def most(self) -> Head:
        """The head whose attention changes most."""
        moved = self.moved
        row, head = np.unravel_index(moved.argmax(), moved.shape)
        return Head([*self.change][int(row)], int(head))

    @property
    def sentence(self) -> str:
        """What changes most, and what the text costs, beside the control."""
        moved, control, head = self.moved, self.control_moved, self.most
        row = [*self.change].index(head.layer)
        text = (
            f"Without {_names(self.without)}, {head} gives {moved[row, head.head]:.0%} of its "
            f"attention to other tokens, the mean head {moved.mean():.1%}"
        )
        if control is not None:
            text += (
                f"; without {_names(self.control)}, for comparison, {control[row, head.head]:.0%} "
                f"and {control.mean():.1%}"
            )
        if self.losses is None:
            return f"{text}."
        text += (
            f". The text costs {self.losses.without:.2f} nats per token instead of "
            f"{self.losses.plain:.2f}"
        )
        known = self.losses.control
        return f"{text}." if known is None else f"{text} (comparison: {known:.2f})."

    def figure(self) -> "Figure":
        """Maps of the heads whose attention changes, beside the control, and the next tokens."""
        from headscope.plots.difference import draw_difference

        return draw_difference(self)


def find_difference(
    model: "Model",
    batch: "Batch",
    labels: Sequence[str],
    without: Sequence[Head],
    replacement: Replacement,
    seed: int,
) -> Difference:
    """The only text of a batch without some heads, and without others, less the text with all."""
    control = choose_control(without, model.heads, seed)
    plain = _run(model, batch, (), replacement)
    changed = _run(model, batch, without, replacement)
    compared = _run(model, batch, control, replacement) if control else None
    tokens, losses = _predictions(model, batch, plain, changed, compared)
    return Difference(
        without=tuple(without),
        control=control,
        replacement=replacement,
        labels=tuple(labels),
        plain=plain.weights,
        change=_less(changed, plain),
        control_change=None if compared is None else _less(compared, plain),
        next_tokens=tokens,
        losses=losses,
        no_next_tokens=NO_NEXT if losses is None else None,
    )


def choose_control(without: Sequence[Head], heads: int, seed: int) -> tuple[Head, ...]:
    """A random other head of its layer for every head; none if a layer has too few others."""
    generator = np.random.default_rng(seed)
    control: list[Head] = []
    for layer in dict.fromkeys(head.layer for head in without):
        removed = {head.head for head in without if head.layer == layer}
        others = [head for head in range(heads) if head not in removed]
        if len(others) < len(removed):
            return ()
        chosen = generator.choice(others, len(removed), replace=False)
        control += [Head(layer, int(head)) for head in sorted(chosen)]
    return tuple(control)


def _run(model: "Model", batch: "Batch", heads: Sequence[Head], replacement: Replacement) -> Pass:
    weights: dict[int, Tensor] = {}
    stack = model.stacks[0].name

    def keep(seen: LayerAttention) -> None:
        if seen.stack == stack:
            weights[seen.layer] = seen.weights[0].detach().to("cpu", torch.float32, copy=True)

    output = model.forward_changed(batch, partial(switch_off, heads, replacement), keep)
    logits = getattr(output, "logits", None)
    if logits is None or not (model.is_causal or model.is_encoder_decoder):
        return Pass(weights, None)
    return Pass(weights, logits[0].detach().float().log_softmax(-1).cpu())


def _less(changed: Pass, plain: Pass) -> dict[int, Tensor]:
    return {layer: changed.weights[layer] - plain.weights[layer] for layer in plain.weights}


def _predictions(
    model: "Model", batch: "Batch", plain: Pass, changed: Pass, compared: Pass | None
) -> tuple[tuple[NextToken, ...], Losses | None]:
    """The tokens that are most probable with and without the heads, and what the text costs."""
    passes = [plain, changed, *([] if compared is None else [compared])]
    known = [each.log_probabilities for each in passes if each.log_probabilities is not None]
    read = batch.ids if batch.target is None else batch.target.ids
    if len(known) < len(passes):
        return (), None
    last = [values[-1].exp() for values in known]
    likely = torch.cat([values.topk(SHOWN).indices for values in last[:2]])
    tokens: list[NextToken] = []
    for number in sorted(set(likely.tolist()), key=lambda number: -float(last[0][number])):
        of_passes = [float(values[number]) for values in last]
        name = str(model.tokenizer.decode([number]))
        tokens.append(NextToken(name, of_passes[0], of_passes[1], _third(of_passes)))
    if read.shape[1] < 2:
        return tuple(tokens), None
    following = read[0, 1:, None].cpu()
    costs = [-float(values[:-1].gather(1, following).mean()) for values in known]
    return tuple(tokens), Losses(costs[0], costs[1], _third(costs))


def _third(values: Sequence[float]) -> float | None:
    return values[2] if len(values) > 2 else None


def _moved(change: Mapping[int, Tensor]) -> np.ndarray:
    return np.stack(
        [values.double().abs().sum(-1).mean(-1).numpy() / 2 for values in change.values()]
    )


def _names(heads: Sequence[Head]) -> str:
    return " and ".join(map(str, heads))
