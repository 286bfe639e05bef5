"""How fast corpora are read: our CoNLL-U reader, the conllu package, Parquet made once.

    python -m benchmarks.reading [FILE.conllu]

Without a file the bundled corpus is read ten times over. Ratios are against the conllu package and
against our own reader, all measured in one run on one machine.
"""

import gc
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import conllu
from rich.console import Console
from rich.table import Table

from headscope.text.corpus import Corpus
from headscope.text.readers.conll import read_conllu
from headscope.text.readers.lines import document_numbers

REPEATS = 3


def best_seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        gc.collect()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def repeated_demo(path: Path, copies: int = 10) -> Path:
    text = (files("headscope.text") / "bundled" / "demo.conllu").read_text(encoding="utf-8")
    path.write_text(text * copies, encoding="utf-8")
    return path


def read_with_ours(path: Path) -> int:
    return sum(1 for _ in read_conllu(path, document_numbers()))


def read_with_conllu(path: Path) -> int:
    with path.open(encoding="utf-8") as file:
        return sum(1 for _ in conllu.parse_incr(file))


def open_parquet(path: Path) -> tuple[int, str, str]:
    """Ready to use: the length, the fingerprint and the first sentence."""
    corpus = Corpus.open(path)
    return len(corpus), corpus.fingerprint, corpus[0].text


def measure(source: Path, target: Path) -> tuple[int, dict[str, float]]:
    corpus = Corpus.write(target, read_conllu(source, document_numbers()))
    return len(corpus), {
        "conllu package, whole file": best_seconds(lambda: read_with_conllu(source)),
        "our reader, whole file": best_seconds(lambda: read_with_ours(source)),
        "our reader, then write Parquet": best_seconds(
            lambda: Corpus.write(target, read_conllu(source, document_numbers()))
        ),
        "Parquet, every sentence decoded": best_seconds(
            lambda: sum(1 for _ in Corpus.open(target))
        ),
        "Parquet, open and first sentence": best_seconds(lambda: open_parquet(target)),
    }


def show(source: Path, target: Path, sentences: int, seconds: dict[str, float]) -> None:
    megabytes = [path.stat().st_size / 1e6 for path in (source, target)]
    title = (
        f"{source.name}: {sentences:,} sentences, {megabytes[0]:.1f} MB, "
        f"{megabytes[1]:.1f} MB as Parquet; best of {REPEATS}"
    )
    table = Table(title=title)
    table.add_column("")
    for name in ("seconds", "sentences/s", "× conllu package", "× our reader"):
        table.add_column(name, justify="right")
    package, ours = seconds["conllu package, whole file"], seconds["our reader, whole file"]
    for name, value in seconds.items():
        rate = "" if "open" in name else f"{sentences / value:,.0f}"
        table.add_row(name, f"{value:.4f}", rate, f"{package / value:.1f}", f"{ours / value:.1f}")
    Console(width=110).print(table)


def main() -> None:
    directory = Path(tempfile.mkdtemp(prefix="headscope-bench-"))
    try:
        given = sys.argv[1:]
        source = Path(given[0]) if given else repeated_demo(directory / "demo.conllu")
        target = directory / "corpus.parquet"
        sentences, seconds = measure(source, target)
        show(source, target, sentences, seconds)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
