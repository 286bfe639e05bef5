"""The way of one sentence through vig2019: python -m tests.hops

Counts, over a study of one sentence, the distinct calls between functions of the package, the files
they lie in, and how often a call crosses from one package to another.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import headscope as hs

ROOT = str(Path(hs.__file__).parent)
Place = tuple[str, str]  # file, function


def main() -> None:
    """Run the study under a profile hook and print what was counted."""
    model, corpus = hs.load("mini-gpt2"), hs.demo_corpus().select([0])
    hs.study("vig2019", model, corpus)  # whatever is imported or cached is there now
    calls: set[tuple[Place, Place]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            caller = frame.f_back
            while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
                caller = caller.f_back
            if caller is not None:
                calls.add((_place(caller), _place(frame)))

    sys.setprofile(note)
    try:
        hs.study("vig2019", model, corpus)
    finally:
        sys.setprofile(None)
    files = {place[0] for call in calls for place in call}
    crossings = [call for call in calls if _package(call[0]) != _package(call[1])]
    print(f"{len(calls)} calls between functions of {len(files)} files")
    print(f"{len(crossings)} of them cross packages")


def _place(frame: FrameType) -> Place:
    return frame.f_code.co_filename, frame.f_code.co_qualname


def _package(place: Place) -> str:
    return Path(place[0]).relative_to(ROOT).parts[0]


if __name__ == "__main__":
    main()
