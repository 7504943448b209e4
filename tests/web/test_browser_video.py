"""The pages of a video and of its shots in a real browser, by mouse and by key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.videos import Image, encode, pan
from tests.web.browser import export, new_page, open_browser, served
from tests.web.conftest import make_library
from vidkin.index import Index, SerialExecutor
from vidkin.media import probe
from vidkin.review import Labels
from vidkin.shots import shot_format_names

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]

# Left, top, right and bottom of each element.
BOXES = """elements => elements.map(element => {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  return [left, top, right, bottom];
})"""


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


def test_video_page_finds_each_kind_of_information_with_one_click(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser) as page:
        page.goto(address)
        page.goto(f"{address.rstrip('/')}{page.get_by_role('link', name='coffee.mp4').get_attribute('href')}")
        # Keys mean the page as long as nothing else of it has the focus.
        page.keyboard.press("i")
        expect(page.locator(".range")).to_have_text("0:00.0 - 0:12.0")
        page.keyboard.press("Escape")
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
        recurring = page.get_by_role("region", name="Recurring segments")
        recurring.get_by_role("button").click()
        expect(recurring.locator("li").first).to_contain_text("also in copy.mp4", timeout=60_000)
        # The results are still there when the page is opened again.
        page.reload()
        expect(similar.locator(".card").first).to_contain_text("copy.mp4")
        expect(similar.get_by_role("button")).to_be_hidden()
        expect(recurring.locator("li").first).to_contain_text("copy")


def test_shots_are_viewed_selected_and_saved_as_a_clip(browser: Browser, place: tuple[str, Path]) -> None:
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
        page.get_by_role("button", name="New clip").click()
        link = page.get_by_role("link", name="Save the clip")
        expect(link).to_be_visible()
        with page.expect_download() as download:
            link.click()
        assert download.value.suggested_filename == "film-shots.mp4"
        for name, file in (("Chapters", "film.chapters.txt"), ("Contact sheet", "film.html")):
            assert export(page, name).suggested_filename == file
        page.get_by_role("button", name="Split into files...").click()
        page.get_by_label("New or empty folder").fill(str(folder.parent / "shots"))
        page.get_by_role("button", name="Split", exact=True).click()
        expect(page.locator("#messages")).to_contain_text("2 files in")
        assert len(list((folder.parent / "shots").glob("*.mp4"))) == 2


def test_phone_has_one_file_menu_that_opens_and_closes_by_key(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser, width=375, height=760) as page:
        open_shots(page, address, "film")
        menu, files = page.locator("#export"), page.locator("#export a")
        expect(files).to_have_count(len(shot_format_names()))
        assert not any(link.is_visible() for link in page.locator("a[download]").all())
        page.locator("#export summary").focus()
        page.keyboard.press("Enter")
        expect(files.first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        page.keyboard.press("Escape")
        expect(menu).not_to_have_attribute("open", "")
        expect(page.locator("#export summary")).to_be_focused()


def test_system_player_opens_at_the_time_of_the_converted_video(browser: Browser, tmp_path: Path) -> None:
    """Second 12 is in the second piece of ten seconds."""
    folder = tmp_path / "videos"
    folder.mkdir()
    frames = list(pan("coffee", 24, width=96, height=64))
    encode(folder / "film.mpg", [frame for frame in frames for _ in range(15)], rate=25, codec="mpeg2video")
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
    with served(tmp_path / "i.vidkin") as address, new_page(browser) as page:
        asked: list[float] = []

        def answer(route: Route) -> None:
            asked.append(route.request.post_data_json["time"])
            route.fulfill(json={"player": "mpv"})

        page.route("**/open", answer)
        page.goto(f"{address}videos/1?time=12")
        expect(page.locator(".player")).to_contain_text("Converted for this browser.", timeout=30_000)
        expect(page.locator(".clock")).to_contain_text("0:12.0 /")
        page.get_by_role("button", name="Open in the player").click()
        expect(page.get_by_text("Opened in mpv.")).to_be_visible()
        assert asked == [pytest.approx(12, abs=0.1)]


def test_critical_parts_are_marked_by_mouse_and_keyboard_and_exported(
    browser: Browser, place: tuple[str, Path]
) -> None:
    """A film of 60 frames at ten a second, with cuts at 20 and 40."""
    address, _ = place
    with new_page(browser) as page:
        page.goto(f"{address}shots?q=film")
        page.goto(f"{address.rstrip('/')}{page.get_by_role('link', name='film.mp4').get_attribute('href')}")
        find = page.get_by_role("button", name="Find shots")
        expect(find.or_(page.locator("#list .card").first)).to_be_visible()
        if find.is_visible():
            find.click()
        expect(page.locator("#list .card")).to_have_count(3, timeout=60_000)
        marks = page.locator("#bands .mark")
        # What is marked is seen: the frames are below it, more of them in a larger timeline.
        frames = page.locator("#timeline .film img")
        expect(frames).to_have_count(10)
        page.locator("#zoom").fill("1")
        expect(frames).to_have_count(20)
        page.locator("#zoom").fill("0")
        expect(frames.first).not_to_have_js_property("naturalWidth", 0)

        def drag(start: float, end: float) -> None:
            box = page.locator("#timeline").bounding_box()
            assert box is not None
            page.mouse.move(box["x"] + box["width"] * start / 6, box["y"] + box["height"] - 12)
            page.mouse.down()
            page.mouse.move(box["x"] + box["width"] * (start + end) / 12, box["y"] + box["height"] - 12)
            page.mouse.move(box["x"] + box["width"] * end / 6, box["y"] + box["height"] - 12)
            page.mouse.up()

        drag(1.2, 1.8)
        expect(marks).to_have_count(1)
        expect(marks).to_have_attribute("aria-label", re.compile(r"critical from 0:01\.2 to 0:01\.8"))
        expect(page.locator("#facts")).to_contain_text("not saved yet")
        # From right to left, and across the end of the first: they become one. Another one is taken away again.
        drag(1.9, 1.5)
        expect(marks).to_have_count(1)
        drag(3.0, 3.5)
        expect(marks).to_have_count(2)
        marks.nth(1).click()
        expect(marks).to_have_count(1)
        # A click on the strip seeks, as before.
        box = page.locator("#timeline").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] * 5.55 / 6, box["y"] + box["height"] - 12)
        page.wait_for_function("() => document.querySelector('#player video').currentTime > 5")
        expect(marks).to_have_count(1)
        # Without a mouse.
        page.locator("#timeline").focus()
        page.keyboard.press("m")
        expect(page.get_by_role("button", name="Critical up to here")).to_be_visible()
        page.get_by_role("button", name="Critical up to here").click()
        expect(marks).to_have_count(2)
        page.keyboard.press("s")
        expect(page.locator("#facts")).to_contain_text("as you corrected them")
        page.reload()
        expect(marks).to_have_count(2)
        labels = export(page, "Labels")
        assert labels.suggested_filename == "film.labels.json"
        (video,) = json.loads(Path(labels.path()).read_text())["videos"]
        assert [(shot["start"], shot["end"]) for shot in video["shots"]] == [(0, 20), (20, 40), (40, 60)]
        assert video["shots"][0]["critical"] == [12, 19]
        assert video["shots"][1]["critical"] is None
        assert video["shots"][2]["critical"][0] == pytest.approx(55, abs=1)


def read_labels(index: Path) -> list[tuple[int, str, int | None]]:
    """Frame, verdict and frame before a move of each label."""
    return sorted((label.frame, label.verdict, label.moved_from) for label in Labels.open(index).cuts)


def test_moved_cut_is_one_verdict_and_one_undo_step(browser: Browser, place: tuple[str, Path]) -> None:
    """The cuts of the film are at frames 20 and 40, ten a second."""
    address, folder = place
    with new_page(browser) as page:
        open_shots(page, address, "film")
        reset = page.get_by_role("button", name="Back to what was detected")
        if reset.is_enabled():
            reset.click()
        labels = folder.parent / "c.vidkin"
        cuts, facts = page.locator("#cuts button"), page.locator("#facts")
        undo = page.get_by_role("button", name="Undo")
        expect(cuts).to_have_count(2)
        expect(undo).to_be_disabled()

        def drag(number: int, time: float) -> None:
            box, line = cuts.nth(number).bounding_box(), page.locator("#timeline").bounding_box()
            assert box is not None
            assert line is not None
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
            page.mouse.down()
            page.mouse.move(line["x"] + line["width"] * time / 6, box["y"] + 10, steps=5)
            page.mouse.up()

        drag(0, 2.5)
        expect(cuts.nth(0)).to_have_attribute("aria-label", "hard cut at 0:02.5")
        undo.click()
        expect(cuts.nth(0)).to_have_attribute("aria-label", "hard cut at 0:02.0")
        expect(facts).not_to_contain_text("not saved yet")
        expect(undo).to_be_disabled()
        drag(0, 2.5)
        page.keyboard.press("s")
        expect(facts).to_contain_text("as you corrected them")
        assert read_labels(labels) == [(25, "cut", 20), (40, "cut", None)]
        # Undone after saving, and saved again: the verdict is back on the first frame.
        page.keyboard.press("u")
        expect(cuts.nth(0)).to_have_attribute("aria-label", "hard cut at 0:02.0")
        page.keyboard.press("s")
        expect(facts).to_contain_text("as you corrected them")
        assert read_labels(labels) == [(20, "cut", None), (40, "cut", None)]
        # By key: several frames are one step.
        page.keyboard.press("n")
        expect(cuts.nth(0)).to_be_focused()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        expect(cuts.nth(0)).to_have_attribute("aria-label", "hard cut at 0:02.3")
        page.keyboard.press("u")
        expect(cuts.nth(0)).to_have_attribute("aria-label", "hard cut at 0:02.0")
        page.keyboard.press("n")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("s")
        expect(facts).to_contain_text("as you corrected them")
        assert read_labels(labels) == [(19, "cut", 20), (40, "cut", None)]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a film that fades in and out around two cuts, and of one of 21 shots, some of half a second."""
    root = tmp_path_factory.mktemp("shelf")
    folder = root / "videos"
    folder.mkdir()
    encode(folder / "fades.mp4", fading_film(), rate=24)
    names = ("coffee", "rocket", "chelsea", "astronaut")
    lengths = [12 if number in (4, 5, 13, 14, 15) else 60 for number in range(21)]
    quick = [
        frame
        for number, length in enumerate(lengths)
        for frame in pan(names[number % 4], length, width=96, height=64, seed=number)
    ]
    encode(folder / "quick.mp4", quick, rate=20)
    with Index.open(root / "i.vidkin", extractor="classical", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
    with served(root / "i.vidkin") as address:
        yield address


def fading_film() -> Iterator[Image]:
    """24 frames a second: 3 s, of which the first fades in from black, 2 s, 4 s, of which the last fades out."""
    lights = [*np.linspace(0, 1, 24), *np.ones(24 * 7), *np.linspace(1, 0, 24)]
    pictures = [*pan("coffee", 72), *pan("chelsea", 48), *pan("astronaut", 96)]
    for light, picture in zip(lights, pictures, strict=True):
        yield (picture * light).astype(np.uint8)


def check_apart(handles: Locator) -> None:
    """Each has 8 pixels or more, and none lies over another one."""
    boxes = handles.evaluate_all(BOXES)
    assert min(right - left for left, _, right, _ in boxes) >= 8
    for place, (left, top, right, bottom) in enumerate(boxes):
        for left_, top_, right_, bottom_ in boxes[place + 1 :]:
            assert right <= left_ + 0.01 or right_ <= left + 0.01 or bottom <= top_ + 0.01 or bottom_ <= top + 0.01


def open_shots(page: Page, address: str, name: str) -> Locator:
    """Open the shots of a video, found if they were not; the cards."""
    page.goto(f"{address}shots?q={name}")
    page.get_by_role("link", name=f"{name}.mp4").click()
    # Either is there as soon as the page knows.
    find, cards = page.get_by_role("button", name="Find shots"), page.locator("#list .card")
    expect(find.or_(cards.first)).to_be_visible()
    if find.is_visible():
        find.click()
    expect(cards.first).to_be_visible(timeout=60_000)
    return cards


def test_shot_cards_match_the_clips_of_a_video_with_fades(browser: Browser, shelf: str) -> None:
    with new_page(browser) as page:
        cards = open_shots(page, shelf, "fades")
        number = re.search(r"/videos/(\d+)/", page.url)
        assert number is not None
        shots = page.request.get(f"{shelf}api/videos/{number[1]}/shots").json()["shots"]
        assert [shot["kind"] for shot in shots] == ["fade", "hard", "hard"]
        expect(cards).to_have_count(3)
        expect(page.locator("#cuts button")).to_have_count(4)
        expect(page.locator("#facts")).to_contain_text(
            "3 shots, 2 cuts between them, 2 other transitions (found by the default detector)"
        )
        expect(cards.nth(0)).to_contain_text("1: 0:00.0 - 0:03.0")
        expect(cards.nth(0)).to_contain_text(re.compile(r"fade from 0:00\.0 to 0:0[01]\.\d"))
        expect(cards.nth(1)).to_contain_text("2: 0:03.0 - 0:05.0")
        page.get_by_label("Select shot 2").check()
        page.get_by_role("button", name="New clip").click()
        link = page.get_by_role("link", name="Save the clip")
        with page.expect_download() as download:
            link.click()
        assert probe(download.value.path()).duration == pytest.approx(2.0, abs=1 / 24)
        # The last shot as well: a card that the server does not know would be refused.
        page.get_by_role("button", name="Select none").click()
        page.get_by_label("Select shot 3").check()
        page.get_by_role("button", name="New clip").click()
        with page.expect_download() as download:
            link.click()
        assert probe(download.value.path()).duration == pytest.approx(4.0, abs=1 / 24)
        # While a cut is moved the fades divide nothing either.
        page.locator("#cuts button").nth(1).focus()
        page.keyboard.press("Shift+ArrowRight")
        expect(page.locator("#facts")).to_contain_text(
            "3 shots, 2 cuts between them, 2 other transitions (not saved yet)"
        )
        expect(cards.nth(0)).to_contain_text("1: 0:00.0 - 0:03.4")
        expect(cards.nth(0)).to_contain_text("fade from 0:00.0")
        page.keyboard.press("s")
        expect(page.locator("#facts")).to_contain_text(
            "3 shots, 2 cuts between them, 2 other transitions (as you corrected them)"
        )
        expect(cards).to_have_count(3)


def test_each_of_twenty_cut_handles_is_clickable_on_a_narrow_screen(browser: Browser, shelf: str) -> None:
    with new_page(browser, width=400, height=800) as page:
        cards = open_shots(page, shelf, "quick")
        expect(cards).to_have_count(21)
        expect(page.locator("#cuts button")).to_have_count(20)
        check_apart(page.locator("#cuts button"))
        # The lower one of two that are close chooses its own cut.
        low = page.locator("#cuts button.low").first
        name = low.get_attribute("aria-label")
        low.click()
        expect(page.locator("#cuts button[aria-current]")).to_have_attribute("aria-label", name or "")


def test_handles_of_adjacent_cuts_do_not_overlap_on_a_narrow_screen(browser: Browser, place: tuple[str, Path]) -> None:
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
        check_apart(handles)
