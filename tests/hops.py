"""The way of one sentence through a study: python -m tests.hops [STUDY ...]
   What loading, tracing and reading pass:    python -m tests.hops load trace read_corpus

Counts the functions of the package that are called, and the files they lie in: from `hs.study` to
all numbers of the study, to one of them, and to the end of the run, which also writes files and
judges claims. What reads a network, `model/`, counts as one file.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

import headscope as hs
from headscope.engine import Setup
from headscope.engine.question import Question
from headscope.metrics import Metric
from headscope.studies import find_study
from headscope.studies.study import Study

ROOT = Path(hs.__file__).parent
CAPTURE = "model"
NUMBERS = ("results/dataset.py", "build")  # called when the sums of all shards became numbers
OPTIONS: dict[str, dict[str, Any]] = {"vig2019": {}, "luger2026": {"context": 16, "rest": True}}
ONE = "entropy"  # a metric that both studies have
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
Function = tuple[str, str]  # file, name


class Watch:
    """Notes every function of the package that is called."""

    def __init__(self) -> None:
        self.functions: set[Function] = set()
        self.to_numbers: set[Function] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event != "call" or not path.is_relative_to(ROOT):
            return
        name = frame.f_code.co_qualname
        while name.endswith(COMPREHENSIONS):
            name = name.rpartition(".<locals>")[0]
        function = path.relative_to(ROOT).as_posix(), name
        if function == NUMBERS and not self.to_numbers:
            self.to_numbers = set(self.functions)
        if name != "<module>":
            self.functions.add(function)


def watch_call(call: Callable[[], object]) -> Watch:
    """Call something under a profile hook, the second time: what is imported is there by then."""
    call()
    watch = Watch()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return watch


def watch_study(study: Study) -> Watch:
    """Run a study of one sentence."""
    model, corpus, options = hs.load("mini-gpt2"), hs.demo_corpus().select([0]), OPTIONS[study.name]
    return watch_call(lambda: hs.study(study, model, corpus, **options))


def watch_load() -> Watch:
    """Load a bundled model."""
    return watch_call(lambda: hs.load("mini-gpt2"))


def watch_trace() -> Watch:
    """Trace two words."""
    model = hs.load("mini-gpt2")
    return watch_call(lambda: model.trace("Birds sing"))


def watch_reading() -> Watch:
    """Read a sentence of two words that no cache has."""
    words = "1\t{}\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsing\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "two-words.conllu"

        def read() -> None:
            file.write_text(words.format(f"B{uuid4().hex}"), encoding="utf-8")
            list(hs.read_corpus(file))

        return watch_call(read)


CALLS = {"load": watch_load, "trace": watch_trace, "read_corpus": watch_reading}


def with_one_metric(study: Study) -> Study:
    """The study with one metric of one question, without all that follows from others."""
    first = study.inputs[0]
    (asked,) = [question for question in first.questions if ONE in question.measures]

    def one_metric(setup: Setup) -> list[Metric]:
        return [metric for metric in asked.make(setup) if metric.name == ONE]

    return replace(
        study,
        inputs=(replace(first, questions=(Question((ONE,), one_metric),)),),
        later_stages=(),
        derive=lambda result: result,
        tables=(),
        claims=(),
        choices=lambda result: [],
    )


def counts(functions: Collection[Function]) -> str:
    """How many functions, in how many files."""
    outside = [file for file, _ in functions if package_of(file) != CAPTURE]
    files = len(set(outside)) + 1
    return f"{len(functions):4d} functions in {files:2d} files, {len(outside):3d} outside model/"


def package_of(file: str) -> str:
    """The room of a file."""
    return file.split("/", maxsplit=1)[0]


def main() -> None:
    """Print the counts of every study, and what one number takes of every file."""
    for name in sys.argv[1:] or [*OPTIONS, *CALLS]:
        if name in CALLS:
            functions = CALLS[name]().functions
            files = Counter(file for file, _ in functions)
            sys.stdout.write(f"{name}\n  {len(functions)} functions in {len(files)} files\n")
            continue
        study = find_study(name)
        every, one = watch_study(study), watch_study(with_one_metric(study))
        sys.stdout.write(
            f"{name}\n"
            f"  to all numbers        {counts(every.to_numbers)}\n"
            f"  to one number         {counts(one.to_numbers)}\n"
            f"  to the end of a run   {counts(every.functions)}\n"
        )
        files = Counter(file for file, _ in one.to_numbers if package_of(file) != CAPTURE)
        for file, count in files.most_common():
            sys.stdout.write(f"    {count:4d}  {file}\n")


if __name__ == "__main__":
    main()
