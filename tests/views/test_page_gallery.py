"""Several texts as one page."""

import json
import re
from pathlib import Path

import pytest

import headscope as hs
from headscope.errors import ViewError
from tests.references.traces import HOSTILE, known_trace, random_trace, side


def test_traces_and_views_are_listed_by_text_and_title() -> None:
    trace = known_trace()
    page = hs.gallery(
        {"First": trace, "": random_trace().model_view()}, layer=0, title="Lesson 1"
    ).html()
    found = re.search(r'id="headscope-gallery">(.*?)</script>', page)
    assert found is not None
    assert json.loads(found[1]) == {
        "title": "Lesson 1",
        "texts": [
            {"title": "First", "text": "one two three"},
            {"title": "", "text": "The quick brown fox jumps over the lazy dog ."},
        ],
    }
    kinds = re.findall(r'id="headscope-\d-header">\{"version":\d+,"kind":"(\w+)"', page)
    assert kinds == ["head", "model"]


def test_a_gallery_loads_nothing_and_no_token_ends_its_scripts() -> None:
    page = hs.gallery([random_trace(tokens=side(HOSTILE)), known_trace()], title="<b>").html()
    assert "default-src 'none'" in page and "<title>&lt;b&gt;</title>" in page
    assert 'onerror="window.hacked' not in page
    assert page.count("</script>") == page.count("<script")


def test_a_gallery_is_saved_as_a_page_only(tmp_path: Path) -> None:
    gallery = hs.gallery([known_trace(), random_trace()])
    assert gallery.save(tmp_path / "x.html").read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(ViewError, match=r"A gallery is a page: save it as \.html, not as 'x\.svg'"):
        gallery.save(tmp_path / "x.svg")
    assert "<iframe" in gallery.iframe(height=300)
    assert repr(gallery).splitlines() == [
        "Attention: 2 texts",
        "  one two three",
        "  The quick brown fox jumps over the lazy dog .",
    ]


def test_an_empty_gallery_is_refused() -> None:
    with pytest.raises(ViewError, match="The gallery is empty"):
        hs.gallery([])
