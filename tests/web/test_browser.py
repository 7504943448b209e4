"""The pages in a real browser, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import Library

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(library: Library) -> Iterator[str]:
    with served(library.index) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with new_page(browser) as opened:
        yield opened


def test_the_library_follows_the_filter_and_the_keyboard(page: Page, address: str) -> None:
    page.goto(address)
    cards = page.locator(".card")
    expect(cards).to_have_count(4)
    picture = page.get_by_role("link", name="coffee.mp4").locator("img")
    expect(picture).to_be_visible()
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=picture.element_handle())
    page.keyboard.press("/")
    page.keyboard.type("co")
    expect(cards).to_have_count(2)
    assert page.url.endswith("/?q=co")
    page.get_by_label("Sort").select_option("longest")
    expect(page).to_have_url(f"{address}?q=co&sort=duration")
    page.go_back()
    page.go_back()
    expect(cards).to_have_count(4)
    cards.nth(0).locator("a").focus()
    page.keyboard.press("ArrowRight")
    expect(cards.nth(1).locator("a")).to_be_focused()


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_no_page_is_wider_than_the_screen(browser: Browser, address: str, width: int) -> None:
    with new_page(browser, width=width, height=800) as page:
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
