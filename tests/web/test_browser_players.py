"""Players in a real browser: posters, filmstrips, dragging; recent searches, pasted pictures, names that are typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.sounds import tune, write_sounds
from tests.support.videos import encode, pan
from tests.web.browser import new_page, open_browser, served
from vidkin.index import Index, SerialExecutor
from vidkin.media import probe

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]

expect.set_options(timeout=20_000)

PASTE = """async (address) => {
  const picture = await (await fetch(address)).blob();
  const data = new DataTransfer();
  data.items.add(new File([picture], "image.webp", { type: "image/webp" }));
  document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of two copies that begin with two black seconds."""
    folder = tmp_path_factory.mktemp("players")
    black = [np.zeros((128, 192, 3), np.uint8)] * 20
    for name, options in (("film.mp4", {"preset": "medium"}), ("copy.mp4", {"crf": "34"})):
        encode(folder / name, [*black, *pan("coffee", 80)], options=options)
    with Index.open(folder / "i.vidkin", extractor="classical", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
    with served(folder / "i.vidkin") as opened:
        yield opened


def film(page: Page, address: str) -> str:
    videos = page.request.get(f"{address}api/videos").json()["videos"]
    return next(str(video["id"]) for video in videos if video["name"] == "film.mp4")


def brightness(page: Page, place: Locator) -> float:
    """Mean value of a screenshot of an element."""
    import io

    from PIL import Image

    return float(np.asarray(Image.open(io.BytesIO(place.screenshot())).convert("L")).mean())


def drag(page: Page, place: Locator, start: float, end: float) -> None:
    """Press at one share of the width of an element, release at another."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + start * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()


def test_video_with_a_black_start_shows_a_frame_and_a_filmstrip(browser: Browser, address: str) -> None:
    with new_page(browser) as page:
        page.goto(f"{address}videos/{film(page, address)}", wait_until="networkidle")
        assert brightness(page, page.locator("#query .screen")) > 40
        expect(page.locator("#query .film img")).to_have_count(10)
        page.wait_for_function(
            "() => [...document.querySelectorAll('.film img')].every(image => image.naturalWidth > 0)"
        )
        # Dragging over the timeline seeks; dragging over the frames marks, and shows the frame at that end.
        drag(page, page.locator("#query .track"), 0.1, 0.6)
        page.wait_for_function("Math.abs(document.querySelector('video').currentTime - 6) < 0.2")
        drag(page, page.locator("#query .strip"), 0.3, 0.8)
        expect(page.locator(".range")).to_have_text("0:03.0 - 0:08.0")
        page.wait_for_function("Math.abs(document.querySelector('video').currentTime - 8) < 0.2")


def test_rectangle_is_drawn_on_the_searched_frame_not_the_poster(browser: Browser, address: str) -> None:
    with new_page(browser) as page:
        page.goto(f"{address}videos/{film(page, address)}", wait_until="networkidle")
        page.get_by_role("button", name="Rectangle").click()
        page.wait_for_timeout(500)
        page.locator(".box.drawn").evaluate("box => box.style.opacity = 0")
        assert brightness(page, page.locator("#query .screen")) < 40  # the first frame is black


def test_searches_are_remembered_and_exclude_the_query(browser: Browser, address: str) -> None:
    with new_page(browser, refused="404") as page:
        number = film(page, address)
        page.goto(f"{address}search?video={number}&start=3.00&end=7.00")
        expect(page.locator(".match")).to_have_count(1, timeout=60_000)
        expect(page.locator(".match")).to_contain_text("copy.mp4")  # not film.mp4 itself
        expect(page.locator("#what")).to_have_text("Search with 0:03.0 - 0:07.0.")
        page.goto(f"{address}search")
        recent = page.locator("#recent .card")
        expect(recent).to_have_count(1)
        expect(recent).to_contain_text("0:03.0 - 0:07.0")
        recent.locator("a").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**start=3**")
        # A picture of the clipboard.
        page.goto(f"{address}search")
        page.evaluate(PASTE, f"/videos/{number}/thumbnail?time=6")
        expect(page.locator(".match").first).to_be_visible(timeout=60_000)
        expect(page.locator("#query figcaption")).to_have_text("image.webp")
        expect(page.locator("#recent")).to_be_hidden()
        # It is remembered, too, as long as the server has it.
        page.goto(f"{address}search")
        expect(recent).to_have_count(2)
        expect(recent.first).to_contain_text("image.webp")
        recent.first.locator("a").click()
        expect(page.locator(".match").first).to_be_visible(timeout=60_000)
        page.evaluate(
            "() => { for (const [key, value] of Object.entries(localStorage))"
            ' localStorage.setItem(key, value.replaceAll(/upload([=s])[^"&]*?(?=["&/])/g, (_, mark) =>'
            " `upload${mark}${mark === 's' ? '/' : ''}gone`)); }"
        )
        page.goto(f"{address}search")
        expect(recent).to_have_count(1)


def test_enter_saves_a_name_and_an_existing_name_is_selected(browser: Browser, address: str) -> None:
    with new_page(browser) as page:
        page.goto(address)
        page.locator(".card .picture").first.hover()
        page.locator("[data-pick]").first.check()
        page.locator("#to-list").click()
        expect(page.locator("#listing")).to_be_visible()
        page.wait_for_function("getSelection().toString() === 'favorites'")
        page.keyboard.type("seen")
        page.keyboard.press("Enter")
        expect(page.locator("#messages")).to_contain_text('Added to "seen".')


@pytest.mark.parametrize("name", ["weird_aspect.small.mpg", "film.avi"])
def test_unplayable_files_are_converted_with_sound(
    browser: Browser, shared_data: Path, tmp_path: Path, name: str
) -> None:
    """MPEG-1 with MP2 of a real recording; and H.264 with PCM in AVI."""
    folder = tmp_path / "videos"
    folder.mkdir()
    if name == "film.avi":
        write_sounds(folder / name, [tune(4, seed=1)], pictures="coffee", codec="pcm_s16le")
    else:
        (folder / name).write_bytes((shared_data / "odd" / name).read_bytes())
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
    with served(tmp_path / "i.vidkin") as opened, new_page(browser) as page:
        page.goto(f"{opened}videos/1")
        player = page.locator(".player")
        expect(player).to_contain_text("Converted for this browser.")
        piece = page.request.get(f"{opened}videos/1/preview?piece=0")
        (tmp_path / "piece.mp4").write_bytes(piece.body())
        assert probe(tmp_path / "piece.mp4").has_audio
        player.get_by_role("button", name="Play").click()
        page.wait_for_function(
            "() => { const video = document.querySelector('.player video');"
            " return !video.muted && video.currentTime > 0.3 && video.webkitAudioDecodedByteCount > 0; }"
        )
