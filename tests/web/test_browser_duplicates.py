"""The duplicates page in a real browser: groups at once, verdicts that keep their place, removal and undo."""

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


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """The address of a server whose index has two groups, found by a command; and the folder of its videos."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    library = make_library(tmp_path)
    encode(library.folder / "cat.mp4", pan("chelsea", 80))
    encode(library.folder / "cat small.mp4", pan("chelsea", 80), options={"crf": "34"})
    with Index.open(library.index) as index:
        index.add(library.folder, executor=SerialExecutor(index.worker_spec))
        assert len(index.duplicates()) == 2
    with served(library.index) as address:
        yield address, library.folder


def test_groups_are_there_at_once_and_a_verdict_keeps_its_place(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser, height=500) as page:
        page.goto(f"{address}duplicates")
        groups = page.locator(".group")
        expect(groups).to_have_count(2)  # a command found them
        removable = page.locator("#savings")
        before = removable.inner_text()
        # The same moments in files of the same begin, to half a second: features are stored once a second.
        times = [box.locator(".length").all_inner_texts() for box in groups.nth(0).locator(".member").all()]
        assert len(times[0]) == 3
        assert [abs(float(a[2:]) - float(b[2:])) < 0.5 for a, b in zip(*times, strict=True)] == [True] * 3
        # By key, on the second group, which has been scrolled to.
        last = groups.nth(1).locator(".member").nth(1)
        last.scroll_into_view_if_needed()
        last.focus()
        top = groups.nth(1).bounding_box()
        page.keyboard.press("n")
        expect(groups.nth(1)).to_contain_text("settled")
        after = groups.nth(1).bounding_box()
        assert top is not None
        assert after is not None
        assert after["y"] == pytest.approx(top["y"], abs=60)
        expect(removable).not_to_have_text(before)
        page.keyboard.press("u")
        expect(removable).to_have_text(before)
        expect(page.locator(".group:not(.settled)")).to_have_count(2)
        # By mouse: keep the other one, and back by the button of the message.
        first = groups.nth(0)
        first.get_by_role("button", name="Keep this one").click()
        expect(first.locator(".member.best")).to_contain_text("your choice")
        page.locator("#messages").get_by_role("button", name="Undo").last.click()
        expect(page.locator("#messages")).to_contain_text("Taken back.")
        # Filters stay over a reload.
        page.get_by_label("Name").fill("coffee")
        expect(groups).to_have_count(1)
        page.reload()
        expect(groups).to_have_count(1)
        assert page.get_by_label("Name").input_value() == "coffee"


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_copies_are_moved_and_brought_back(browser: Browser, place: tuple[str, Path], tmp_path: Path, by: str) -> None:
    address, folder = place
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with new_page(browser) as page:
        page.goto(f"{address}duplicates")
        expect(page.locator(".group")).to_have_count(2)
        if by == "key":
            page.locator(".member").nth(1).focus()
            page.keyboard.press("x")
            expect(page.locator("#selected")).to_contain_text("1 copy selected")
            page.keyboard.press("Delete")
            expect(page.locator("#messages")).to_contain_text("1 file moved")
            expect(page.locator(".group:not(.settled)")).to_have_count(1)
            assert len(list(folder.iterdir())) == len(before) - 1
            page.keyboard.press("u")
            expect(page.locator("#messages")).to_contain_text("1 file brought back.")
        else:
            page.get_by_role("button", name="Select all that may be removable").click()
            expect(page.locator("#selected")).to_contain_text("2 copies selected")
            page.get_by_role("button", name="Move to a folder").click()
            page.get_by_label("Folder on this computer").fill(str(tmp_path / "away"))
            page.get_by_role("button", name="Move there").click()
            expect(page.locator("#messages")).to_contain_text("2 files moved")
            expect(page.locator("#summary")).to_contain_text("No duplicates found.")
            assert len(list(folder.iterdir())) == len(before) - 2
            page.locator("#history summary").click()
            history = page.locator("#history .removals")
            expect(history).to_contain_text("2 files")
            history.get_by_role("button", name="Bring cat small.mp4 back").click()
            expect(page.locator("#messages")).to_contain_text("1 file brought back.")
            assert (folder / "cat small.mp4").read_bytes() == before["cat small.mp4"]
            history.get_by_role("button", name="Undo", exact=True).click()
            expect(history).to_contain_text("undone")
        expect(page.locator(".group:not(.settled)")).to_have_count(2)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_group_plays_in_sync_and_groups_appear_while_a_search_runs(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser) as page:
        page.goto(f"{address}duplicates")
        page.locator(".member").first.focus()
        page.keyboard.press("p")
        expect(page.locator(".stage[data-exact]")).to_be_attached(timeout=60_000)
        page.get_by_role("button", name="Play in sync", exact=True).first.click()
        times = "[...document.querySelectorAll('.stage video')].map(video => video.currentTime)"
        page.wait_for_function(f"() => {times}.length === 2 && {times}.every(time => time > 1)")
        one, other = page.evaluate(times)
        assert abs(one - other) < 0.3
        page.get_by_role("button", name="Stop playing").click()
        expect(page.locator(".stage video")).to_have_count(0)
        page.get_by_role("button", name="Find duplicates").click()
        expect(page.locator("#progress")).to_be_hidden(timeout=60_000)
        expect(page.locator(".group")).to_have_count(2)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("select the copy")
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.wait_for_url("**/search")
