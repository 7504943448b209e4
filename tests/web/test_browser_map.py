"""The map in a real browser, by mouse and by key."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import Library, make_library

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]


# From letting go of the mouse to the title that says how many points are in the lasso.
_TIME_THE_SELECTION = """() => {
  let began = 0;
  addEventListener("pointerup", () => (began = performance.now()), { capture: true });
  new MutationObserver(() => (window.selecting = performance.now() - began))
    .observe(document.getElementById("chosen-title"), { childList: true, characterData: true, subtree: true });
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    own: Library = make_library(tmp_path_factory.mktemp("map"))
    with served(own.index) as opened:
        yield opened


def test_a_map_is_computed_looked_at_and_selected_from(browser: Browser, address: str) -> None:
    with new_page(browser) as page:
        page.goto(f"{address}map")
        page.get_by_role("button", name="Compute the map").click()
        canvas = page.locator("#points")
        expect(canvas).to_be_visible()
        expect(page.locator("#facts")).to_contain_text("3 videos, by ")
        expect(page.locator("#clusters > li").first).to_contain_text("Cluster 1:")
        expect(page.locator("#clusters img").first).to_be_visible()
        # A lasso around everything, by mouse; then none, by key.
        box = canvas.bounding_box()
        assert box is not None
        page.get_by_role("button", name="Lasso").click()
        page.mouse.move(box["x"] + 4, box["y"] + 4)
        page.mouse.down()
        for x, y in ((box["width"] - 4, 4), (box["width"] - 4, box["height"] - 4), (4, box["height"] - 4)):
            page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
        page.mouse.up()
        expect(page.locator("#chosen-title")).to_have_text("3 videos")
        page.get_by_label("List", exact=True).fill("seen on the map")
        page.get_by_role("button", name="Add to the list").click()
        expect(page.locator("#messages")).to_contain_text('Added to "seen on the map"')
        page.keyboard.press("Escape")
        expect(page.locator("#chosen")).to_be_hidden()
        page.get_by_role("button", name="Select cluster 1").click()
        expect(page.locator("#chosen")).to_be_visible()
        # It is there again, with the list as a color.
        page.reload()
        expect(canvas).to_be_visible()
        expect(page.locator("#find")).to_be_hidden()
        page.get_by_label("Color").select_option("seen on the map")
        expect(page.locator("#legend")).to_contain_text("seen on the map (3)")
        page.get_by_label("Color").select_option("by folder")
        expect(page.locator("#legend")).to_contain_text(re.compile(r"videos \(3\)"))


def test_twenty_thousand_points_are_drawn_within_a_frame_by_key_and_by_lasso(browser: Browser, address: str) -> None:
    draw = np.random.default_rng(0)
    places = draw.random((20_000, 2)).round(4)
    # Two halves with a gap between them, so that a lasso can be around one of them.
    is_left = places[:, 0] < 0.5
    places[:, 0] = np.where(is_left, 0.8 * places[:, 0], 0.2 + 0.8 * places[:, 0])
    cluster = draw.integers(0, 24, 20_000)
    answer = {
        "method": "pca",
        "videos": list(range(1, 20_001)),
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "cluster": cluster.tolist(),
        "of": "videos",
        "starts": [],
        "ends": [],
        "total": 20_000,
        "central": [[number] for number in range(24)],
        "folder": [0] * 20_000,
        "folders": ["/videos"],
        "is_current": True,
    }
    with new_page(browser, refused="Failed to load resource") as page:
        page.route("**/api/map?*", lambda route: route.fulfill(json=answer))
        page.goto(f"{address}map")
        expect(page.locator("#facts")).to_contain_text("20000 videos")
        canvas = page.locator("#points")
        canvas.focus()
        took = []
        for key in ("+", "ArrowRight", "ArrowDown", "-", "0", "+", "+", "0"):
            page.keyboard.press(key)
            page.wait_for_timeout(50)
            took.append(float(canvas.get_attribute("data-took") or "inf"))
        # Of a busy machine the best of eight: 16 ms are a frame.
        assert min(took) < 16, took
        page.get_by_role("button", name="Select cluster 3").first.click()
        expect(page.locator("#chosen-title")).to_have_text(f"{int((cluster == 2).sum())} videos")
        page.evaluate(_TIME_THE_SELECTION)
        page.get_by_role("button", name="Lasso").click()
        box = canvas.bounding_box()
        assert box is not None
        left, middle, top, bottom = (
            box["x"] + 2,
            box["x"] + box["width"] / 2,
            box["y"] + 2,
            box["y"] + box["height"] - 2,
        )
        around, selecting = [], []
        for _ in range(3):
            page.mouse.move(left, top)
            page.mouse.down()
            for x, y in ((middle, top), (middle, bottom), (left, bottom)):
                page.mouse.move(x, y, steps=40)
                page.wait_for_timeout(30)
                around.append(float(canvas.get_attribute("data-took") or "inf"))
            page.mouse.up()
            expect(page.locator("#chosen-title")).to_have_text(f"{int(is_left.sum())} videos")
            selecting.append(page.evaluate("window.selecting"))
            page.keyboard.press("Escape")
            expect(page.locator("#chosen")).to_be_hidden()
        assert min(around) < 16, around
        # What a person takes for immediate.
        assert min(selecting) < 100, selecting


def test_shots_are_found_mapped_and_opened_where_they_begin(browser: Browser, address: str) -> None:
    with new_page(browser) as page:
        page.goto(f"{address}map")
        page.get_by_role("navigation", name="Points of the map").get_by_role("link", name="shots").click()
        page.wait_for_url("**/map?of=shots")
        expect(page.locator("#known")).to_have_text("The shots of 0 of 3 videos are known.")
        # By key.
        page.get_by_role("button", name="Compute the map").focus()
        page.keyboard.press("Enter")
        canvas = page.locator("#points")
        expect(canvas).to_be_visible(timeout=60_000)
        expect(page.locator("#facts")).to_contain_text("3 shots, by ")
        page.get_by_role("button", name="Select cluster 1").click()
        expect(page.locator("#chosen-title")).to_contain_text("shot")
        poster = page.locator("#chosen .row a").first
        expect(poster).to_have_attribute("href", re.compile(r"/videos/\d+/shots\?time=0\.00"))
        poster.click()
        expect(page.locator("#editor")).to_be_visible()
        # By mouse: corrected shots make the map old, and each is a point.
        changed = page.request.put(
            re.sub(r"(/videos/\d+/shots).*", r"/api\1", page.url), data={"cuts": [{"time": 3.0}]}
        )
        assert changed.ok
        page.goto(f"{address}map?of=shots")
        expect(page.locator("#why")).to_contain_text("changed since this map was computed")
        page.get_by_role("button", name="Compute it again").click()
        expect(page.locator("#facts")).to_contain_text("4 shots, by ", timeout=60_000)
        expect(page.locator("#find")).to_be_hidden()
