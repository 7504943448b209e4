"""The search page in a real browser: results next to the query, a stopped search, unreadable files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.support.sounds import tune, write_sounds
from tests.support.videos import pan
from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import Library
from vidkin import Index
from vidkin.rendering import describe_parts
from vidkin.similarity import Segment

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(library: Library) -> Iterator[str]:
    with served(library.index) as opened:
        yield opened


def test_results_are_next_to_the_query_and_dragging_draws_a_rectangle(
    browser: Browser, address: str, library: Library
) -> None:
    with new_page(browser) as page:
        page.goto(f"{address}search")
        page.get_by_label("Choose a video or picture").set_input_files(library.clip)
        best = page.locator(".match").first
        expect(best).to_be_visible(timeout=60_000)
        query, match = page.locator("#query").bounding_box(), best.bounding_box()
        assert query is not None
        assert match is not None
        assert match["x"] >= query["x"] + query["width"]
        assert match["y"] < query["y"] + query["height"]
        # Drawn without a button: the picture stands still.
        screen = page.locator("#query .overlay").bounding_box()
        assert screen is not None
        page.mouse.move(screen["x"] + 4, screen["y"] + 4)
        page.mouse.down()
        page.mouse.move(screen["x"] + screen["width"] * 0.7, screen["y"] + screen["height"] * 0.8)
        page.mouse.up()
        expect(page.locator("#what")).to_contain_text("Search with the rectangle")
        page.keyboard.press("Escape")
        expect(page.locator(".box.drawn")).to_have_count(0)


def test_matches_are_visible_on_a_phone(browser: Browser, address: str, library: Library) -> None:
    with new_page(browser, width=375, height=760) as page:
        page.goto(f"{address}search")
        page.get_by_label("Choose a video or picture").set_input_files(library.clip)
        expect(page.locator(".match").first).to_be_in_viewport(timeout=60_000)


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (768, 1024), (400, 800)])
def test_match_and_query_play_on_one_screen(browser: Browser, address: str, width: int, height: int) -> None:
    with new_page(browser, width=width, height=height) as page:
        page.goto(address)
        video = (page.get_by_role("link", name="coffee.mp4").get_attribute("href") or "").rpartition("/")[2]
        page.goto(f"{address}search?video={video}")
        best = page.locator(".match").first
        expect(best).to_be_visible(timeout=60_000)
        expect(page.locator("#query .thin .segment").first).to_be_visible()  # the shared part of the match
        best.locator("button.picture").click()
        expect(page.locator("#target video")).to_be_visible(timeout=20_000)
        page.wait_for_timeout(500)
        for side in ("#query", "#target"):
            box = page.locator(f"{side} .screen").bounding_box()
            assert box is not None
            assert box["y"] >= 0, (side, box)
            assert box["y"] + box["height"] <= height, (side, box)
        page.get_by_role("button", name="Close", exact=True).click()
        expect(page.locator("#target video")).to_have_count(0)
        expect(page.locator("#query .thin")).to_have_count(1)


def test_match_name_opens_the_video_at_the_matching_time(browser: Browser, address: str, library: Library) -> None:
    with new_page(browser) as page:
        page.goto(f"{address}search")
        page.locator("#file").set_input_files(library.clip)  # seconds 4 to 9 of coffee.mp4
        page.locator(".match").get_by_role("link", name="coffee.mp4").click(timeout=60_000)
        page.wait_for_function("() => Math.abs(document.querySelector('#query video')?.currentTime - 4) < 0.5")


def test_match_describes_rotation_and_partial_frames_in_words(browser: Browser, address: str) -> None:
    """The features of this index do not find rotated copies, so the server's answer is replaced."""
    box = (0.0, 0.0, 0.5, 0.5)

    def turn(route: Route) -> None:
        answer = route.fetch().json()
        segment = answer["matches"][0]["segments"][0]
        segment["turned"], segment["target_box"] = 90, box
        segment["part"] = describe_parts(Segment(0.0, 1.0, 0.0, 1.0, 0.9, target_box=box))
        route.fulfill(json=answer)

    with new_page(browser) as page:
        page.route("**/api/search", turn)
        page.goto(address)
        video = (page.get_by_role("link", name="coffee.mp4").get_attribute("href") or "").rpartition("/")[2]
        page.goto(f"{address}search?video={video}")
        best = page.locator(".match").first
        expect(best).to_contain_text("upper left 50 % of file", timeout=60_000)
        expect(best).to_contain_text("turned 90 degrees")
        expect(page.locator(".match").nth(1)).not_to_contain_text("turned")


def test_unreadable_file_clears_the_results_and_is_named_in_red(
    browser: Browser, address: str, library: Library, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video at all" * 50)
    with new_page(browser, refused="422") as page:
        page.goto(f"{address}search")
        page.get_by_label("Choose a video or picture").set_input_files(library.clip)
        expect(page.locator(".match").first).to_be_visible(timeout=60_000)
        page.get_by_label("Choose a video or picture").set_input_files(broken)
        refused = page.get_by_role("alert")
        expect(refused).to_have_text(re.compile("^broken.mp4: (?!broken)"))
        expect(page.locator(".match")).to_have_count(0)
        assert page.locator("#query video").count() == 0
        red, green, _ = page.evaluate(
            "p => getComputedStyle(p).color.match(/[0-9]+/g).map(Number)", refused.element_handle()
        )
        assert red > 2 * green


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_running_search_is_stopped(browser: Browser, address: str, by: str) -> None:
    with new_page(browser) as page:
        held: list[Route] = []
        page.route("**/api/search", lambda route: held.append(route))
        page.goto(address)
        page.get_by_role("link", name="coffee.mp4").click()
        page.wait_for_load_state()
        page.get_by_role("button", name="Find similar videos").click()
        expect(page.locator("#searching")).to_be_visible()
        expect(page.locator("#summary")).to_have_text("Searching...")
        assert page.locator("main").inner_text().count("Searching") == 1
        if by == "key":
            page.keyboard.press("Escape")
        else:
            page.get_by_role("button", name="Stop").click()
        expect(page.locator("#summary")).to_have_text("Stopped.")
        expect(page.locator("#searching")).to_be_hidden()
        assert len(held) == 1


def test_parts_of_the_image_are_offered_without_matches(
    browser: Browser, address: str, library: Library, tmp_path: Path
) -> None:
    """A still of coffee in a black page: the whole is asked for with a score that nothing reaches."""
    from PIL import Image

    page_of_book = Image.new("RGB", (640, 480), (250, 250, 250))
    page_of_book.paste(Image.fromarray(next(pan("coffee", 1, width=384, height=256))), (60, 80))
    page_of_book.save(tmp_path / "book.png")
    with new_page(browser) as page:
        page.goto(f"{address}search")
        page.get_by_label("Lowest score").evaluate("input => { input.value = '1' }")
        page.get_by_label("Choose a video or picture").set_input_files(tmp_path / "book.png")
        offers = page.locator("#rectangles button")
        expect(offers.first).to_be_visible(timeout=60_000)
        offers.first.focus()
        page.get_by_label("Lowest score").evaluate("input => { input.value = '0.2' }")
        page.keyboard.press("Enter")
        page.wait_for_url("**box=**")
        expect(page.locator(".match").first).to_contain_text("co", timeout=60_000)


def test_search_scores_follow_the_chosen_evidence(browser: Browser, tmp_path: Path) -> None:
    """One tune under two photographs: the same sound over another picture, and two takes that look alike."""
    write_sounds(tmp_path / "rocket.mp4", [tune(6, seed=1)], pictures="rocket")
    write_sounds(tmp_path / "coffee.mp4", [tune(6, seed=1)], pictures="coffee")
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
    with served(tmp_path / "library.vidkin") as address, new_page(browser) as page:
        page.goto(f"{address}search")
        page.get_by_label("Choose a video or picture").set_input_files(tmp_path / "rocket.mp4")
        own = page.locator(".match").filter(has_text="rocket.mp4")
        expect(own).to_contain_text("sound 1.00", timeout=60_000)  # the sound score is shown next to the picture score
        expect(page.locator(".match").filter(has_text="coffee.mp4")).to_have_count(0)
        page.get_by_label("Score of").select_option("sound")
        page.get_by_role("button", name="Search", exact=True).click()
        other = page.locator(".match").filter(has_text="coffee.mp4")
        expect(other).to_contain_text("sound 1.00", timeout=60_000)
        expect(other.locator(".tag[title='The same sound over another picture.']")).to_have_count(1)
        page.get_by_label("Score of").select_option("both")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(other).to_have_count(0, timeout=60_000)
        expect(own).to_have_count(1, timeout=60_000)
        # The search for duplicates has the same choice; files that only sound the same cannot be removed.
        page.goto(f"{address}duplicates")
        page.locator("#wish [name=by]").select_option("sound")
        page.get_by_role("button", name="Find duplicates").click()
        copy = page.locator(".member:not(.best)")
        expect(copy).to_contain_text("only the sound is the same", timeout=60_000)
        copy.locator("[data-about]").click()
        expect(page.locator(".about")).to_contain_text("sound 1.00")
        expect(copy.get_by_label("remove", exact=False)).to_have_count(0)
