"""The navigation: five pages in view, the others behind "More", one line on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import Connect, Library


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def test_experiments_are_linked_only_if_configured(library: Library, connect: Connect, tmp_path: Path) -> None:
    def links(text: str) -> list[str]:
        return re.findall(r'data-key="\w"[^>]*>([^<]+)</a>', text)

    shown = ["Library", "Search", "Duplicates", "Recurring", "Shots", "Map", "Review", "API"]
    assert links(connect(library.index).get("/").text) == shown
    assert links(connect(library.index, experiments=(tmp_path,)).get("/").text) == [*shown[:-1], "Experiments", "API"]


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_menu_works_by_mouse_and_keyboard_and_fits_one_line_on_a_phone(browser: Browser, library: Library) -> None:
    with served(library.index) as address, new_page(browser, width=400, height=800) as page:
        page.goto(address)
        for width in (400, 360):
            page.set_viewport_size({"width": width, "height": 800})
            links = page.locator("nav[aria-label=Pages] > :is(a, details)")
            expect(links).to_have_count(6)
            boxes = [box for link in links.all() if (box := link.bounding_box()) is not None]
            assert len({round(box["y"]) for box in boxes}) == 1
            assert boxes[-1]["x"] + boxes[-1]["width"] <= width
            header = page.locator("header.top").bounding_box()
            assert header is not None
            assert header["height"] < 60
        more, map_link = page.locator("#more-pages summary"), page.get_by_role("link", name="Map", exact=True)
        expect(map_link).to_be_hidden()
        more.click()
        expect(map_link).to_be_visible()
        page.locator("h1").click()
        expect(map_link).to_be_hidden()
        more.focus()
        page.keyboard.press("Enter")
        expect(map_link).to_be_visible()
        page.keyboard.press("Escape")
        expect(map_link).to_be_hidden()
        expect(more).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/map")
        expect(more).to_have_class("current")
        page.keyboard.press("g")
        page.keyboard.press("e")
        page.wait_for_url("**/review")
