"""Mentions of both kinds of corpora, CoNLL-2012 and Universal Dependencies, are scored alike."""

from pathlib import Path

import pytest

from headscope.studies.clark2019.probes.coreference import (
    KINDS,
    find_baselines,
    make_queries,
)
from headscope.studies.clark2019.probes.mentions import SYSTEMS, phrases
from headscope.text.read import read_corpus
from headscope.text.segments import join
from headscope.text.sentence import Sentence

CONLL2012 = """#begin document (d); part 000
d 0 0 The DT * - - - - * (1
d 0 1 queen NN * - - - - * -
d 0 2 of IN * - - - - * -
d 0 3 Spain NNP * - - - - * (2)|1)
d 0 4 met VBD * - - - - * -
d 0 5 Ada NNP * - - - - * (3)
d 0 6 . . * - - - - * -

d 0 0 She PRP * - - - - * (1)
d 0 1 thanked VBD * - - - - * -
d 0 2 Ada NNP * - - - - * (3)
d 0 3 . . * - - - - * -

#end document
"""
_FIRST = """# newdoc id = d
# global.Entity = GRP-etype
# text = The queen of Spain met Ada.
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\tEntity=(1-person
2\tqueen\tqueen\tNOUN\tNN\tNumber=Sing\t5\tnsubj\t_\t_
3\tof\tof\tADP\tIN\t_\t4\tcase\t_\t_
4\tSpain\tSpain\tPROPN\tNNP\tNumber=Sing\t2\tnmod\t_\tEntity=(2-place)1)
5\tmet\tmeet\tVERB\tVBD\t_\t0\troot\t_\t_
6\tAda\tAda\tPROPN\tNNP\tNumber=Sing\t5\tobj\t_\tEntity=(3-person)|SpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t5\tpunct\t_\t_

"""
_SECOND = """# text = She thanked Ada.
1\tShe\tshe\tPRON\tPRP\tGender=Fem|Number=Sing|Person=3\t2\tnsubj\t_\tEntity=(1-person)
2\tthanked\tthank\tVERB\tVBD\t_\t0\troot\t_\t_
3\tAda\tAda\tPROPN\tNNP\tNumber=Sing\t2\tobj\t_\tEntity=(3-person)|SpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""
CONLLU = _FIRST + _SECOND


@pytest.fixture(params=[("d.gold_conll", CONLL2012), ("d.conllu", CONLLU)], ids=lambda p: p[0])
def window(request: pytest.FixtureRequest, tmp_path: Path) -> Sentence:
    name, text = request.param
    (tmp_path / name).write_text(text, encoding="utf-8")
    (document,) = read_corpus(tmp_path / name).documents()
    return join(document)


def test_head_words_and_kinds_are_found_with_and_without_trees(window: Sentence) -> None:
    found = [(window.words[phrase.head].text, phrase.kind) for phrase in phrases(window)]
    assert found == [
        ("queen", "nominal"),
        ("Spain", "proper"),
        ("Ada", "proper"),
        ("She", "pronoun"),
        ("Ada", "proper"),
    ]


def test_mentions_are_scored_and_resolved_alike(window: Sentence) -> None:
    queries = make_queries([window])
    assert queries.kinds.sum(0).tolist() == [2, 1, 1, 0]
    right = find_baselines(queries).sum(0)[:, KINDS.index("all")].tolist()
    # "She" is nearest to Ada, whom nothing excludes; the second Ada matches the first.
    assert dict(zip(SYSTEMS, right, strict=True)) == {"nearest": 0, "head_match": 1, "rules": 1}
