"""The pages of a video and of its shots in a real browser, by mouse and by key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.videos import encode, pan
from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import make_library
from vidkin.index import Index, SerialExecutor

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server whose index has a film of three shots as well, and the folder of that film."""
    library = make_library(tmp_path_factory.mktemp("video"))
    film = [*pan("coffee", 20), *pan("rocket", 20), *pan("chelsea", 20)]
    encode(library.folder / "film.mp4", film)
    with Index.open(library.index) as index:
        index.add(library.folder, executor=SerialExecutor(index.worker_spec))
    with served(library.index) as address:
        yield address, library.folder


def test_what_is_known_of_a_video_is_found_with_one_click_each(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser) as page:
        page.goto(address)
        page.goto(f"{address.rstrip('/')}{page.get_by_role('link', name='coffee.mp4').get_attribute('href')}")
        page.route("**/open", lambda route: route.fulfill(json={"player": "mpv"}))
        page.keyboard.press("v")
        page.get_by_role("button", name="Open in the player").click()
        expect(page.get_by_text("Opened in mpv.")).to_have_count(2)
        similar = page.get_by_role("region", name="Similar videos")
        similar.get_by_role("button").click()
        expect(similar.locator(".card").first).to_contain_text("copy.mp4", timeout=60_000)
        coverage = page.get_by_role("region", name="Coverage")
        coverage.get_by_role("button").focus()
        page.keyboard.press("Enter")
        expect(coverage.locator(".cover-strip")).to_be_visible(timeout=60_000)
        expect(coverage).to_contain_text("copy.mp4")
        recurring = page.get_by_role("region", name="What recurs")
        recurring.get_by_role("button").click()
        expect(recurring.locator("li").first).to_contain_text("in 2 videos: copy.mp4", timeout=60_000)
        # What was found is there when the page is opened again.
        page.reload()
        expect(similar.locator(".card").first).to_contain_text("copy.mp4")
        expect(similar.get_by_role("button")).to_be_hidden()
        expect(recurring.locator("li").first).to_contain_text("copy")


def test_shots_are_looked_at_selected_and_saved_as_a_clip(browser: Browser, place: tuple[str, Path]) -> None:
    address, folder = place
    with new_page(browser) as page:
        page.goto(f"{address}shots?q=film")
        page.goto(f"{address.rstrip('/')}{page.get_by_role('link', name='film.mp4').get_attribute('href')}")
        page.get_by_role("button", name="Find shots").click()
        cards = page.locator("#list .card")
        expect(cards).to_have_count(3, timeout=60_000)
        page.locator("#timeline").hover(position={"x": 40, "y": 20})
        expect(page.locator("#peek")).to_be_visible()
        page.wait_for_function("() => document.querySelector('#peek img').naturalWidth > 0")
        kinds = page.locator(".legend li:visible").all_inner_texts()
        assert "hard" in kinds
        assert "wipe" not in kinds
        page.get_by_label("Select shot 1").check()
        cards.nth(2).get_by_role("button").focus()
        page.keyboard.press("x")
        expect(page.locator("#picked")).to_have_text("2 shots selected")
        page.get_by_role("button", name="New clip of them").click()
        link = page.get_by_role("link", name="Save the clip")
        expect(link).to_be_visible()
        with page.expect_download() as download:
            link.click()
        assert download.value.suggested_filename == "film-shots.mp4"
        for name, file in (("Chapters", "film.chapters.txt"), ("Contact sheet", "film.html")):
            with page.expect_download() as download:
                page.get_by_role("link", name=name).click()
            assert download.value.suggested_filename == file
        page.get_by_role("button", name="Split into files...").click()
        page.get_by_label("New or empty folder").fill(str(folder.parent / "shots"))
        page.get_by_role("button", name="Split", exact=True).click()
        expect(page.locator("#messages")).to_contain_text("2 files in")
        assert len(list((folder.parent / "shots").iterdir())) == 2


def test_handles_of_cuts_close_to_each_other_do_not_overlap_on_a_narrow_screen(
    browser: Browser, place: tuple[str, Path]
) -> None:
    address, _ = place
    with new_page(browser, width=400, height=800) as page:
        page.goto(f"{address}shots?q=film")
        page.goto(f"{address.rstrip('/')}{page.get_by_role('link', name='film.mp4').get_attribute('href')}")
        if page.get_by_role("button", name="Find shots").is_visible():
            page.get_by_role("button", name="Find shots").click()
        handles = page.locator("#cuts button")
        expect(handles).to_have_count(2, timeout=60_000)
        # The second cut ten frames after the first one: a tenth of the timeline and less.
        handles.nth(1).focus()
        page.keyboard.press("Shift+ArrowLeft")
        expect(handles.nth(1)).to_have_attribute("aria-label", "hard cut at 0:03.0")
        for _ in range(9):
            page.keyboard.press("ArrowLeft")
        expect(handles.nth(1)).to_have_attribute("aria-label", "hard cut at 0:02.1")
        first, second = (each.bounding_box() for each in handles.all())
        assert first is not None
        assert second is not None
        assert first["x"] + first["width"] <= second["x"] + 0.5
        assert min(first["width"], second["width"]) >= 3
