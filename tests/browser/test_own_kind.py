"""A kind of view of one's own in Chromium: two folders, and nothing else touched."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from headscope.views.view import open_view
from tests.browser.conftest import Watched
from tests.references.rings import install_rings
from tests.references.traces import random_trace

pytestmark = pytest.mark.browser


def test_its_page_draws_it_with_its_own_settings(
    open_page: Callable[..., Watched], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_rings(tmp_path / "packages", monkeypatch)
    page = open_page(open_view(random_trace(), "rings", head=1))
    drawn = page.page.locator(".rings")
    expect(drawn).to_have_text("3 rings of head 1, turned left")
    page.page.get_by_role("radio", name="R", exact=True).click()
    expect(drawn).to_have_text("3 rings of head 1, turned right")
    assert page.state()["turn"] == "right"
