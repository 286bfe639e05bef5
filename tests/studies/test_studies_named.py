"""No study is known by name outside studies/, but where a user is told which one to run."""

from pathlib import Path

from headscope.studies import STUDIES

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
