"""From an annotated batch to words: the units of its tokens and the attention between them."""

from jaxtyping import Float
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.inputs import Example
from headscope.probes.encoding import WordTokens
from headscope.probes.words import From, Units, make_units, word_maps

WORD = "word"  # the label of a token that says to which word it belongs


def word_example(number: int, tokens: WordTokens, *, is_causal: bool) -> Example:
    """An input whose words are known; null are special tokens and what a causal model sinks to."""
    special = tokens.encoded.special
    return Example(
        number,
        tokens.encoded,
        null=(special[0] or is_causal, *special[1:]),
        labels={WORD: tokens.alignment.word_of_token},
        sentence=tokens.sentence,
    )


def word_layer(layer: DenseLayer, row: From = "mean") -> Float[Tensor, "batch head word word"]:
    """Attention between the words of a batch; special tokens are dropped, nothing renormalised."""
    units = layer.batch.once(f"units {row}", lambda: batch_units(layer.batch, row))
    return word_maps(layer.weights.float(), units)[..., : units.width, : units.width]


def batch_units(batch: AnnotatedBatch, row: From = "mean") -> Units:
    """The units of a batch that was padded on the right."""
    lengths = batch.mask.sum(1).tolist()
    words = batch.labels[WORD].tolist()
    return make_units(
        [row_words[:length] for row_words, length in zip(words, lengths, strict=True)],
        [len(sentence.words) for sentence in batch.sentences],
        tokens=batch.mask.shape[1],
        row=row,
        device=batch.mask.device,
    )
