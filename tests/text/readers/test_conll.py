from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus
from headscope.text.readers.conll import Fused, merge_fused, read_conll2012, read_conllu
from headscope.text.sentence import ROOT, Mention, Sentence, Word, problem
from tests.references.random_sentences import heads, sentences, to_conllu
from tests.tools.check_treebank import check_file


def read(path: Path, text: str, fused: Fused = "keep") -> list[Sentence]:
    file = path / "sample.conllu"
    file.write_text(text, encoding="utf-8")
    return list(read_conllu(file, map(str, count(1)), fused=fused))


def row(*cells: object) -> str:
    """One line: id, form, head, relation, MISC."""
    number, form, head, deprel, misc = cells
    return f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{deprel}\t_\t{misc}\n"


def words(*forms: str) -> str:
    rows = [row(i, form, i - 1, "dep", "_") for i, form in enumerate(forms, start=1)]
    return "".join(rows) + "\n"


GUM = (
    "# newdoc id = GUM_x\n"
    "# global.Entity = GRP-etype-infstat-salience-centering-minspan-link-identity\n"
    "# newpar\n# newpar_block = p (1 s)\n# sent_id = x-1\n"
    "# text = Zurbarán’s cycle isn't old.\n"
    + row("1-2", "Zurbarán’s", "_", "_", "_")
    + row(1, "Zurbarán", 3, "nmod:poss", "Discourse=a:1->2|Entity=(44-object-new-sss-cf2-3-coref"
          "(47-person-giv:inact-sss-cf3-1-coref-Francisco_de_Zurbarán")
    + row(2, "’s", 1, "case", "Bridge=3<44|Entity=47)")
    + row(3, "cycle", 6, "nsubj", "Entity=44)(9-time-new-sss-cf1-1-sgl)|SplitAnte=1<2")
    + row("4-5", "isn't", "_", "_", "_")
    + row(4, "is", 6, "cop", "Entity=(44-object-new-sss-cf2-3-coref")
    + row(5, "n't", 6, "advmod", "_")
    + row("5.1", "very", "_", "_", "_")
    + row(6, "old", 0, "root", "Entity=44)|SpaceAfter=No")
    + row(7, ".", 6, "punct", "_")
    + "\n"
)  # fmt: skip


def test_gum_notation_reads_as_a_plain_parse_of_it(tmp_path: Path) -> None:
    corpus = Corpus.from_sentences(read(tmp_path, GUM))
    assert check_file(tmp_path / "sample.conllu", corpus)["mentions"] == 4


def test_nested_single_and_repeated_mentions(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, GUM)
    assert sentence.mentions == (
        Mention("44", ((0, 3),)),
        Mention("47", ((0, 2),)),
        Mention("9", ((2, 3),)),
        Mention("44", ((3, 6),)),
    )


def test_words_of_a_contraction_share_out_its_characters(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, GUM)
    assert [(w.text, sentence.text[w.start : w.end]) for w in sentence.words[3:5]] == [
        ("is", "is"),
        ("n't", "n't"),
    ]


@settings(max_examples=150)
@given(st.lists(sentences(), min_size=1, max_size=3))
def test_reading_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, given: list[Sentence]
) -> None:
    text = "".join(map(to_conllu, given))
    assert read(tmp_path_factory.mktemp("conllu"), text) == given


FUSED = (
    "# text = Il parle du film.\n"
    + row(1, "Il", 2, "nsubj", "_")
    + row(2, "parle", 0, "root", "_")
    + row("3-4", "du", "_", "_", "_")
    + row(3, "de", 5, "case", "_")
    + row(4, "le", 5, "det", "Entity=(e1-object-2-")
    + row(5, "film", 2, "obl", "Entity=e1)|SpaceAfter=No")
    + row(6, ".", 2, "punct", "_")
    + "\n"
)


def test_fused_words_keep_the_whole_span_of_what_is_written(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, FUSED)
    assert [(w.text, w.start, w.end) for w in sentence.words[2:4]] == [
        ("de", 9, 11),
        ("le", 9, 11),
    ]
    assert sentence.mentions == (Mention("e1", ((3, 5),)),)


def test_merging_makes_fused_words_one_word_of_the_tree(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, FUSED, fused="merge")
    assert [(w.text, w.head, w.deprel) for w in sentence.words] == [
        ("Il", 1, "nsubj"),
        ("parle", ROOT, "root"),
        ("du", 3, "case"),
        ("film", 1, "obl"),
        (".", 1, "punct"),
    ]
    assert sentence.mentions == (Mention("e1", ((2, 4),)),)


def test_text_decides_the_spacing_where_it_is_given(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, "# text = a b\u00a0 c\n" + words("a", "b", "c"))
    assert [(w.start, w.end) for w in sentence.words] == [(0, 1), (2, 3), (5, 6)]


def test_without_text_the_words_and_their_spacing_make_it(tmp_path: Path) -> None:
    rows = row(1, "a", 0, "root", "SpaceAfter=No") + row(2, "10 000", 1, "x", "NoSpaceAfter=No")
    assert read(tmp_path, rows + row(3, "b", 1, "x", "_"))[0].text == "a10 000 b"


def test_documents_and_paragraphs_are_counted(tmp_path: Path) -> None:
    one = words("x")
    text = f"{one}# newpar\n{one}# newdoc id = d\n# newpar\n{one}{one}# newpar id = p\n{one}"
    found = [(s.document, s.paragraph) for s in read(tmp_path, text + f"# newdoc\n{one}")]
    assert found == [("1", 0), ("1", 1), ("d", 0), ("d", 0), ("d", 1), ("2", 0)]


def test_a_mention_of_an_empty_node_alone_has_no_words_and_is_left_out(tmp_path: Path) -> None:
    text = (
        row(1, "a", 0, "root", "_")
        + row("1.1", "_", "_", "_", "Entity=(e1)(e2")
        + row(2, "b", 1, "x", "Entity=e2)")
    )
    assert read(tmp_path, text)[0].mentions == (Mention("e2", ((1, 2),)),)


def test_the_older_notation_closes_with_type_and_id(tmp_path: Path) -> None:
    text = (
        "# global.Entity = entity-GRP-infstat\n"
        + row(1, "a", 0, "root", "Entity=(person-7-new")
        + row(2, "b", 1, "x", "Entity=person-7)")
    )
    assert read(tmp_path, text)[0].mentions == (Mention("7", ((0, 2),)),)


def test_windows_line_ends_and_a_byte_order_mark_are_no_text(tmp_path: Path) -> None:
    (sentence,) = read(
        tmp_path, "\ufeff" + "# text = a b\n".replace("\n", "\r\n") + words("a", "b")
    )
    assert sentence.text == "a b"


def test_several_roots_and_missing_heads_are_accepted(tmp_path: Path) -> None:
    rows = row(1, "a", 0, "root", "_") + row(2, "b", 0, "root", "_") + row(3, "c", "_", "_", "_")
    assert [w.head for w in read(tmp_path, rows)[0].words] == [ROOT, ROOT, None]


def test_bytes_that_are_not_utf8_are_named_by_file_and_offset(tmp_path: Path) -> None:
    file = tmp_path / "latin.conllu"
    start = b"# text = a\n# speaker = "
    file.write_bytes(start + b"Zurbar\xe1n\n")
    with pytest.raises(
        CorpusError, match=rf"latin.conllu is not UTF-8 at byte offset {len(start) + 6}"
    ):
        list(read_conllu(file, iter([])))


@given(st.data())
def test_merged_words_form_a_tree_over_the_written_tokens(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    arcs = data.draw(heads(sum(sizes)))
    starts = [token for token, size in enumerate(sizes) for _ in range(size)]
    words = tuple(
        Word("w", start, start + 1, head=head) for start, head in zip(starts, arcs, strict=True)
    )
    sentence = Sentence("x" * len(sizes), words, (Mention("e", ((0, len(words)),)),))
    merged = merge_fused(sentence)
    if sum(sizes) == len(sizes):
        assert merged == sentence
        return
    assert [word.start for word in merged.words] == list(range(len(sizes)))
    assert problem(merged) is None
    assert merged.mentions == (Mention("e", ((0, len(sizes)),)),)
    for token, word in enumerate(merged.words):
        old = [
            ROOT if a == ROOT else starts[a]
            for s, a in zip(starts, arcs, strict=True)
            if s == token
        ]
        assert word.head in old


def row_2012(index: int, word: str, tag: str, coreference: str, predicates: str = "") -> str:
    return f"bc/x 0 {index} {word} {tag} (TOP* - - - Speaker#1 * {predicates} {coreference}\n"


def read_2012(path: Path, text: str) -> list[Sentence]:
    file = path / "sample.conll"
    file.write_text(text, encoding="utf-8")
    return list(read_conll2012(file, map(str, count(1))))


DOCUMENT = (
    "#begin document (bc/x); part 000\n"
    + row_2012(0, "-LRB-", "-LRB-", "(12|(3")
    + row_2012(1, "She", "PRP", "(7)|3)", "(V*) *")
    + row_2012(2, "left", "VBD", "12)")
    + row_2012(3, "/.", ".", "-")
    + "\n"
    + row_2012(0, "So", "RB", "-")
    + "\n#end document\n#begin document (bc/x); part 001\n"
    + row_2012(0, "It", "PRP", "(3)")
    + "\n#end document\n"
)


def test_words_tags_and_crossing_mentions(tmp_path: Path) -> None:
    first = read_2012(tmp_path, DOCUMENT)[0]
    assert first.text == "( She left ."
    assert [(w.xpos, first.text[w.start : w.end]) for w in first.words] == [
        ("-LRB-", "("),
        ("PRP", "She"),
        ("VBD", "left"),
        (".", "."),
    ]
    assert first.mentions == (
        Mention("12", ((0, 3),)),
        Mention("3", ((0, 2),)),
        Mention("7", ((1, 2),)),
    )
    assert all(word.head is None for word in first.words)


def test_the_part_belongs_to_the_document(tmp_path: Path) -> None:
    found = [(sentence.document, sentence.id) for sentence in read_2012(tmp_path, DOCUMENT)]
    assert found == [("bc/x; part 000", "1"), ("bc/x; part 000", "2"), ("bc/x; part 001", "1")]
