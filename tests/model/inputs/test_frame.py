"""Whether a text begins with the BOS token: in a trace, in every study, and what becomes null."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

import headscope as hs
from headscope.engine import Setup
from headscope.errors import ModelError
from headscope.model.inputs.frame import Bos, Frame, find_frame
from headscope.model.model import Model
from headscope.studies import find_study
from headscope.studies.shared.sentences import sentence_inputs
from headscope.text.corpus import Corpus
from tests.references.tiny_models import bidirectional_model, causal_model, make_sentences

END = 0  # the id of "<|end|>"
TEXT = "the cat sees a dog ."


def causal(*, adds: bool, has: bool = True, end: bool = False) -> Model:
    """The tiny causal model, whose tokenizer has a BOS token or not and adds it or not."""
    made = causal_model()
    assert isinstance(made.tokenizer, PreTrainedTokenizerFast)
    built = Tokenizer.from_str(made.tokenizer.backend_tokenizer.to_str())
    if adds:
        frame = "<|end|> $A <|end|>" if end else "<|end|> $A"
        built.post_processor = processors.TemplateProcessing(
            single=frame, special_tokens=[("<|end|>", END)]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=built, eos_token="<|end|>", bos_token="<|end|>" if has else None
    )
    return Model(made.network, tokenizer, name="tiny-causal")


@pytest.mark.parametrize(
    ("adds", "bos", "begins"),
    [
        (True, "auto", True),
        (True, "never", False),
        (True, "always", True),
        (False, "auto", False),
        (False, "never", False),
        (False, "always", True),
    ],
)
def test_a_text_begins_with_bos_once_or_not_at_all(adds: bool, bos: Bos, begins: bool) -> None:
    model = causal(adds=adds)
    bare = causal(adds=False).encode(TEXT)
    encoded = model.encode(TEXT, bos=bos)
    assert encoded.ids == ((END,) if begins else ()) + bare.ids
    assert encoded.special == ((True,) if begins else ()) + bare.special
    assert encoded.offsets == (((0, 0),) if begins else ()) + bare.offsets
    assert find_frame(model.tokenizer, bos) == Frame((END,) if begins else (), ())
    trace = model.trace(TEXT, bos=bos)
    assert trace.default.queries.labels == encoded.labels
    assert trace.bos == trace.head_view().payload.header["bos"] == bos


def test_without_bos_the_end_of_a_text_stays() -> None:
    model = causal(adds=True, end=True)
    assert find_frame(model.tokenizer, "never") == Frame((), (END,))
    assert model.encode(TEXT, bos="never").ids == model.encode(TEXT).ids[1:]


@pytest.mark.parametrize("bos", ["auto", "never", "always"])
@pytest.mark.parametrize("adds", [True, False])
def test_a_text_is_cut_to_exactly_what_fits(adds: bool, bos: Bos) -> None:
    model = causal(adds=adds)
    encoded = model.encode(" ".join(["telescope"] * 60), bos=bos, truncate=True)
    assert len(encoded) == model.max_length


def test_a_text_without_special_tokens_may_still_begin_with_bos() -> None:
    model = causal(adds=True)
    bare = model.encode(TEXT, special=False)
    assert model.encode(TEXT, special=False, bos="never") == bare
    assert model.encode(TEXT, special=False, bos="always").ids == (END, *bare.ids)


@pytest.mark.parametrize("study", ["vig2019", "clark2019", "luger2026"])
def test_a_bos_token_that_is_not_there_is_refused(study: str) -> None:
    for model in (bidirectional_model(), causal(adds=False, has=False)):
        with pytest.raises(ModelError, match=r"^The tokenizer \w+ has no BOS token[^.]*\.$"):
            model.trace(TEXT, bos="always")
        with pytest.raises(ModelError, match="has no BOS token"):
            hs.study(study, model, Corpus.from_sentences(make_sentences(4)), bos="always")
    assert bidirectional_model().encode(TEXT, bos="never") == bidirectional_model().encode(TEXT)


def test_no_other_choice_is_taken() -> None:
    with pytest.raises(ModelError, match="bos is 'yes'; choose auto, never or always"):
        causal_model().trace(TEXT, bos="yes")  # pyright: ignore[reportArgumentType]


def test_the_template_of_a_chat_says_itself_what_begins_it() -> None:
    with pytest.raises(ModelError, match="the whole input; leave text, pair and bos out"):
        causal_model().trace(messages=[{"role": "user", "content": "hi"}], bos="never")


def inputs_of(
    model: Model, corpus: Corpus, **options: str
) -> list[tuple[tuple[int, ...], list[bool]]]:
    """Ids and null tokens of every input of vig2019."""
    study = find_study("vig2019")
    setup = Setup(model, corpus, study.with_options(options), study.labels(corpus), 64)
    examples = sentence_inputs(setup, list(corpus), 0).examples
    return [
        (one.tokens.ids, list(one.null)) for one in map(examples.__getitem__, range(len(examples)))
    ]


@pytest.mark.parametrize("alignment", ["overlap", "strict", "words"])
@pytest.mark.parametrize("bos", ["auto", "never", "always"])
@pytest.mark.parametrize("adds", [True, False])
def test_vig2019_reads_what_a_trace_reads_and_its_first_token_is_null(
    adds: bool, bos: Bos, alignment: str
) -> None:
    model, corpus = causal(adds=adds), Corpus.from_sentences(make_sentences(6))
    made = inputs_of(model, corpus, bos=bos, alignment=alignment)
    for (ids, null), sentence in zip(made, corpus, strict=True):
        assert ids == model.encode(sentence.text, bos=bos).ids
        assert null == [True] + [False] * (len(ids) - 1)


def test_what_a_causal_tokenizer_puts_behind_a_text_is_null_too() -> None:
    corpus = Corpus.from_sentences(make_sentences(3))
    for ids, null in inputs_of(causal(adds=True, end=True), corpus):
        assert (ids[0], ids[-1]) == (END, END)
        assert null == [True, *[False] * (len(ids) - 2), True]


@pytest.mark.parametrize(
    ("study", "adds", "bos", "begins"),
    [
        ("vig2019", True, "auto", "<|end|>"),
        ("vig2019", True, "never", ""),
        ("vig2019", False, "auto", ""),
        ("vig2019", False, "always", "<|end|>"),
        ("clark2019", False, "auto", "<|end|>"),
        ("clark2019", False, "never", ""),
        ("luger2026", True, "auto", "<|end|>"),
        ("luger2026", True, "never", ""),
    ],
)
def test_a_result_says_which_token_its_inputs_begin_with(
    study: str, adds: bool, bos: str, begins: str
) -> None:
    quick = {
        "vig2019": {},
        "clark2019": {"probes": False, "gradients": False, "max_tokens": 24, "window": 24},
        "luger2026": {"context": 24, "repeated_sequences": 1, "period": 4, "needles": 1},
    }[study]
    corpus = Corpus.from_sentences(make_sentences(24))
    result = hs.study(study, causal(adds=adds), corpus, bos=bos, **quick)
    assert result.attrs["bos"] == begins
    assert json.loads(result.attrs["options"])["bos"] == bos
    if study == "vig2019":
        assert ("the BOS token <|end|>" in find_study(study).notes(result)) == bool(begins)


def test_bos_changes_the_numbers_of_vig2019() -> None:
    """Without it the first word is the null token, so that less of the attention is left out."""
    corpus = Corpus.from_sentences(make_sentences(12))
    with_bos, without = (
        hs.study("vig2019", causal(adds=True), corpus, bos=bos) for bos in ("auto", "never")
    )
    plain = hs.study("vig2019", causal_model(), corpus)
    assert with_bos.attrs["tokens"] == plain.attrs["tokens"] + 12
    np.testing.assert_array_equal(without["null_share"], plain["null_share"])
    assert abs(with_bos["null_share"] - plain["null_share"]).max() > 1e-3
