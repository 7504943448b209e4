"""Recurring segments in a real browser: found, ends moved by mouse and by keys, named, rejected, exported,
displayed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import export, new_page, open_browser, served
from tests.web.test_recurring import make_season, make_song_season
from vidkin.index import Index

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def find(page: Page, address: str) -> None:
    page.goto(f"{address}recurring")
    page.get_by_role("button", name="Find recurring segments").click()
    expect(page.locator(".file")).to_have_count(2, timeout=60_000)


def check_seen(page: Page, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(AXE)
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_ends_are_moved_by_keyboard_and_mouse_and_stored(browser: Browser, tmp_path: Path) -> None:
    index = make_season(tmp_path)
    with served(index) as address, new_page(browser, width=1400) as page:
        find(page, address)
        expect(page.locator("#groups")).to_contain_text("opening, 0:06.5 long, in 2 of 2 files")
        # The first part by key; its start two frames later and ten earlier.
        page.keyboard.press("n")
        expect(page.locator("#part-title")).to_have_text("A in e1.mp4")
        expect(page.locator("#part-facts")).to_have_text("0:04.50 - 0:11.00, 6.50 s")
        page.keyboard.press("[")
        expect(page.locator("#start")).to_be_focused()
        for key in ("ArrowRight", "ArrowRight", "Shift+ArrowLeft"):
            page.keyboard.press(key)
        expect(page.locator("#start")).to_have_attribute("aria-valuetext", "0:03.70")
        expect(page.locator(".unsaved")).to_be_visible()
        # Move the end with the mouse to the left by a quarter of the visible range, 0 to 16 s.
        handle, zoom = page.locator("#end").bounding_box(), page.locator("#zoom").bounding_box()
        assert handle is not None
        assert zoom is not None
        middle = handle["x"] + handle["width"] / 2
        page.mouse.move(middle, handle["y"] + 10)
        page.mouse.down()
        page.mouse.move(middle - zoom["width"] / 8, handle["y"] + 12, steps=4)
        page.mouse.up()
        moved = float(page.locator("#end").get_attribute("aria-valuenow") or 0)
        assert moved == pytest.approx(11.0 - (16.0 - 0.0) / 8, abs=0.25)
        assert page.locator("#zoom .film img").count() == 10
        files, groups = page.locator("#files").bounding_box(), page.locator("#groups").bounding_box()
        assert files is not None
        assert groups is not None
        assert files["y"] < groups["y"]  # timelines first, forms on demand
        expect(page.get_by_label("Name of A")).to_be_hidden()
        # A group shows frames of its start, middle and end: one alone may be black.
        assert page.locator("#groups .frame img").count() == 3
        page.locator("#groups summary").click()
        page.get_by_label("Name of A").fill("The song")
        page.get_by_role("button", name="Save the group").click()
        expect(page.locator("#groups")).to_contain_text("confirmed")
        expect(page.locator("#part-title")).to_have_text("A, The song in e1.mp4")
        expect(page.locator("#part-facts")).to_contain_text("0:03.70 - ")
        assert export(page, "Chapters").suggested_filename == "recurring.chapters.zip"
        with Index.open(index, read_only=True) as opened:
            (group,) = opened.recurring()
        assert group.name == "The song"
        assert (group.occurrences[0].start, group.occurrences[0].end) == (pytest.approx(3.7), pytest.approx(moved))
        # Reject the group, then accept it again.
        page.locator("#groups summary").click()
        page.locator("#groups [data-reject]").click()
        expect(page.locator("#found .empty")).to_have_text("No recurring segments were found in 2 videos.")
        page.locator("#rejected summary").click()
        page.locator("#rejected button").click()
        expect(page.locator("#groups")).to_contain_text("opening, 0:06.5 long, in 2 of 2 files")


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (768, "dark"), (400, "light")])
def test_page_is_readable_at_every_width(
    browser: Browser, season: Path, width: int, scheme: str, tmp_path: Path
) -> None:
    with served(season) as address, new_page(browser, width=width, scheme=scheme) as page:
        page.goto(f"{address}recurring")
        if page.locator(".file").count() == 0:
            page.get_by_role("button", name="Find recurring segments").click()
        expect(page.locator(".file")).to_have_count(2, timeout=60_000)
        page.locator(".part").first.click()
        expect(page.locator("#editor")).to_be_visible()
        check_seen(page, width)
        page.screenshot(path=tmp_path / f"{width}.png", full_page=True)


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_season(tmp_path_factory.mktemp("season"))


def test_read_only_server_offers_no_edits(browser: Browser, season: Path) -> None:
    with served(season, "--read-only") as address, new_page(browser, width=400, height=800) as page:
        find(page, address)
        page.locator(".part").first.click()
        page.keyboard.press("]")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#end")).to_have_attribute("aria-valuetext", "0:11.00")
        expect(page.get_by_role("button", name="Save the group")).to_have_count(0)
        expect(page.get_by_label("Name of A")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_song_over_different_images_is_found_by_sound(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    index = make_song_season(tmp_path)
    with served(index) as address, new_page(browser, width=width, scheme=scheme) as page:
        page.goto(f"{address}recurring")
        by = page.locator("[name=by]")
        expect(by).to_have_value("picture")
        page.get_by_role("button", name="Find recurring segments").click()
        expect(page.locator("#found .empty")).to_have_text(
            "No recurring segments were found in 3 videos.", timeout=60_000
        )
        by.select_option("sound")
        page.get_by_role("button", name="Find recurring segments").click()
        expect(page.locator("#groups")).to_contain_text("in 3 of 3 files, matched by sound", timeout=60_000)
        expect(page.locator(".file")).to_have_count(3)
        # The times are from the song: it begins after 2 s in one, 3.5 s in three, and 5 s in two.
        times = [text.split(" - ")[0] for text in page.locator(".part .times").all_inner_texts()]
        assert sorted(times) == ["0:02.0", "0:03.5", "0:05.0"]
        check_seen(page, width)
        page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
        # Repetitions within one file are found by picture only, so there is no choice of evidence.
        page.get_by_label("Look").select_option("yes")
        expect(by).to_be_disabled()
        page.get_by_role("button", name="Find recurring segments").click()
        expect(page.locator("#found .empty")).to_have_text(
            "No recurring segments were found in 3 videos.", timeout=60_000
        )
        page.get_by_label("Look").select_option("")
        expect(by).to_be_enabled()
        # After a reload the search that was made last is offered.
        by.select_option("either")
        page.get_by_role("button", name="Find recurring segments").click()
        expect(page.locator("#groups")).to_contain_text("matched by sound", timeout=60_000)
        page.reload()
        expect(by).to_have_value("either")
