"""What a head writes: how much of it there is, and which words it makes likelier.

Attention weighted by what a head would write is ‖a[i, j]·v_j W_O‖ (Kobayashi et al. 2020). A head
may look at a token whose value is close to nothing, which is then not much of a look. The weights
of a row are multiplied with the norms of what each key would give, and divided by their sum, so
that a row is a distribution again and every measure of rows keeps its meaning.

```
a[i]            .70  .20  .10        mostly the first token
‖v_j W_O‖       .10   1.   1.        which says next to nothing
norm-weighted   .19  .54  .27
```

In words, it is a head's output through the last norm to the unembedding.

```
logits  =  U · norm(r) ,   r = everything that was written into the residual stream
norm(r) =  gain ⊙ (r − mean r) / s(r) + bias          (without the mean in an RMSNorm)
```

With the size s(r) held at what it is, logits are a sum over all that was written: each head's part
is U · gain ⊙ (z W_O − mean) / s(r), z what the head found; that of one edge has a[i, j]·v_j for z.
Where a network transforms its last state before the unembedding (BERT), the part is the derivative
of that transform instead, as if the head wrote into the last state.

How a network does it is found and proved on the probe, as with attention; no class is known here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headscope.errors import CaptureError, ModelError
from headscope.head import Head
from headscope.model.attention import LayerAttention, widen
from headscope.model.capture.backends import Projection, hooked
from headscope.model.capture.plan import Plan
from headscope.model.inputs.batch import probe_batch
from headscope.model.inputs.labels import display
from headscope.model.loading.network import at_hand
from headscope.model.norms import Norm, find_norm
from headscope.model.why import check_places

if TYPE_CHECKING:
    from headscope.model.model import Model

Reading = Literal["raw", "norm", "both"]  # of attention; both: raw, and the norms beside it
PROBE_TOKENS = 7
NO_HEAD = "the model has no unembedding, so that nothing says which tokens a vector stands for"


def matrix(projection: Projection) -> Float[Tensor, "value out"]:
    """The matrix that multiplies from the right; GPT-2's Conv1D stores it so, Linear transposed."""
    with at_hand(projection):
        weight = projection.weight.detach()
    return weight if isinstance(projection, Conv1D) else weight.T


def value_norms(
    value: Float[Tensor, "*batch key_head key value_dim"], projection: Projection, heads: int
) -> Float[Tensor, "*batch head key"]:
    """‖v_j W_O‖ for every head and key: what a head would write if it looked at j alone."""
    groups = heads // value.shape[-3]
    parts = widen(matrix(projection).to(value.device)).reshape(heads, value.shape[-1], -1)
    values = widen(value)
    # One head at a time: all heads at once would need heads × keys × width numbers.
    norms = [(values[..., h // groups, :, :] @ parts[h]).norm(dim=-1) for h in range(heads)]
    return torch.stack(norms, dim=-2)


def norms_of(plan: Plan, seen: LayerAttention) -> Float[Tensor, "batch head key"]:
    """The norms of one layer's values; `StackPlan.no_norms` says where there are none."""
    projection = plan.projection(seen.stack, seen.layer)
    if seen.value is None or projection is None:
        raise CaptureError(f"Layer {seen.layer} gives no values to weight its attention with.")
    return value_norms(seen.value, projection, seen.weights.shape[1])


def norm_weighted(
    weights: Float[Tensor, "batch head query key"], norms: Float[Tensor, "batch head key"]
) -> Float[Tensor, "batch head query key"]:
    """Every weight times the norm of its key, each row divided by its sum."""
    scaled = widen(weights) * norms[..., None, :]
    return scaled / scaled.sum(-1, keepdim=True).clamp(min=torch.finfo(scaled.dtype).tiny)


@dataclass(frozen=True)
class Transform:
    """What a network does to its last state before the unembedding."""

    module: nn.Module
    body: nn.Module  # whose output is the last state

    def shift(
        self, residual: Float[Tensor, "token width"], written: Float[Tensor, "token width"]
    ) -> Float[Tensor, "token width"]:
        """The derivative of its output along the written vectors."""
        dtype = next(self.module.parameters()).dtype
        given = (residual.to(dtype),), (written.to(dtype),)
        with torch.inference_mode(False), torch.no_grad():
            copies = [tuple(each.clone() for each in part) for part in given]
            return widen(torch.func.jvp(self.module, *copies)[1])


@dataclass(frozen=True)
class Readout:
    """How a network reads its residual stream."""

    last: Norm | Transform
    unembedding: nn.Module

    def logits(
        self, residual: Float[Tensor, "token width"], written: Float[Tensor, "token width"]
    ) -> Float[Tensor, "token vocabulary"]:
        """What the written vectors add to the logits, before any scaling or cap of them."""
        return self.last.shift(residual, written) @ self._matrix.T

    def mean_logits(
        self, residual: Float[Tensor, "token width"], written: Float[Tensor, "token width"]
    ) -> Float[Tensor, "vocabulary"]:
        """The mean over tokens of what is added; only one vector meets the unembedding."""
        return self.last.shift(residual, written).mean(0) @ self._matrix.T

    @property
    def _matrix(self) -> Float[Tensor, "vocabulary width"]:
        weight = self.unembedding.weight
        assert isinstance(weight, Tensor)
        return widen(weight.detach())

    @contextmanager
    def watching(self) -> Iterator[list[Float[Tensor, "batch token width"]]]:
        """Collects what every forward pass of the block hands to the last norm or transform.

        The passes may leave out the head of the language model.
        """
        seen: list[Tensor] = []

        def look(_: nn.Module, given: tuple[Any, ...], gave: Any) -> None:
            seen.append((given if isinstance(self.last, Norm) else gave)[0].detach())

        watched = self.last.module if isinstance(self.last, Norm) else self.last.body
        with hooked([watched], look):
            yield seen


@dataclass(frozen=True)
class EdgeWrites:
    """What one edge adds to the logits of the token that is predicted at its query."""

    weight: float
    raises: tuple[tuple[str, float], ...]
    lowers: tuple[tuple[str, float], ...]
    next_token: str | None  # that follows in the text; None at its end
    next_logit: float | None


def edge_writes(
    model: "Model", text: str, layer: int, head: int, query: int, key: int, *, count: int = 10
) -> EdgeWrites:
    """What the head adds by looking from the query at the key: a[i, j]·v_j W_O, in tokens.

    A causal model predicts the token after the query, any other the one in its place.
    """
    readout = require_readout(model)
    tokens = model.encode(text)
    sizes = len(tokens), len(tokens)
    check_places(model, model.stacks[0].name, Head(layer, head), query, key, sizes)
    kept: dict[int, LayerAttention] = {}

    def keep(seen: LayerAttention) -> None:
        if seen.layer == layer:
            kept[layer] = seen

    with readout.watching() as residuals:
        model.forward(model.batch([tokens]), keep)
    seen = kept[layer]
    assert seen.value is not None
    groups = seen.weights.shape[1] // seen.value.shape[1]
    weight = widen(seen.weights[0, head, query, key])
    output = weight * widen(seen.value[0, head // groups, key])
    written = output @ output_part(model, layer, head)
    logits = readout.logits(widen(residuals[-1][0, query])[None], written[None])[0]
    following = query + 1 if model.is_causal else query
    at = tokens.ids[following] if following < len(tokens) else None
    return EdgeWrites(
        float(weight),
        *_extremes(model, logits, count),
        None if at is None else display(model.tokenizer, [at])[0],
        None if at is None else float(logits[at]),
    )


def output_part(model: "Model", layer: int, head: int) -> Float[Tensor, "value width"]:
    """The rows of a layer's output projection that multiply what the head found."""
    stack = model.stacks[0]
    projection = model.plan.projection(stack.name, layer)
    if projection is None:
        raise ModelError(f"{model.name} does not show what its heads write: {stack.no_norms}.")
    return widen(matrix(projection)).unflatten(0, (stack.heads, -1))[head]


def why_no_writes(model: "Model") -> str | None:
    """Why what heads write cannot be read as tokens, or None."""
    readout = find_readout(model)
    return readout if isinstance(readout, str) else None


def require_readout(model: "Model") -> Readout:
    """The readout of a model; a ModelError with the reason where it has none."""
    readout = find_readout(model)
    if isinstance(readout, str):
        raise ModelError(f"{model.name} does not say what its heads write: {readout}.")
    return readout


def find_readout(model: "Model") -> Readout | str:
    """How the model reads its residual stream, proved on the probe, or why that is not known."""
    if model.is_encoder_decoder:
        return "the heads that are studied are those of its encoder, which predicts nothing"
    unembedding = model.network.get_output_embeddings()
    if unembedding is None:
        return NO_HEAD
    if model.stacks[0].no_norms is not None:
        return model.stacks[0].no_norms
    if type(getattr(unembedding, "weight", None)) not in (Tensor, nn.Parameter):
        return "the matrix of its unembedding is quantised and cannot be read"
    last = _find_last(model, unembedding)
    if last is None:
        dtype = str(model.network.dtype).removeprefix("torch.")
        return (
            "what lies between its last layer and its unembedding is no norm that can be read from "
            f"{dtype} numbers"
        )
    return Readout(last, unembedding)


@dataclass(frozen=True)
class _Step:
    """A module that turned one tensor into another."""

    module: nn.Module
    given: Tensor
    gave: Tensor


def _find_last(model: "Model", unembedding: nn.Module) -> Norm | Transform | None:
    """The module whose output the unembedding receives."""
    steps = _follow(model)
    received = [step.given for step in steps if step.module is unembedding]
    if not received:
        return None
    makers = [s for s in steps if _same(s.gave, received[-1]) and not _same(s.given, received[-1])]
    base = model.network.base_model
    body = set(base.modules())
    for step in makers:
        norm = find_norm(step.module, step.given, step.gave) if step.module in body else None
        if norm is not None:
            return norm
    states = [step.gave for step in steps if step.module in body]
    outer = [step for step in makers if step.module not in body]
    transforms = [step for step in outer if states and _same(step.given, states[-1])]
    return Transform(transforms[-1].module, base) if transforms else None


def _follow(model: "Model") -> list[_Step]:
    steps: list[_Step] = []

    def look(module: nn.Module, given: tuple[Any, ...], gave: Any) -> None:
        first = given[0] if given else None
        last = gave[0] if isinstance(gave, tuple) and gave else gave
        states = [end.detach() for end in (first, last) if isinstance(end, Tensor)]
        if [state.ndim for state in states] == [3, 3]:
            steps.append(_Step(module, *states))

    with hooked(model.network.modules(), look):
        model.forward(probe_batch(model.network, PROBE_TOKENS, model.device))
    return steps


def _same(left: Tensor, right: Tensor) -> bool:
    return left.shape == right.shape and torch.equal(left, right)


def _extremes(
    model: "Model", logits: Float[Tensor, "vocabulary"], count: int
) -> tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]:
    """The tokens that are raised most, and those that are lowered most."""
    known = logits[: len(model.tokenizer)]  # a vocabulary may be padded

    def named(largest: bool) -> tuple[tuple[str, float], ...]:
        values, ids = known.topk(min(count, len(known)), largest=largest)
        return tuple(zip(display(model.tokenizer, ids.tolist()), values.tolist(), strict=True))

    return named(True), named(False)
