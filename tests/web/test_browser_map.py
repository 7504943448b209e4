"""The map in a real browser, by mouse and by key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import Library, make_library

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]


# Time from releasing the mouse to the title with the number of points in the lasso.
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


def test_map_is_computed_viewed_and_used_for_selection(browser: Browser, address: str) -> None:
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


@pytest.mark.parametrize(("scheme", "background"), [("light", "#ffffff"), ("dark", "#1c2025")])
def test_clusters_differ_by_color_and_shape_even_for_the_color_blind(
    browser: Browser, address: str, scheme: str, background: str
) -> None:
    numbers = list(range(24))
    answer = {
        "method": "tsne", "videos": [2] * 24, "of": "videos", "starts": [], "ends": [], "total": 24,
        "x": [number % 6 / 6 for number in numbers], "y": [number // 6 / 6 for number in numbers],
        "cluster": numbers, "central": [[number] for number in numbers],
        "folder": [0] * 24, "folders": ["/videos"], "is_current": True,
    }  # fmt: skip
    with new_page(browser, scheme=scheme) as page:
        page.route("**/api/map?*", lambda route: route.fulfill(json=answer))
        page.goto(f"{address}map")
        expect(page.locator("#facts")).to_contain_text("by t-SNE: neighbors are similar")
        marks = page.locator("#legend polygon").evaluate_all(
            "marks => marks.map(mark => [mark.getAttribute('fill'), mark.getAttribute('points')])"
        )
        assert len({(color, shape) for color, shape in marks}) == 24
        colors = sorted({color for color, _ in marks})
        assert len(colors) == 6
        for one in colors:
            assert contrast(one, background) >= 3
            assert all(distance(one, other) >= 0.15 for other in colors if other != one)
        # With few points, thumbnails are shown, which have more colors than the groups.
        page.wait_for_function(
            """() => {
              const canvas = document.getElementById("points");
              const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
              return new Set(new Uint32Array(data.buffer)).size > 500;
            }"""
        )


# How people without red cones, without green cones, and with all cones see linear light (Machado et al. 2009).
_SEEN = np.array([
    [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    [[0.3673, 0.8606, -0.2279], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9690]],
    np.eye(3),
])  # fmt: skip
_CONES = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
_OKLAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])


def linear(color: str) -> Any:
    values = np.array([int(color[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    light, dark = sorted((float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def distance(one: str, other: str) -> float:
    """Distance in OKLab for the kind of vision that distinguishes the two worst."""
    seen = [np.cbrt(np.clip(_SEEN @ linear(each), 0, 1) @ _CONES.T) @ _OKLAB.T for each in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1], axis=-1).min())


def test_twenty_thousand_points_are_drawn_within_a_frame(browser: Browser, address: str) -> None:
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
        # People perceive this as immediate.
        assert min(selecting) < 100, selecting


def test_shots_are_detected_mapped_and_opened_at_their_start(browser: Browser, address: str) -> None:
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
