"""The API on one page is what the package says of itself; so is the page of families."""

import json

from tests.docs.page_module import DOCS, load_page


def test_the_api_on_one_page_is_current() -> None:
    remedy = "run `python docs/compact_page.py > docs/api/compact.md`"
    page = (DOCS / "api" / "compact.md").read_text(encoding="utf-8")
    assert page == load_page("compact_page").page(), remedy


def test_the_tables_of_families_are_current() -> None:
    families = json.loads((DOCS / "families.json").read_text(encoding="utf-8"))
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    assert load_page("models_page").page(page, families) == page, "run `python docs/models_page.py`"
    assert len(families["captured"]) >= 36
