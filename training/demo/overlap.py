"""Look for sentences of the demo articles in the text that the bundled models were trained on.

Every run of eight words of an article's paragraphs (letters and digits, lower-cased) is looked up
in the training text. The program prints what it finds and ends with status 1 when it finds any.

    python training/demo/overlap.py TEXT.xz
"""

from __future__ import annotations

import argparse
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from build import ARTICLES, Article, read_articles

SHINGLE = 8
WORD = re.compile(r"[^\W_]+")


def shingles(text: str) -> Iterator[str]:
    """Give every run of SHINGLE words of the text."""
    words = WORD.findall(text.lower())
    for start in range(len(words) - SHINGLE + 1):
        yield " ".join(words[start : start + SHINGLE])


def article_shingles(articles: list[Article]) -> dict[str, str]:
    """Map each run of words in the articles to the place where it stands."""
    places: dict[str, str] = {}
    for article in articles:
        for paragraph in article.paragraphs:
            for shingle in shingles(paragraph.text):
                places[shingle] = f"{article.path.name}:{paragraph.line}"
    return places


def find_shared(places: dict[str, str], text: Path) -> tuple[set[str], int]:
    """Return the runs that stand in the training text, and how many runs that text has."""
    shared: set[str] = set()
    total = 0
    with lzma.open(text, "rt", encoding="utf-8") as lines:
        for line in lines:
            for shingle in shingles(line):
                total += 1
                if shingle in places:
                    shared.add(shingle)
    return shared, total


def main() -> None:
    parser = argparse.ArgumentParser(description="Look for the demo articles in a training text.")
    parser.add_argument("text", type=Path, help="the training text, compressed with xz")
    parser.add_argument("--articles", type=Path, default=ARTICLES, help="folder of the articles")
    arguments = parser.parse_args()
    articles = read_articles(arguments.articles)
    places = article_shingles(articles)
    shared, total = find_shared(places, arguments.text)
    for shingle in sorted(shared):
        print(f"{places[shingle]}: {shingle}")
    print(
        f"{len(articles)} articles, {len(places)} runs of {SHINGLE} words; "
        f"{len(shared)} of them stand among the {total} runs of the training text"
    )
    sys.exit(1 if shared else 0)


if __name__ == "__main__":
    main()
