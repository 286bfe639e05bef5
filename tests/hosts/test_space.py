"""The folder that runs as a hosted demo: it starts, and shows the view of a text."""

from pathlib import Path

from playwright.sync_api import BrowserContext, expect

from tests.hosts.conftest import PATIENCE, Serve

SPACE = Path(__file__).parents[2] / "space"


def test_the_hosted_demo_starts_and_shows_a_text(serve: Serve, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(serve(str(SPACE / "app.py"), "{port}", folder=SPACE))
    view = page.frame_locator("iframe").first
    expect(view.get_by_text("mini-gpt2").first).to_be_visible(timeout=PATIENCE)
