"""Documents for fitting, choosing and scoring never overlap."""

import headscope as hs
from headscope.portrait.texts import FEWEST, find_documents, part_of_documents
from tests.references.portrait_sample import sample, setup


def test_no_document_is_in_two_parts() -> None:
    texts = sample("mini-gpt2").texts
    documents = {part: {text.document for text in texts[part]} for part in texts}
    assert documents["fit"] and documents["choose"] and documents["score"]
    assert not documents["fit"] & documents["choose"]
    assert not documents["fit"] & documents["score"]
    assert not documents["choose"] & documents["score"]


def test_a_passage_is_of_one_document_and_within_its_length() -> None:
    by_document = dict.fromkeys({text.document for text in sample("mini-bert").texts["fit"]}, "")
    for sentence in hs.demo_corpus():
        if sentence.document in by_document:
            by_document[sentence.document] += f" {sentence.text}"
    passages = [text for text in sample("mini-bert").texts["fit"] if text.is_passage]
    assert len(passages) == 48
    for passage in passages:
        assert passage.sentence.text in by_document[passage.document]
        assert len(passage) <= 112


def test_blocks_of_sentences_take_the_place_of_few_documents() -> None:
    corpus = hs.demo_corpus()
    few = corpus.select([row for row, each in enumerate(corpus) if each.document == "apollo-11"])
    assert [(each.start, each.stop) for each in find_documents(few)] == [(0, 16), (16, 18)]
    assert part_of_documents({each.name for each in find_documents(few)}) == {}
    assert FEWEST == 8


def test_the_sample_is_the_same_whenever_it_is_drawn() -> None:
    from headscope.portrait.sample import Sample

    again = Sample.draw(setup("mini-gpt2"), "auto")
    first = sample("mini-gpt2")
    assert [text.tokens.ids for text in again.texts["score"]] == [
        text.tokens.ids for text in first.texts["score"]
    ]
    assert again.vocabulary == first.vocabulary
