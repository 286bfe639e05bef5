"""What it costs to replace a head by its mean, where its name applies and elsewhere.

```
texts that portraits are scored on ─► one head at its mean ─► rise of the loss of every token
```
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.engine.setup import Setup
from headscope.files import pack_arrays, unpack_arrays
from headscope.head import Head
from headscope.metrics.gradient import MASKED_SHARE, choose_masked, hide, token_losses
from headscope.metrics.importance import MEAN_REPLACEMENT, why_no_importance
from headscope.metrics.metric import GROUP, Axis, label, ratio_variables
from headscope.model.capture.changes import repeat
from headscope.model.inputs.batch import Batch
from headscope.portrait.facts import Marked, all_facts
from headscope.portrait.pairs import Pairs
from headscope.portrait.sample import Layers, LayerStage, LayerWork, split_layers
from headscope.portrait.texts import Text
from headscope.results.cost import PLACES, REPLACED, WHERE
from headscope.results.describe import PORTRAIT, read_description
from headscope.results.measure import Measure
from headscope.results.replicates import GROUPS

ROOM, ROOM_CUDA = 4096, 32768  # tokens of a batch of copies
MEASURES = (
    Measure(
        WHERE,
        title="Loss with the head's mean, by where",
        meaning="How much the loss per predicted token rises when the head says the same "
        "everywhere, at the tokens that its name applies to, and at all others.",
        formula=MEAN_REPLACEMENT.formula,
        reference="after Voita et al. 2019",
        unit="nats",
        more="matters more to the loss",
        axes={"where": "Where"},
    ),
)


@dataclass(frozen=True)
class CostStage(LayerStage):
    """Replaces every head by its mean, on as many texts as the option `cost` says."""

    name: str = "cost"

    def pieces(self, setup: Setup, result: xr.Dataset) -> Sequence[Layers]:
        """Some layers each; none where it is not asked for, or the whole corpus is measured."""
        options = setup.options
        reason = why_no_importance(setup.model)
        is_wanted = options.get("cost") and not options.get("importance") and PORTRAIT in result
        return split_layers(setup.grid, setup.model.device) if is_wanted and reason is None else ()

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> "Replacing":
        """What is done to some layers."""
        return Replacing(setup, threads, self.bos(setup), self.raw, result[[PORTRAIT]])

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Layers, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with what it costs to lose each head, and the sums of every group."""
        parts = [unpack_arrays(content) for content in outcomes.values()]
        if not parts:
            reason = why_no_importance(setup.model) if setup.options.get("cost") else None
            if reason is None:
                return result
            missing = json.loads(result.attrs.get("left_out", "{}")) | {WHERE: reason}
            return result.assign_attrs(left_out=json.dumps(missing))
        shape, where = (GROUPS, *setup.grid.shape), Axis("where", PLACES)
        rises, tokens, all_rises = (
            np.concatenate([part[name] for part in parts], axis=1)
            for name in ("rises", "tokens", "all_rises")
        )
        axes = (GROUP, *setup.grid.axes)
        everywhere = label(parts[0]["all_tokens"], GROUP)
        return result.assign(
            ratio_variables(REPLACED, label(all_rises.reshape(shape), *axes), everywhere)
            | ratio_variables(
                WHERE,
                label(rises.reshape(*shape, -1), *axes, where),
                label(tokens.reshape(*shape, -1), *axes, where),
            )
        )


@dataclass(frozen=True)
class Replacing(LayerWork):
    """Replaces the heads of some layers, one at a time."""

    result: xr.Dataset
    what = "cost"

    def compute(self, layers: Layers, /) -> bytes:
        """Sums of rises and of tokens by group and head, as the content of a file."""
        grid = self.setup.grid
        heads = [Head(grid.layers[place], head) for place in layers for head in range(grid.heads)]
        sums = np.zeros((2, GROUPS, len(heads), len(PLACES)))
        all_rises, all_tokens = np.zeros((GROUPS, len(heads))), np.zeros(GROUPS)
        applies = self.applies(heads)
        with torch.inference_mode():
            means = self.means()
            for rows, batch, predicted in self.batches:
                groups = np.array([self.texts[row].group for row in rows])
                counted = predicted[:, 1:] if self.setup.model.is_causal else predicted
                is_counted = counted.cpu().numpy()
                np.add.at(all_tokens, groups, is_counted.sum(1))
                for number, rise in enumerate(self.rises(batch, predicted, heads, means)):
                    np.add.at(all_rises[:, number], groups, rise.sum(1))
                    of_head = applies[number]
                    if of_head is None:
                        continue
                    named = of_head[list(rows), : rise.shape[1]]
                    for place, chosen in enumerate((named, ~named)):
                        np.add.at(sums[0][:, number, place], groups, (rise * chosen).sum(1))
                        count = (is_counted & chosen).sum(1)
                        np.add.at(sums[1][:, number, place], groups, count)
        named_sums = {"rises": sums[0], "tokens": sums[1]}
        return pack_arrays({**named_sums, "all_rises": all_rises, "all_tokens": all_tokens})

    @cached_property
    def texts(self) -> list[Text]:
        """The texts that are read."""
        return self.sample.recognised()[: self.setup.options["cost"]]

    @cached_property
    def batches(self) -> list[tuple[list[int], Batch, Bool[Tensor, "batch token"]]]:
        """Some texts each, their tokens, and which of these are predicted."""
        setup = self.setup
        tokens = [text.tokens for text in self.texts]
        found: list[tuple[list[int], Batch, Tensor]] = []
        for rows in setup.model.buckets([len(text) for text in tokens], setup.batch_tokens):
            batch = setup.model.batch(tokens, rows)
            predicted = batch.mask
            if not setup.model.is_causal:
                ordinary = np.zeros(batch.mask.shape, dtype=bool)
                for place, row in enumerate(rows):
                    ordinary[place, : len(self.texts[row])] = ~self.texts[row].null
                share = setup.options.get("masked_share", MASKED_SHARE)
                masked = choose_masked(ordinary, rows, seed=setup.seed, share=share)
                predicted = torch.from_numpy(masked).to(batch.mask.device)
            found.append((rows, batch, predicted))
        return found

    def means(self) -> dict[int, Float[Tensor, "head width"]]:
        """The mean output of every head over all tokens, by layer."""
        sums: dict[int, Tensor] = {}
        count = 0

        def keep(mask: Tensor, layer: int, output: Tensor) -> Tensor:
            total = torch.where(mask[:, :, None, None], output, 0).sum((0, 1), dtype=torch.float64)
            sums[layer] = sums.get(layer, 0) + total
            return output

        model = self.setup.model
        for _, batch, predicted in self.batches:
            change = partial(keep, batch.mask)
            model.forward_changed(hide(model, batch, predicted), change, logits=False)
            count += int(batch.mask.sum())
        return {layer: total / max(count, 1) for layer, total in sums.items()}

    def rises(
        self,
        batch: Batch,
        predicted: Bool[Tensor, "batch token"],
        heads: Sequence[Head],
        means: Mapping[int, Tensor],
    ) -> Iterator[Float[np.ndarray, "batch token"]]:
        """How much the loss of every token rises without each head; where it is not predicted, 0.

        In a causal model the loss of a token stands at the token before, which predicts it.
        """
        model = self.setup.model
        shown, is_causal = hide(model, batch, predicted), model.is_causal
        before = token_losses(model.forward(shown).logits, batch.ids, predicted, causal=is_causal)
        room = ROOM_CUDA if self.needs_gpu else ROOM
        most = max(1, room // batch.ids.numel())
        for start in range(0, len(heads), most):
            some = heads[start : start + most]
            change = partial(_replace_each, some, means)
            logits = model.forward_changed(repeat(shown, len(some)), change).logits
            ids, chosen = batch.ids.repeat(len(some), 1), predicted.repeat(len(some), 1)
            after = token_losses(logits, ids, chosen, causal=is_causal)
            yield from (after.unflatten(0, (len(some), -1)) - before).double().cpu().numpy()

    def applies(self, heads: Sequence[Head]) -> list[Bool[np.ndarray, "text token"] | None]:
        """Of every head the tokens that its name applies to; None of one without such a name."""
        pairs = Pairs.of(self.texts, self.sample.vocabulary, every_row=True)
        facts = {fact.name.key: fact for fact in all_facts(pairs.vocabulary)}
        longest = max(map(len, self.texts))
        found: list[np.ndarray | None] = []
        for head in heads:
            stored = str(self.result[PORTRAIT].sel(head._asdict()).item())
            lead = read_description(head, "", stored).lead
            fact = None if lead is None else facts.get(lead.key)
            if fact is None:
                found.append(None)
                continue
            rows = Marked.of(pairs, fact).rows.numpy()
            places = np.zeros((len(self.texts), longest), dtype=bool)
            places[pairs.row_text[rows], pairs.query[rows]] = True
            found.append(places)
        return found


def _replace_each(
    heads: Sequence[Head], means: Mapping[int, Tensor], layer: int, output: Tensor
) -> Tensor:
    """In each copy of the batch another head at its mean."""
    changed = output.clone().unflatten(0, (len(heads), -1))
    for copy, head in enumerate(heads):
        if head.layer == layer:
            changed[copy, :, :, head.head] = means[layer][head.head].to(output.dtype)
    return changed.flatten(0, 1)
