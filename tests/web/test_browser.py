"""The pages in a real browser, by mouse and by keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import Library

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]


expect.set_options(timeout=20_000)


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


def test_library_responds_to_filter_and_keyboard(page: Page, address: str) -> None:
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


def test_every_page_lists_its_keys_and_marks_its_section(page: Page, address: str) -> None:
    pages = {"": "Library", "search": "Search", "map": "Map", "duplicates": "Duplicates", "recurring": "Recurring"}
    pages |= {"shots": "Shots", "review": "Review", "api": "API"}
    videos = page.request.get(f"{address}api/videos").json()["videos"]
    first, second = (next(each["id"] for each in videos if each["name"] == name) for name in ("coffee.mp4", "copy.mp4"))
    pages |= {f"videos/{first}": "Library", f"videos/{first}/shots": "Shots"}
    pages |= {f"match?video={first}&target={second}": "Search"}
    for path, section in pages.items():
        page.goto(f"{address}{path}", wait_until="load")
        expect(page.locator("nav [aria-current=page]").first).to_have_text(section)
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        expect(keys).to_contain_text("G, then a letter")
        page.keyboard.press("Escape")
        expect(keys).to_be_hidden()
        page.get_by_role("button", name="Keys").click()
        keys.get_by_role("button", name="Close").click()
    # A letter for each section, no two the same: Search is S, Shots H.
    for letter, section in (("s", "Search"), ("h", "Shots")):
        page.locator("h1").first.click()
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page.locator("nav [aria-current=page]").first).to_have_text(section)


def test_open_page_leads_to_the_index_and_hides_the_token(
    browser: Browser, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, script = tmp_path / "shown", tmp_path / "browser"
    os.mkfifo(shown)
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > "{shown}"\n', encoding="utf-8")
    script.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    with served(library.index, "--open", token="") as address, new_page(browser) as page:
        page.goto(shown.read_text(encoding="utf-8"))
        expect(page.locator(".card")).to_have_count(4)
        expect(page).to_have_url(address.partition("?")[0])
        # Pictures, scripts and videos come with the cookie.
        page.get_by_role("link", name="coffee.mp4").click()
        wait_for_videos(page, 1)


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_pages_are_never_wider_than_the_screen(browser: Browser, address: str, width: int) -> None:
    with new_page(browser, width=width, height=800) as page:
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def wait_for_videos(page: Page, count: int) -> None:
    """Wait until this many players know the duration of their video."""
    page.wait_for_function(
        "count => [...document.querySelectorAll('video')].filter(video => video.videoWidth > 0).length == count",
        arg=count,
    )


def test_marked_clip_is_searched_and_both_sides_play_in_sync(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="coffee.mp4").click()
    wait_for_videos(page, 1)
    track = page.locator(".track")
    track.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("i")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("o")
    expect(page.locator(".range")).to_have_text("0:03.0 - 0:08.0")
    page.keyboard.press("s")
    page.wait_for_url("**/search?video=*&start=3&end=8")
    best = page.locator(".match").first
    expect(best).to_contain_text("copy.mp4")
    best.locator("button.picture").focus()
    page.keyboard.press("Enter")
    wait_for_videos(page, 2)
    times = "[...document.querySelectorAll('video')].map(video => video.currentTime)"
    # Both run, from the third second of coffee and of its copy, and stay together.
    page.wait_for_function(f"() => {times}.every(time => time > 3.6)")
    query, target = page.evaluate(times)
    assert abs(query - target) < 0.6
    page.get_by_role("link", name="Frame map").click()
    heat = page.locator(".heat")
    expect(heat).to_be_visible()
    wait_for_videos(page, 2)
    heat.focus()
    for key in ("ArrowRight", "ArrowDown", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#readout")).to_contain_text("query ")
    expect(page.locator("#query-frame")).to_be_visible()
    page.wait_for_function(f"() => {times}[1] > 1")


def test_search_with_a_dropped_file_and_a_rectangle(page: Page, address: str, library: Library) -> None:
    page.goto(f"{address}search")
    page.get_by_label("Choose a video or picture").set_input_files(library.clip)
    expect(page.locator(".match").first).to_contain_text("co")
    expect(page.locator("#summary")).to_contain_text("match")
    wait_for_videos(page, 1)
    page.get_by_role("button", name="Rectangle").click()
    expect(page.locator(".box.drawn")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    expect(page.locator("#what")).to_contain_text("Search with the rectangle")
    screen = page.locator(".overlay").bounding_box()
    assert screen is not None
    page.mouse.move(screen["x"] + 5, screen["y"] + 5)
    page.mouse.down()
    page.mouse.move(screen["x"] + screen["width"] * 0.8, screen["y"] + screen["height"] * 0.9)
    page.mouse.up()
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_url("**box=0.0*")
    expect(page.locator("#summary")).to_contain_text("best first")
    # The box around the matching part does not hide it.
    page.locator(".match button.picture").first.click()
    expect(page.locator("#query .box.match")).to_have_css("background-color", "rgba(0, 0, 0, 0)")


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_file_chooser_opens_by_key_every_time(page: Page, address: str, key: str) -> None:
    # Playwright takes the chooser over only some time after it is asked to: too late, where that comes with the key.
    page.on("filechooser", lambda chooser: None)
    page.goto(f"{address}search")
    page.locator("#file").focus()
    for _ in range(3):
        with page.expect_file_chooser():
            page.keyboard.press(key)


def test_unplayable_videos_are_converted(page: Page, address: str, library: Library) -> None:
    """The file is hidden from the browser, as if its codec were unknown."""
    page.route("**/file", lambda route: route.fulfill(status=200, content_type="video/mp4", body=b"unknown"))
    page.goto(address)
    page.get_by_role("link", name="coffee.mp4").click()
    expect(page.locator(".player")).to_contain_text("Converted for this browser")
    wait_for_videos(page, 1)
    page.locator(".track").focus()
    page.keyboard.press("End")
    # The last piece, which is two seconds long.
    page.wait_for_function("() => document.querySelector('video').src.endsWith('piece=1')")
    expect(page.locator(".clock")).to_contain_text("0:11.")
