"""Portraits of a finished run: what every head looks at, and what it would look at in a text.

```python
portraits = hs.portraits("runs/mini")
portraits["L4H2"].sentence            # "L4H2 looks at the previous token (98 % of its weight). …"
portraits.predict("The cat sat.")     # layer × head × query × key, without running the network
portraits.score(model, corpus)        # how much they explain of another text
```
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from headscope.engine.setup import Setup
from headscope.errors import RunError
from headscope.head import Head, read_head
from headscope.metrics.metric import GROUP, Axis, Grid, label
from headscope.model.inputs.frame import Bos
from headscope.model.loading.load import load
from headscope.model.model import Model
from headscope.portrait.pairs import Pairs, attention_of
from headscope.portrait.sample import TOKENS, Sample, split_layers
from headscope.portrait.score import (
    EVEN,
    Weights,
    by_group,
    gain_of_null,
    gain_of_rest,
    information_of_null,
    information_of_rest,
    log_likely,
)
from headscope.portrait.stage import FEATURE, SHARE, VOCABULARY, why_no_portrait
from headscope.portrait.tables import Vocabulary
from headscope.portrait.texts import Text, make_texts
from headscope.results.describe import PORTRAIT, Description, Fact, read_description
from headscope.results.heads import describe_heads
from headscope.results.inspection import read_json
from headscope.results.measure import heads_of
from headscope.results.replicates import ratio_of
from headscope.results.run import read_finished
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence
from headscope.views.roles import CLEAR, measure_text

FIRST = 400  # sentences of a corpus that has few documents


@dataclass(frozen=True)
class Portrait:
    """What is known of a head: a sentence with its facts, and how much the portrait explains."""

    head: Head
    name: str
    sentence: str
    facts: tuple[Fact, ...]
    explained: float  # NaN of a head that is even
    by: Mapping[str, float]  # what the sink and every group of features add
    weights: Mapping[str, float]  # of features, the largest first


@dataclass(frozen=True, eq=False)
class Portraits(Mapping[str, Portrait]):
    """The portraits of a run by the name of the head."""

    result: xr.Dataset
    model_name: str | None = None  # as it was given to the study

    def __getitem__(self, name: str) -> Portrait:
        head = read_head(name)
        if head not in heads_of(self.result):
            raise KeyError(f"this run has no head {head}")
        of_head = self.result.sel(layer=head.layer, head=head.head)
        description = self._description(head)
        weights = dict(
            zip(of_head[FEATURE].values.tolist(), of_head["portrait_weight"].values.tolist(),
                strict=True)
        )  # fmt: skip
        by = of_head["explained_by"]
        return Portrait(
            head,
            description.name,
            description.sentence,
            description.facts,
            float(of_head["explained"]),
            dict(zip(by[SHARE].values.tolist(), by.values.tolist(), strict=True)),
            dict(sorted(weights.items(), key=lambda item: -abs(item[1]))),
        )

    def _description(self, head: Head) -> Description:
        of_head = self.result.sel(layer=head.layer, head=head.head)
        sentence, stored = (str(of_head[name].item()) for name in ("description", PORTRAIT))
        return read_description(head, sentence, stored)

    def __iter__(self) -> Iterator[str]:
        return iter([str(head) for head in heads_of(self.result)])

    def __len__(self) -> int:
        return len(heads_of(self.result))

    def __repr__(self) -> str:
        return f"<Portraits of {len(self)} heads of {self.model_name}>"

    def predict(self, sentence: str | Sentence, model: Model | None = None) -> xr.DataArray:
        """What the portraits say that every head gives to every token of a text.

        Rows of null tokens are NaN; null tokens share evenly what they get. The network is not run,
        only its tokenizer. A sentence without words lacks what tags and relations would add.
        """
        read = Sentence(sentence) if isinstance(sentence, str) else sentence
        texts = make_texts(model or self._load(), [read], "score", is_passage=False, bos=self._bos)
        if not texts:
            raise RunError("The words of the sentence are not in its text; correct their spans.")
        (text,) = texts
        pairs = Pairs.of(texts, self.vocabulary, every_row=True)
        with torch.inference_mode():
            rest, choices = log_likely(pairs, self.weights)
        null, left = choices.exp().unflatten(0, (-1, 2)).unbind(1)
        tokens, heads = len(text), rest.shape[1]
        predicted = np.full((tokens, tokens, heads), np.nan, dtype=np.float32)
        predicted[pairs.query] = 0.0
        shares = rest.exp() * left[torch.from_numpy(pairs.row_of_pair)]
        predicted[pairs.query[pairs.row_of_pair], pairs.key] = shares.numpy()
        places = np.arange(tokens)
        for row, query in enumerate(pairs.query.tolist()):
            seen = places[text.null & ((places <= query) | (not text.is_causal))]
            predicted[query, seen] = null[row].numpy() / max(len(seen), 1)
        array = self._grid.array(
            np.moveaxis(predicted, -1, 0).reshape(*self._grid.shape, tokens, tokens),
            Axis("query", range(tokens)),
            Axis("key", range(tokens)),
        )
        return array.assign_coords(token=("key", list(text.tokens.labels)))

    def shown_by(self, text: str, model: Model | None = None) -> dict[str, float]:
        """The heads that do in a text what they are called, and how much of their attention.

        The clearest come first: those of which most goes there beyond what even attention gives.
        Word classes and relations are not told in a text without annotation, nor are sinks.
        """
        trace = (model or self._load()).trace(text, bos=self._bos)
        described = {head: self._description(head) for head in heads_of(self.result)}
        clear: list[tuple[float, str, float]] = []
        for measures in measure_text(trace.default):
            lead = described[measures.head].lead if measures.head in described else None
            place = None if lead is None else measures.place(lead.key)
            if place is None:
                continue
            gains, is_special = measures.scored, measures.names[place].is_special
            share, even = (gains.when, gains.when_even) if is_special else (gains.share, gains.even)
            if share[place] >= CLEAR:
                beyond = float(share[place] - even[place])
                clear.append((-beyond, str(measures.head), float(share[place])))
        return {head: share for _, head, share in sorted(clear)}

    def score(
        self, model: Model, corpus: Corpus, *, partners: Mapping[str, str] | None = None
    ) -> xr.Dataset:
        """How much the portraits explain of another text, with errors over its documents.

        The heads of another network are explained by the portraits of their `partners`: the name of
        a head of this run for every head of `model` that has one; NaN for the others. A corpus with
        too few documents for a study of portraits is read from its beginning.
        """
        grid = Grid(tuple(model.stacks[0].attending), model.heads)
        columns = self._columns(model, grid, partners)
        is_known = torch.tensor([column >= 0 for column in columns])
        of_pairs = self.weights.pairs[:, columns]
        of_queries = self.weights.queries[:, columns]
        pairs = Pairs.of(self._texts(model, corpus), self.vocabulary).to(model.device)
        groups = torch.from_numpy(pairs.row_groups).to(model.device)
        sums: dict[str, list[torch.Tensor]] = {"total": [], "rest": [], "gain": [], "gain_rest": []}
        for layers in split_layers(grid, model.device):
            heads = slice(layers[0] * model.heads, (layers[-1] + 1) * model.heads)
            with torch.inference_mode():
                shown = attention_of(model, pairs, layers, TOKENS)
                of_rest = information_of_rest(pairs, shown)
                gained = gain_of_rest(pairs, shown, of_pairs[:, heads].to(model.device))
                sink = of_queries[:, heads].to(model.device)
                sums["rest"].append(by_group(of_rest, groups))
                sums["total"].append(by_group(of_rest + information_of_null(pairs, shown), groups))
                sums["gain_rest"].append(by_group(gained, groups))
                sums["gain"].append(by_group(gained + gain_of_null(pairs, shown, sink), groups))
        labelled: dict[str, xr.DataArray] = {}
        for name, parts in sums.items():
            values = torch.where(is_known, torch.cat(parts, 1).cpu(), torch.nan)
            labelled[name] = label(values.reshape(-1, *grid.shape), GROUP, *grid.axes)
        return self._shares(labelled, len(pairs))

    def _columns(self, model: Model, grid: Grid, partners: Mapping[str, str] | None) -> list[int]:
        """For every head of the model the place of the portrait that explains it; -1 for none."""
        if partners is None:
            if grid.shape != self._grid.shape:
                raise RunError(
                    f"{model.name} has other heads than this run; give the model of the run, or "
                    "partners of its heads."
                )
            return list(range(len(self)))
        place = {name: number for number, name in enumerate(self)}
        for name in partners.values():
            if name not in place:
                raise RunError(f"This run has no head {name}.")
        names = [str(Head(layer, head)) for layer in grid.layers for head in range(grid.heads)]
        return [place[partners[name]] if name in partners else -1 for name in names]

    def _shares(self, labelled: Mapping[str, xr.DataArray], rows: int) -> xr.Dataset:
        is_even = labelled["total"].sum("group") < EVEN * rows
        found: dict[str, xr.DataArray] = {}
        for name, gain, total in (
            ("explained", "gain", "total"),
            ("explained_rest", "gain_rest", "rest"),
        ):
            value, error = ratio_of(labelled[gain], labelled[total])
            found |= {name: value.where(~is_even), f"{name}_se": error.where(~is_even)}
        return xr.Dataset(found)

    def _texts(self, model: Model, corpus: Corpus) -> list[Text]:
        setup = Setup(model, corpus, {}, {}, TOKENS)
        if why_no_portrait(setup) is None:
            sample = Sample.draw(setup, self._bos)
            return [text for texts in sample.texts.values() for text in texts]
        sentences = list(corpus.select(range(min(len(corpus), FIRST))))
        return make_texts(model, sentences, "score", is_passage=False, bos=self._bos)

    @cached_property
    def weights(self) -> Weights:
        """The weights of all heads, those of queries and those of pairs."""
        stored = self.result["portrait_weight"].transpose(FEATURE, "layer", "head").values
        flat = torch.from_numpy(np.ascontiguousarray(stored.reshape(len(stored), -1)))
        queries = len(flat) - self.vocabulary.starts[-1]
        return Weights(flat[:queries], flat[queries:])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What the features know besides the text."""
        stored = self.result.attrs[VOCABULARY]
        return read_json(stored, Vocabulary, "The vocabulary of the portraits")

    @property
    def _grid(self) -> Grid:
        return Grid(tuple(self.result["layer"].values.tolist()), self.result.sizes["head"])

    @property
    def _bos(self) -> Bos:
        return "always" if self.result.attrs.get("bos") else "never"

    def _load(self) -> Model:
        if self.model_name is None:
            raise RunError("The result does not say of which model it is; give the model.")
        return load(self.model_name)


def portraits(run: str | Path | xr.Dataset) -> Portraits:
    """The portraits of a finished run, by its directory or its result."""
    if isinstance(run, xr.Dataset):
        result, name = run, run.attrs.get("model")
    else:
        finished = read_finished(run)
        result, name = finished.data, finished.model
    describe_heads(result)  # says why there are none
    return Portraits(result, name)
