"""Players of a match in a real browser: the frames on the screen are compared with the true ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, expect

from tests.support.videos import encode, pan
from tests.web.browser import new_page, open_browser, served
from vidkin.index import Index, SerialExecutor

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]

BITS, BLOCK = 10, 16
RATE = 25
# The number in the picture that is on each screen: black and white blocks along its lower edge.
NUMBERS = f"""[...document.querySelectorAll('.screen')].map((screen) => {{
  const shown = screen.querySelector('canvas.on') ?? screen.querySelector('video');
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [320, 240];
  const pen = canvas.getContext('2d');
  pen.drawImage(shown, 0, 0, canvas.width, canvas.height);
  let number = 0;
  for (let bit = 0; bit < {BITS}; bit += 1) {{
    const [red] = pen.getImageData({BLOCK} * bit + {BLOCK // 2}, canvas.height - {BLOCK // 2}, 1, 1).data;
    if (red > 127) number += 2 ** bit;
  }}
  return number;
}})"""


def numbered(frames: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """The frames with their numbers in them."""
    for number, frame in enumerate(frames):
        image = frame.copy()
        for bit in range(BITS):
            image[-BLOCK:, BLOCK * bit : BLOCK * (bit + 1)] = 235 if number >> bit & 1 else 16
        yield image


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, int]]]:
    """A film of 14 s, a copy that begins 2.000 s later, and one that runs 1.25 times as fast; and their numbers."""
    root = tmp_path_factory.mktemp("sync")
    folder = root / "videos"
    folder.mkdir()
    frames = list(numbered(pan("coffee", 14 * RATE, width=320, height=240)))
    encode(folder / "film.mp4", frames, rate=RATE)
    encode(folder / "later.mp4", frames[2 * RATE :], rate=RATE, options={"crf": "30"})
    encode(folder / "faster.mp4", frames, rate=Fraction(RATE * 5, 4), options={"crf": "28"})
    with Index.open(root / "c.vidkin", extractor="classical", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
        ids = {Path(record.path).stem: record.id for record in index.videos()}
    with served(root / "c.vidkin") as address:
        yield address, ids


def open_match(page: Page, address: str, ids: dict[str, int], other: str) -> None:
    page.goto(f"{address}match?video={ids[other]}&target={ids['film']}")
    expect(page.locator("#sync[data-exact]")).to_be_attached(timeout=120_000)
    page.wait_for_function(
        "() => [...document.querySelectorAll('video')].every(video => video.readyState >= 2 && !video.seeking)"
    )
    page.wait_for_timeout(300)


def settled(page: Page) -> list[int]:
    """The numbers on the screens once seeking has ended and they have not changed for .6 s; waits 20 s at most."""
    seen: list[list[int]] = []
    for _ in range(100):
        page.wait_for_timeout(200)
        busy = page.evaluate("[...document.querySelectorAll('video')].some(video => video.seeking)")
        seen = [] if busy else [*seen, page.evaluate(NUMBERS)]
        if len(seen) >= 4 and all(numbers == seen[-1] for numbers in seen[-4:]):
            break
    return list(page.evaluate(NUMBERS))


@pytest.mark.parametrize("other", ["later", "faster"])
def test_both_sides_show_the_same_frame_while_paused_and_stepping(
    browser: Browser, numbers: tuple[str, dict[str, int]], other: str
) -> None:
    address, ids = numbers
    with new_page(browser) as page:
        open_match(page, address, ids, other)
        seen = [page.evaluate(NUMBERS)]
        for step in range(6):
            # By key and by mouse.
            if step % 2:
                page.get_by_role("button", name="A frame further, all").click()
            else:
                page.keyboard.press("Shift+.")
            seen.append(settled(page))
        # `later` begins with frame 50 of the film: its pictures hold the film's numbers, too.
        assert [abs(query - target) <= 1 for query, target in seen] == [True] * 7, seen
        assert [later[0] - early[0] for early, later in pairwise(seen)] == [1] * 6, seen
        track = page.locator("#query .track")
        track.focus()
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        query, target = settled(page)
        assert abs(query - target) <= 1, (query, target)
        assert query > seen[-1][0] + 3 * RATE


@pytest.mark.parametrize("other", ["later", "faster"])
def test_both_sides_stay_in_sync_while_playing(
    browser: Browser, numbers: tuple[str, dict[str, int]], other: str
) -> None:
    address, ids = numbers
    with new_page(browser) as page:
        open_match(page, address, ids, other)
        page.keyboard.press("p")
        page.wait_for_function("() => [...document.querySelectorAll('video')].every(video => !video.paused)")
        expect(page.locator("canvas.kept.on")).to_have_count(2)
        page.wait_for_timeout(1500)
        seen = []
        for _ in range(20):
            seen.append(page.evaluate(NUMBERS))
            page.wait_for_timeout(150)
        page.keyboard.press("p")
        # A busy browser drops frames of one side; each side waits for the matching frame of the other.
        assert max(abs(query - target) for query, target in seen) <= 2, seen
        assert seen[-1][0] > seen[0][0] + RATE  # it played
        expect(page.locator("canvas.kept")).to_have_count(0)
        query, target = settled(page)
        assert abs(query - target) <= 1, (query, target)


def test_segment_loops_and_is_overlaid_as_wipe_and_difference(
    browser: Browser, numbers: tuple[str, dict[str, int]]
) -> None:
    address, ids = numbers
    with new_page(browser) as page:
        page.route("**/api/match", lambda route: (page.wait_for_timeout(1500), route.continue_()))
        page.goto(f"{address}match?video={ids['later']}&target={ids['film']}")
        expect(page.locator("#elapsed")).to_contain_text("s so far")  # a sign of life
        expect(page.locator("#busy")).to_be_hidden(timeout=60_000)
        page.unroute("**/api/match")
        open_match(page, address, ids, "later")
        # It begins where the segment does, in the film 2 s after its beginning.
        assert [abs(number - 2 * RATE) <= 1 for number in page.evaluate(NUMBERS)] == [True, True]
        under = page.locator("#query .screen").bounding_box()
        view = page.get_by_label("View")
        view.select_option("wipe")
        page.wait_for_timeout(200)
        over = page.locator("#target .screen").bounding_box()
        assert under is not None
        assert over is not None
        for side in ("x", "y", "width", "height"):
            assert over[side] == pytest.approx(under[side], abs=2), side
        page.get_by_label("Where the wipe is").focus()
        page.keyboard.press("Home")
        assert "inset(0px" in page.locator("#target .screen").evaluate("screen => getComputedStyle(screen).clipPath")
        view.focus()
        view.select_option("difference")
        assert (
            page.locator("#target .screen").evaluate("screen => getComputedStyle(screen).mixBlendMode") == "difference"
        )
        view.select_option("beside")
        beside = page.locator("#target .screen").bounding_box()
        assert beside is not None
        assert beside["x"] > under["x"] + under["width"]
        # Near the end of the segment it begins again.
        page.get_by_label("repeat").check()
        page.locator("#query .track").focus()
        for _ in range(9):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("p")
        page.wait_for_function("() => document.querySelector('#query video').currentTime > 9.5")
        page.wait_for_function("() => document.querySelector('#query video').currentTime < 5", timeout=30_000)
        page.wait_for_function("() => !document.querySelector('#query video').paused")
