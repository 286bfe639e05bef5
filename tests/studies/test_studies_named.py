"""No study is known by name outside studies/, nor is a measure of one.

Pages, sentences and exports ask the run: a measure says what it is for, an array by its dimensions
what it holds, and a study which measures are shown first.
"""

import re
from pathlib import Path

from headscope.metrics import importance
from headscope.portrait import cost
from headscope.portrait.stage import BEHAVIOUR, NAMES
from headscope.studies import STUDIES, find_study

SOURCE = Path(__file__).parents[2] / "src" / "headscope"
# Commands that a user is told to run.
TO_USERS = {
    "static/explorer/messages.js": "how to make a first run",
    "cli/heads.py": "which study has the best head of every relation",
    "exports/kv.py": "which study has what a plan of keys and values needs",
}


def test_no_module_outside_the_studies_knows_one_by_name() -> None:
    naming: set[str] = set()
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js")]:
        place = path.relative_to(SOURCE).as_posix()
        text = path.read_text(encoding="utf-8")
        if not place.startswith("studies/") and any(study in text for study in STUDIES):
            naming.add(place)
    assert naming == TO_USERS.keys()


# Words that measures share with something else.
OTHERS = {
    "cli/compare.py": "how far a matched head is from its partner",
    "explorer/answers/__init__.py": "the page of clusters",
    "explorer/pages.py": "the page of clusters",
    "exports/kv.py": "the measures that a plan of keys and values is made from",
    "exports/headvis.py": "the format of another tool, which has names for our measures",
    "observe/layer.py": "sums of a layer",
    "results/examples.py": "pairs of tokens of an example, by their distance",
    "static/pages/compare.js": "how far a matched head is from its partner",
    "text": "paragraphs of a corpus",
    "views/weights.py": "numbers of one text",
}


def test_no_module_outside_the_studies_knows_a_measure_by_name() -> None:
    listed: set[str] = set()
    for study in map(find_study, STUDIES):
        listed.update(measure.name for measure in study.measures)
        listed.update(study.shown_first)
        for kind in study.inputs:
            for question in kind.questions:
                listed.update(question.measures)
    # Portraits and importance are no study's: any may have them in addition.
    declared = (BEHAVIOUR, *importance.MEASURES, *cost.MEASURES)
    additions = {*NAMES, *(measure.name for measure in declared)}
    measures = {name for name in listed if name.isidentifier()} - additions
    # The name alone, a variable of it such as NAME_se, or a slice of it.
    spelled = re.compile(rf"""["']({"|".join(sorted(measures))})(_[a-z]+)?(~[^"']*)?["']""")
    naming: set[str] = set()
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js")]:
        place = path.relative_to(SOURCE).as_posix()
        text = path.read_text(encoding="utf-8")
        if not place.startswith(("studies/", "metrics/")) and spelled.search(text):
            naming.add(place if place in OTHERS else place.split("/")[0])
    assert naming == OTHERS.keys()
