"""Duplicates, shots and review in a real browser, by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.stored_runs import write_training
from tests.support.videos import encode, pan
from tests.web.browser import export, new_page, open_browser, served
from tests.web.conftest import make_library
from vidkin.index import Index, SerialExecutor
from vidkin.review import Labels

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def test_duplicates_are_found_judged_and_planned(browser: Browser, tmp_path: Path) -> None:
    library = make_library(tmp_path)
    with served(library.index) as address, new_page(browser, width=360, height=800) as page:
        # Another page has already started the search.
        state = {
            "id": 7,
            "kind": "duplicates",
            "state": "running",
            "done": 3,
            "total": 10,
            "detail": "comparing",
        }
        events = f"data: {json.dumps(state)}\n\n"
        page.route("**/api/jobs?*", lambda route: route.fulfill(json=[state]))
        page.route("**/events", lambda route: route.fulfill(content_type="text/event-stream", body=events))
        page.goto(f"{address}duplicates")
        expect(page.locator("#progress")).to_contain_text("comparing, 3 of 10")
        page.unroute_all()
        page.goto(f"{address}duplicates")
        page.get_by_role("button", name="Find duplicates").click()
        members = page.locator(".member")
        expect(members).to_have_count(2, timeout=60_000)
        expect(members.nth(0)).to_contain_text("keep (")
        expect(page.get_by_label("Sort")).to_be_visible()  # what was found can be filtered at once
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        # With the keyboard, the copy is chosen to be kept; groups are updated at once, and the focus stays on the file.
        members.nth(0).focus()
        page.keyboard.press("ArrowRight")
        expect(members.nth(1)).to_be_focused()
        page.keyboard.press("k")
        expect(members.nth(0)).to_contain_text("keep (your choice)")
        expect(members.nth(0)).to_contain_text("copy.mp4")
        expect(members.nth(0)).to_be_focused()
        assert export(page, "Plan for").suggested_filename == "plan.json"
        page.get_by_role("button", name="Not a match").click()
        expect(page.locator(".group")).to_contain_text("Done: no duplicates left")
        page.reload()
        expect(page.get_by_text("No duplicates found.")).to_be_visible()


def test_cuts_are_corrected_and_pairs_are_judged(browser: Browser, tmp_path: Path) -> None:
    encode(
        tmp_path / "film.mp4",
        [frame for name in ("coffee", "rocket", "astronaut") for frame in pan(name, 20)],
    )
    encode(tmp_path / "other.mp4", pan("rocket", 20))
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add([tmp_path / "film.mp4", tmp_path / "other.mp4"], executor=SerialExecutor(index.worker_spec))
    with served(tmp_path / "i.vidkin") as address, new_page(browser, width=360, height=800) as page:
        # Another page has already started detecting the shots of this video; this page follows it to the result.
        number = page.request.post(f"{address}api/videos/1/shots").json()["id"]
        state = {"id": number, "kind": "shots", "video": 1, "state": "running", "done": 3, "total": 10}
        events = f"data: {json.dumps({**state, 'detail': 'frames'})}\n\n"
        page.route("**/api/jobs?*", lambda route: route.fulfill(json=[state]))
        page.route("**/events", lambda route: route.fulfill(content_type="text/event-stream", body=events))
        page.goto(f"{address}shots?q=film")
        page.locator(".card a").click()
        expect(page.locator("#find")).to_contain_text("frames, 3 of 10")
        expect(page.get_by_role("button", name="Find shots")).to_be_disabled()
        cuts = page.locator("#cuts button")
        page.unroute_all()
        expect(cuts).to_have_count(2, timeout=60_000)
        expect(page.locator("#find")).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        # With the keyboard, the first cut is moved a frame later, and the second one is deleted.
        page.keyboard.press("n")
        expect(cuts.nth(0)).to_be_focused()
        page.keyboard.press("ArrowRight")
        expect(cuts.nth(0)).to_have_attribute("aria-label", "hard cut at 0:02.1")
        page.keyboard.press("n")
        page.keyboard.press("Delete")
        expect(cuts).to_have_count(1)
        # With the mouse, the cut is dragged to 0.9 of the timeline.
        box, line = cuts.nth(0).bounding_box(), page.locator("#timeline").bounding_box()
        assert box is not None
        assert line is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(line["x"] + 0.9 * line["width"], box["y"] + 20, steps=4)
        page.mouse.up()
        expect(cuts.nth(0)).to_have_attribute("aria-label", "hard cut at 0:05.4")
        page.keyboard.press("s")
        expect(page.locator("#facts")).to_contain_text("1 cut between them (as you corrected them)")
        assert export(page, "Edit decision list (EDL)").suggested_filename == "film.edl"
        verdicts = {label.frame: label.verdict for label in Labels.open(tmp_path / "i.vidkin").cuts}
        assert verdicts == {54: "cut", 40: "no cut"}

        page.goto(f"{address}review")
        expect(page.locator("#pair figure")).to_have_count(2)
        expect(page.get_by_role("button", name="Train on the verdicts")).to_be_disabled()
        expect(page.get_by_text("0 of 30 verdicts; needed: verdicts of at least two kinds.")).to_be_visible()
        page.keyboard.press("2")
        expect(page.get_by_text("1 verdict: 0 same, 1 same kind, 0 different.")).to_be_visible()
        expect(page.get_by_text("No pair is left to judge.")).to_be_visible()
        expect(page.get_by_role("button", name="different")).to_be_disabled()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_shots_of_an_unplayable_video_are_shown_converted(browser: Browser, tmp_path: Path) -> None:
    """The MPEG-2 video has 25 frames per second and a cut at 10.4 s, in the second converted piece."""
    frames = [*pan("coffee", 260, width=96, height=64), *pan("rocket", 60, width=96, height=64)]
    encode(tmp_path / "film.mpg", frames, rate=25, codec="mpeg2video", options={"b": "2000000"})
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add(tmp_path / "film.mpg", executor=SerialExecutor(index.worker_spec))
        (record,) = index.videos()
    with served(tmp_path / "i.vidkin") as address, new_page(browser) as page:
        page.goto(f"{address}videos/{record.id}/shots")
        expect(page.locator(".player")).to_contain_text("Converted for this browser")
        page.get_by_role("button", name="Find shots").click()
        expect(page.locator("#cuts button")).to_have_count(1, timeout=60_000)
        page.keyboard.press("n")
        # The player seeks to the middle of the first frame after the cut.
        video = "document.querySelector('video')"
        moment = f"`${{{video}.src.slice(-1)}} ${{{video}.currentTime.toFixed(2)}}`"
        page.wait_for_function(f"() => {moment} === '1 0.42'")
        # Several seeks are requested before any piece has loaded; the last one counts.
        page.locator(".play").focus()
        for key in ("ArrowLeft", "ArrowRight", "Shift+ArrowLeft"):
            page.keyboard.press(key)
        page.wait_for_function(f"() => {moment} === '0 5.42'")
        expect(page.locator(".clock")).to_contain_text("0:05.4 / 0:12.")
        # Playback continues across the boundary between the pieces.
        page.keyboard.press("Enter")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        page.wait_for_function(f"() => {video}.src.endsWith('1') && {video}.currentTime > 0.3")
        expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_runs_are_compared_while_one_is_running(browser: Browser, tmp_path: Path) -> None:
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True):
        pass
    write_training(tmp_path / "runs" / "first", [2.0, 1.0], report=True)
    write_training(tmp_path / "runs" / "second", [3.0], report=False)
    options = ("--experiments", str(tmp_path / "runs"))
    with served(tmp_path / "i.vidkin", *options) as address, new_page(browser, width=360, height=800) as page:
        page.goto(f"{address}experiments")
        for name in ("first", "second"):
            page.get_by_role("checkbox", name=name).focus()
            page.keyboard.press("Space")
        expect(page.locator("#legend li")).to_have_count(2)
        row = page.locator("#figures tr", has=page.get_by_text("loss", exact=True))
        expect(row).to_contain_text("1.000")
        expect(row).to_contain_text("3.000")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        # New log lines of the running training appear automatically.
        with (tmp_path / "runs" / "second" / "run.jsonl").open("a", encoding="utf-8") as log:
            log.write('{"step": 2, "kind": "step", "loss": 0.5}\n')
        expect(row).to_contain_text("0.5000")


def test_pair_plays_muted_in_sync_and_a_verdict_is_undone(browser: Browser, tmp_path: Path) -> None:
    """``part.mp4`` is seconds 3 to 8 of ``coffee.mp4``, so the time of one determines the time of the other."""
    frames = list(pan("coffee", 120))
    encode(tmp_path / "coffee.mp4", frames)
    encode(tmp_path / "part.mp4", frames[30:80])
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add([tmp_path / "coffee.mp4", tmp_path / "part.mp4"], executor=SerialExecutor(index.worker_spec))
    with served(tmp_path / "i.vidkin") as address, new_page(browser) as page:
        page.goto(f"{address}review")
        page.wait_for_selector("#pair[data-synced] figure")
        assert page.evaluate("[...document.querySelectorAll('#pair video')].every(video => video.muted)")
        page.wait_for_function("() => [...document.querySelectorAll('#pair video')].every(video => !video.paused)")
        page.wait_for_timeout(1000)
        page.keyboard.press("p")
        page.wait_for_function("() => [...document.querySelectorAll('#pair video')].every(video => video.paused)")
        page.wait_for_timeout(400)
        times = page.evaluate("[...document.querySelectorAll('#pair video')].map(video => video.currentTime)")
        assert abs(abs(times[0] - times[1]) - 3.0) < 0.25
        # A verdict is given and undone with the keyboard; the message is a line on the page.
        expect(page.get_by_role("button", name="undo")).to_be_disabled()
        page.keyboard.press("1")
        expect(page.get_by_text("1 verdict: 1 same")).to_be_visible()
        expect(page.locator("#history li")).to_contain_text("coffee.mp4")
        page.keyboard.press("u")
        expect(page.get_by_text("0 verdicts: 0 same")).to_be_visible()
        expect(page.locator("#told")).to_have_text("Verdict undone.")
        expect(page.locator("#messages p")).to_have_count(0)
        expect(page.locator("#pair figure")).to_have_count(2)
        # A verdict is given with the mouse and changed in the history.
        page.get_by_role("button", name="different").click()
        page.locator("#history select").select_option("same kind")
        expect(page.get_by_text("1 verdict: 0 same, 1 same kind, 0 different.")).to_be_visible()
        expect(page.get_by_role("button", name="Train on the verdicts")).to_be_disabled()
        expect(page.get_by_text("1 of 30 verdicts; needed: verdicts of at least two kinds.")).to_be_visible()
