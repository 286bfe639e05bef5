"""The demo of one bundled model: views, both studies, their reports, and what they found.

python -m headscope.demo.one_model MODEL FOLDER [SENTENCES]
"""

import gc
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headscope as hs
from headscope.demo import MODELS, USERS_MISTAKE
from headscope.errors import HeadscopeError
from headscope.results.statements import JudgedClaim, read_statements
from headscope.workers.threads import collect_seldom

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.text.corpus import Corpus

STUDIES = ("vig2019", "clark2019")
TEXT = "The ship left the harbour at dawn, and when the ship came back, its captain was gone."
VERDICTS = {"yes": "hold", "no": "do not hold", "unclear": "are unclear"}
SHOWN = 5  # findings of a run that are told at the end; the report has all
# Well under a minute on two cores: a part of the corpus, and one seed of the probes.
OPTIONS: dict[str, dict[str, Any]] = {
    "vig2019": {"sentences": 400},
    "clark2019": {"sentences": 12, "probe_seeds": 1},
}


def show(name: str, folder: Path, sentences: int | None) -> Iterator[str]:
    """Do all of it and say what was found and what to open."""
    model = hs.load(name)
    if name == MODELS[0]:
        yield from _save_views(model, folder / "views")
    corpus = hs.demo_corpus()
    for study in STUDIES:
        yield from _run(study, model, corpus, folder / f"{study}-{name}", sentences)


def _save_views(model: "Model", folder: Path) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    trace = model.trace(TEXT)
    for kind, view in (
        ("head", trace.head_view()),
        ("model", trace.model_view()),
        ("neuron", trace.neuron_view()),
    ):
        yield f"View: {view.save(folder / f'{kind}.html')}"


def _run(
    study: str, model: "Model", corpus: "Corpus", path: Path, sentences: int | None
) -> Iterator[str]:
    options = dict(OPTIONS.get(study, {}))
    if sentences is not None:
        options["sentences"] = sentences
    result = hs.study(study, model, corpus, path, **options)
    found = read_statements(result).findings
    page = hs.report(path, formats=["svg"])  # what the page needs
    print(f"{study} on {model.name}: {page}", file=sys.stderr, flush=True)
    yield f"\n{study} on {model.name}: {_count(found)}"
    for each in [each for each in found if each.holds == "yes"][:SHOWN]:
        yield f"  {each.claim} {each.measured}"
    yield f"  Open {page}"


def _count(found: Sequence[JudgedClaim]) -> str:
    """How many claims of the paper this small model bears out."""
    counts = Counter(each.holds for each in found)
    said = [f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict]]
    return f"of the paper's claims {', '.join(said)}; for example"


def main() -> int:
    """Print what was found; a user's mistake is one sentence and its own exit code."""
    name, folder, *count = sys.argv[1:]
    collect_seldom()
    try:
        print("\n".join(show(name, Path(folder), int(count[0]) if count else None)))
    except HeadscopeError as error:
        print(error)
        return USERS_MISTAKE
    except KeyboardInterrupt:
        return 130
    finally:
        gc.freeze()  # nothing is looked through once more at the end
    return 0


if __name__ == "__main__":
    sys.exit(main())
