"""The way of one sentence through a study: python -m tests.hops [STUDY ...]

Counts the functions of the package that are called, and the files they lie in, from `hs.study` to
the first number of the result, and to the end of the run, which also writes files and judges
claims. What reads a network, `model/`, counts as one file.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import headscope as hs

ROOT = Path(hs.__file__).parent
CAPTURE = "model"
NUMBERS = ("results/dataset.py", "build")  # called when the sums of all shards became numbers
OPTIONS: dict[str, dict[str, Any]] = {"vig2019": {}, "luger2026": {"context": 16, "rest": True}}
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
Function = tuple[str, str]  # file, name


class Watch:
    """Notes every function of the package that is called."""

    def __init__(self) -> None:
        self.to_numbers: set[Function] | None = None
        self.functions: set[Function] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event != "call" or not path.is_relative_to(ROOT):
            return
        name = frame.f_code.co_qualname
        while name.endswith(COMPREHENSIONS):
            name = name.rpartition(".<locals>")[0]
        function = path.relative_to(ROOT).as_posix(), name
        if function == NUMBERS and self.to_numbers is None:
            self.to_numbers = set(self.functions)
        if name != "<module>":
            self.functions.add(function)


def watch_study(study: str) -> Watch:
    """Run a study of one sentence under a profile hook."""
    model, corpus = hs.load("mini-gpt2"), hs.demo_corpus().select([0])
    hs.study(study, model, corpus, **OPTIONS[study])  # what is imported or cached is there now
    watch = Watch()
    sys.setprofile(watch)
    try:
        hs.study(study, model, corpus, **OPTIONS[study])
    finally:
        sys.setprofile(None)
    return watch


def counts(functions: Iterable[Function]) -> str:
    """How many functions, in how many files."""
    functions = list(functions)
    files = {file for file, _ in functions if package_of(file) != CAPTURE}
    return f"{len(functions)} functions in {len(files) + 1} files"


def package_of(file: str) -> str:
    """The room of a file."""
    return file.split("/", maxsplit=1)[0]


def main() -> None:
    """Print the counts of every study, and the files with most functions."""
    for study in sys.argv[1:] or OPTIONS:
        watch = watch_study(study)
        to_numbers = watch.to_numbers or set()
        outside = [function for function in to_numbers if package_of(function[0]) != CAPTURE]
        sys.stdout.write(
            f"{study}\n"
            f"  to a number          {counts(to_numbers)}, {len(outside)} of them outside model/\n"
            f"  to the end of a run  {counts(watch.functions)}\n"
        )
        for file, count in Counter(file for file, _ in outside).most_common():
            sys.stdout.write(f"    {count:4d}  {file}\n")


if __name__ == "__main__":
    main()
