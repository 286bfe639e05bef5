"""Sentences as the batches that probes learn from: forward pass, word maps, and nothing kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.model.attention import LayerAttention
from headscope.model.batch import Batch, buckets
from headscope.model.model import Model
from headscope.probes.encoding import WordTokens, encode_words
from headscope.probes.gold import Classes, make_gold, tree_fault
from headscope.probes.trained.embeddings import VectorSource
from headscope.probes.trained.parsing import ParseBatch, make_parse_batch
from headscope.probes.words import From, Units, make_units, word_maps
from headscope.text.sentence import Sentence

NO_CLASSES = Classes.of(())


@dataclass(frozen=True)
class ProbeStream:
    """What every sentence goes through on its way to the probes."""

    networks: tuple[Model, ...]  # the model, and those that are compared with it
    vectors: VectorSource
    batch_tokens: int
    row: From = "mean"

    def read(self, sentences: Sequence[Sentence]) -> Iterator[tuple[ParseBatch, ...]]:
        """Batches of the sentences that are trees and can be aligned, one for each network."""
        trees = [sentence for sentence in sentences if tree_fault(sentence.words) is None]
        made = encode_words(self.networks[0], trees)
        tokens = [each for each in made if isinstance(each, WordTokens)]
        encoded = [each.encoded for each in tokens]
        for rows in buckets([len(each) for each in encoded], self.batch_tokens):
            batch = self.networks[0].batch(encoded, rows)
            yield self._parse_batches(batch, [tokens[row] for row in batch.rows])

    def _parse_batches(self, batch: Batch, tokens: Sequence[WordTokens]) -> tuple[ParseBatch, ...]:
        units = token_units(tokens, batch, self.row)
        gold = make_gold([each.sentence for each in tokens], NO_CLASSES, device=batch.ids.device)
        vectors = torch.zeros(*gold.heads.shape, self.vectors.size)
        for place, each in enumerate(tokens):
            vectors[place, : len(each.sentence.words)] = self.vectors.of(each)
        vectors = vectors.to(batch.ids.device)
        maps = [all_word_maps(network, batch, units) for network in self.networks]
        return tuple(make_parse_batch(gold, of_network, vectors) for of_network in maps)


def token_units(tokens: Sequence[WordTokens], batch: Batch, row: From = "mean") -> Units:
    """The units of a batch of tokenized sentences."""
    return make_units(
        [each.alignment.word_of_token for each in tokens],
        [len(each.sentence.words) for each in tokens],
        tokens=batch.ids.shape[1],
        side=batch.side,
        row=row,
        device=batch.ids.device,
    )


def all_word_maps(
    network: Model, batch: Batch, units: Units
) -> Float[Tensor, "batch head unit unit"]:
    """The word maps of all heads of all layers, in order."""
    maps: list[Tensor] = []

    def keep(attention: LayerAttention) -> None:
        maps.append(word_maps(attention.weights.float(), units))

    with torch.no_grad():
        network.forward(batch, keep, logits=False)
    return torch.cat(maps, dim=1)
