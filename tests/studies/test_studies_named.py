"""No study is known by name outside studies/, but where a user is told which one to run.

Nor is a measure of one, but in the files that own it or offer it first.
"""

import re
from pathlib import Path

from headscope.portrait.stage import BEHAVIOUR, NAMES
from headscope.studies import STUDIES, find_study

SOURCE = Path(__file__).parents[2] / "src" / "headscope"
TO_USERS = {
    "cli/study.py": "help of options that one study has",
    "cli/export.py": "which study has what HeadVis reads",
    "explorer/answers/__init__.py": "which study has the map of heads",
    "explorer/answers/card.py": "which study keeps examples",
    "exports/graph.py": "which study has what heads are fed by",
    "exports/headvis.py": "which study has what HeadVis reads",
    "metrics": "the studies that read a measure, in a comment",
}


def test_no_module_outside_the_studies_knows_one_by_name() -> None:
    naming: set[str] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        text = path.read_text(encoding="utf-8")
        if not place.startswith("studies/") and any(study in text for study in STUDIES):
            naming.add("metrics" if place.startswith("metrics/") else place)
    assert naming - TO_USERS.keys() == set()


OWNERS = {
    "cli/compare.py": "the distance of matched heads is no measure",
    "engine/look_again.py": "example_peak decides which inputs are looked at again",
    "explorer/answers/__init__.py": "the map of heads and its clusters",
    "explorer/answers/card.py": "similar heads, by the map's distances",
    "explorer/answers/runs.py": "how many words a relation was scored on",
    "explorer/pages.py": "the page of clusters",
    "exports/headvis.py": "HeadVis's own names of measures",
    "observe/layer.py": "sums of a layer",
    "results/claims.py": "the example of a claim",
    "results/cost.py": "what a head is worth, from its replacement",
    "results/dataset.py": "dimensions of what is no measure of heads",
    "results/examples.py": "the sort of examples by distance",
    "results/feeds.py": "what feeds a head, from its composition",
    "static/explorer/api.js": "the address of the clusters",
    "static/pages/clusters.js": "a colour to begin with",
    "static/pages/compare.js": "the distance of matched heads is no measure",
    "static/pages/overview.js": "measures to begin with",
    "static/pages/question.js": "measures that answer a question, for whoever does not know them",
    "text": "paragraphs are a field of a corpus",
    "views/weights.py": "numbers of one text",
}


def test_no_module_outside_the_studies_knows_a_measure_by_name() -> None:
    listed: set[str] = set()
    for study in map(find_study, STUDIES):
        listed.update(measure.name for measure in study.measures)
        for kind in study.inputs:
            for question in kind.questions:
                listed.update(question.measures)
    measures = {name for name in listed if name.isidentifier()} - {*NAMES, BEHAVIOUR.name}
    # The name alone, a variable of it such as NAME_se, or a slice of it.
    spelled = re.compile(rf"""["']({"|".join(sorted(measures))})(_[a-z]+)?(~[^"']*)?["']""")
    naming: set[str] = set()
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js")]:
        place = path.relative_to(SOURCE).as_posix()
        text = path.read_text(encoding="utf-8")
        if not place.startswith(("studies/", "metrics/")) and spelled.search(text):
            naming.add(place if place in OWNERS else place.split("/")[0])
    assert naming == OWNERS.keys()
