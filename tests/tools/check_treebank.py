"""Compare the reader with a plain parse on whole files.

python -m tests.tools.check_treebank FILE…
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from headscope.text.corpus import Corpus
from headscope.text.readers.conll import read_conllu
from headscope.text.readers.lines import document_numbers
from headscope.text.sentence import Sentence
from tests.references.conllu import PlainSentence, plain_parse


def check_file(path: Path, corpus: Corpus) -> Counter[str]:
    """How many values were compared; an AssertionError names the first sentence that differs."""
    plain = plain_parse(path)
    assert len(plain) == len(corpus)
    counts: Counter[str] = Counter(sentences=len(plain))
    for expected, sentence in zip(plain, corpus, strict=True):
        assert_same(expected, sentence)
        counts["words"] += len(sentence.words)
        counts["heads"] += len(expected.heads)
        counts["relations"] += len(expected.deprels)
        counts["mentions"] += len(sentence.mentions)
    counts["entities"] = len({(s.document, m.entity) for s in corpus for m in s.mentions})
    return counts


def assert_same(expected: PlainSentence, sentence: Sentence) -> None:
    words = sentence.words
    assert sentence.text == expected.text, sentence.id
    assert sentence.document == expected.document, sentence.id
    assert [word.text for word in words] == expected.forms, sentence.id
    assert [word.upos or "_" for word in words] == expected.upos, sentence.id
    assert [word.xpos or "_" for word in words] == expected.xpos, sentence.id
    assert [word.feats or "_" for word in words] == expected.feats, sentence.id
    assert [word.head + 1 for word in words if word.head is not None] == expected.heads
    assert [word.deprel for word in words] == expected.deprels, sentence.id
    mentions = Counter((m.entity, m.spans[0][0] + 1, m.spans[0][1]) for m in sentence.mentions)
    assert mentions == expected.mentions, sentence.id
    assert all(len(mention.spans) == 1 for mention in sentence.mentions)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name in sys.argv[1:]:
            path = Path(name)
            sentences = read_conllu(path, document_numbers())
            corpus = Corpus.write(Path(directory) / f"{path.stem}.parquet", sentences)
            spelled = sum(s.text[w.start : w.end] == w.text for s in corpus for w in s.words)
            counts = check_file(path, corpus)
            print(f"{path.name}: all equal:", dict(counts), f"words at their span: {spelled}")


if __name__ == "__main__":
    main()
