"""The site before it is built: every page has a place, every link and anchor leads somewhere.

`make docs` builds it, which takes longer than a test may; what it would complain of is found here.
"""

import json
import re
from pathlib import Path

import pytest

import headscope as hs
from docs.site import embedded, readme, stage, versions
from docs.site.links import Site
from docs.site.notebooks import to_markdown

LINK = re.compile(r"\]\(([^)\s#:]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#{1,4} (.+)$", re.MULTILINE)
CODE = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
PAGES = [stage.ROOT / source for source in stage.sources().values() if source.endswith(".md")]


def anchors(page: Path) -> set[str]:
    """Names of headings as the repository's own pages make them."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    plain = [re.sub(r"[^\w\- ]", "", title.lower()).strip() for title in HEADING.findall(text)]
    return {title.replace(" ", "-") for title in plain}


def test_every_page_has_one_place_in_the_navigation() -> None:
    listed = [f"{page}.md" for pages in stage.NAVIGATION.values() for page in pages]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(stage.sources()) - {"index.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_anchor_is_a_heading(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for file, anchor in LINK.findall(text):
        assert anchor in anchors(page.parent / file if file else page), f"{file}#{anchor}"


def test_pages_are_staged_with_frames_links_and_contents(tmp_path: Path) -> None:
    stage.stage(tmp_path / "pages", frames=False)
    home = (tmp_path / "pages" / "index.md").read_text(encoding="utf-8")
    assert '<iframe src="embedded/head-view.html"' in home
    assert "(gallery/induction-head.md)" in home and "gallery/induction-head\n" in home
    security = (tmp_path / "pages" / "contributing.md").read_text(encoding="utf-8")
    assert "(security.md)" in security and "(conduct.md)" in security
    assert (tmp_path / "pages" / "gallery" / "induction-head-1.png").read_bytes()[1:4] == b"PNG"
    left = [file for file in (tmp_path / "pages").rglob("*.md") if "<!-- live" in file.read_text()]
    assert left == []


def test_a_frame_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(KeyError, match="head-view"):
        embedded.frame("nonsense")


def test_outputs_that_are_html_are_never_taken_over() -> None:
    shown = {"data": {"text/html": "<script>1</script>", "text/plain": "a view"}}
    cell = {"cell_type": "code", "source": ["view"], "outputs": [shown]}
    page, pictures = to_markdown(json.dumps({"cells": [cell]}), "x")
    assert page == "```python\nview\n```\n\n```text\na view\n```\n"
    assert pictures == {}


def test_broken_links_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<p id="here">')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"><a href="b.html#gone"><a href="c.html"><a href="https://x.org/">'
        '<script src="https://x.org/y.js"></script>'
    )
    assert list(Site(tmp_path.resolve()).faults()) == [
        "a.html: b.html#gone: no such anchor",
        "a.html: c.html: no such file",
        "a.html: https://x.org/y.js: fetched from elsewhere",
    ]


def test_versions_stand_beside_each_other_and_the_highest_is_stable(tmp_path: Path) -> None:
    new, pages = tmp_path / "new", tmp_path / "pages"
    new.mkdir()
    pages.mkdir()
    for ref in ("main", "v0.2.0", "v0.10.0", "v0.9.0"):
        (new / "index.html").write_text(ref)
        listed = versions.publish(new, pages, ref)
    assert listed == ["stable", "dev", "0.10.0", "0.9.0", "0.2.0"]
    assert (pages / "stable" / "index.html").read_text() == "v0.10.0"
    assert (pages / "dev" / "index.html").read_text() == "main"
    assert "stable/" in (pages / "index.html").read_text()


def test_links_of_the_readme_work_elsewhere() -> None:
    text = "[a](docs/a.md) ![b](docs/b.png) [c](https://c.org) [d](#d)"
    assert readme.absolute(text, "https://r") == (
        "[a](https://r/blob/main/docs/a.md) ![b](https://r/raw/main/docs/b.png) "
        "[c](https://c.org) [d](#d)"
    )


def test_the_reference_has_every_public_name() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (stage.DOCS / "api").glob("*.md"))
    named = set(re.findall(r"^\.\. auto\w+:: headscope\.(\w+)$", pages, re.MULTILINE))
    assert set(hs.__all__) - named == set()


def test_what_llms_txt_links_is_there() -> None:
    text = (stage.DOCS / "llms.txt").read_text(encoding="utf-8")
    pages = {page.replace(".md", ".html") for page in stage.sources()} | set(stage.AS_THEY_ARE)
    assert set(re.findall(r"\]\(([^)]+)\)", text)) - pages == set()
