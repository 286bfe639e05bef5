"""Random tokens that repeat once: inputs on which induction and copying show themselves."""

from collections.abc import Sequence

from headscope.engine.question import InputKind, Inputs, Question
from headscope.engine.setup import Setup
from headscope.metrics.metric import Metric
from headscope.metrics.repeats import repeated_sequences, repetitions
from headscope.model.inputs.batch import vocabulary_size
from headscope.observe.batch import Example
from headscope.studies.shared.delimiters import enclose, find_delimiters
from headscope.text.sentence import Sentence


def repeated_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """Random tokens that occur twice; of no sentence, so that the first shard has them all."""
    if first > 0:
        return Inputs(())
    sequences = repeated_sequences(
        ordinary_tokens(setup),
        count=setup.options["repeated_sequences"],
        period=longest_period(setup),
        seed=setup.seed,
    )
    examples = []
    for number, ids in enumerate(sequences.tolist()):
        tokens = enclose(setup.model, tuple(ids))
        examples.append(Example(number, tokens, (False,) * len(tokens)))
    return Inputs(examples)


def longest_period(setup: Setup) -> int:
    """Tokens until a random sequence repeats: the option, or half of what the model can take."""
    asked, limit = setup.options["period"], setup.model.max_length
    if limit is None:
        return asked
    around = len(enclose(setup.model, ()))
    return max(1, min(asked, (limit - around) // 2))


def ordinary_tokens(setup: Setup) -> list[int]:
    """All ids of the tokenizer that are ordinary tokens of the network."""
    special = set(setup.model.tokenizer.all_special_ids)
    size = min(len(setup.model.tokenizer), vocabulary_size(setup.model.network))
    return [index for index in range(size) if index not in special]


def repetition_metrics(setup: Setup) -> list[Metric]:
    """Scores on random sequences that occur twice."""
    start = int(find_delimiters(setup.model).cls is not None)
    return [*repetitions(setup.grid, longest_period(setup), start)]


REPEATED = InputKind(
    repeated_inputs, (Question(("induction_score",), repetition_metrics),), of_corpus=False
)
