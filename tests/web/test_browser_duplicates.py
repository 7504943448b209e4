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

expect.set_options(timeout=20_000)


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


def test_groups_appear_at_once_and_verdicts_keep_the_position(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser, height=500) as page:
        page.goto(f"{address}duplicates")
        groups = page.locator(".group")
        expect(groups).to_have_count(2)  # a command found them
        removable = page.locator("#savings")
        before = removable.inner_text()
        # The same moments in files with the same beginning, to half a second, because features are stored once per
        # second.
        pictures = groups.nth(0).locator(".member .pair img")
        words = [str(picture.get_attribute("alt")).split(" at 0:") for picture in pictures.all()]
        assert [who for who, _ in words] == ["kept file", "copy"] * 3
        times = [float(time) for _, time in words]
        assert [abs(kept - copy) < 0.5 for kept, copy in zip(times[::2], times[1::2], strict=True)] == [True] * 3
        # By key, on the second group, which has been scrolled to.
        last = groups.nth(1).locator(".member").nth(1)
        last.scroll_into_view_if_needed()
        last.focus()
        top = groups.nth(1).bounding_box()
        page.keyboard.press("n")
        expect(groups.nth(1)).to_contain_text("Done: no duplicates left")
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
        expect(page.locator("#messages")).to_contain_text("Verdict undone.")
        # Filters stay over a reload.
        page.get_by_role("searchbox", name="Name").fill("coffee")
        expect(groups).to_have_count(1)
        page.reload()
        expect(groups).to_have_count(1)
        assert page.get_by_role("searchbox", name="Name").input_value() == "coffee"


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_copies_are_moved_and_restored(browser: Browser, place: tuple[str, Path], tmp_path: Path, by: str) -> None:
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
            expect(page.locator(".group.settled h2")).to_have_text("Done: no duplicates left in this group")
            expect(page.locator(".group.settled .about p")).to_have_count(0)
            page.keyboard.press("u")
            expect(page.locator("#messages")).to_contain_text("1 file restored.")
            expect(page.locator("#messages")).not_to_contain_text("moved")  # it could be undone twice
            expect(page.locator("#messages")).not_to_contain_text("Verdict undone.")
        else:
            page.get_by_role("button", name="Select", exact=True).click()
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
            history.get_by_role("button", name="Restore cat small.mp4").click()
            expect(page.locator("#messages")).to_contain_text("1 file restored.")
            assert (folder / "cat small.mp4").read_bytes() == before["cat small.mp4"]
            history.get_by_role("button", name="Undo", exact=True).click()
            expect(history).to_contain_text("undone")
        expect(page.locator(".group:not(.settled)")).to_have_count(2)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_group_plays_in_sync_and_groups_appear_during_a_search(browser: Browser, place: tuple[str, Path]) -> None:
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


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server with nine groups of two, in two folders, and the folder of all."""
    folder = tmp_path_factory.mktemp("many") / "videos"
    names = ("coffee", "rocket", "chelsea", "astronaut", "brick", "gravel", "grass", "camera", "coins")
    for number, name in enumerate(names):
        for place, options in (("kept", {"preset": "medium"}), ("old" if number % 2 else "phone", {"crf": "38"})):
            (folder / place).mkdir(parents=True, exist_ok=True)
            shape = {"width": 192, "height": 128} if place == "kept" else {"width": 144, "height": 96}
            encode(folder / place / f"{name}.mp4", pan(name, 40 + 2 * number, **shape), options=options)
    with Index.open(folder.parent / "i.vidkin", extractor="classical", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
        assert len(index.duplicates()) == len(names)
    with served(folder.parent / "i.vidkin") as address:
        yield address, folder


def test_eight_groups_fit_on_a_screen_and_columns_sort_them(browser: Browser, many: tuple[str, Path]) -> None:
    address, _ = many
    with new_page(browser) as page:
        page.goto(f"{address}duplicates", wait_until="domcontentloaded")  # 54 frames come late
        groups = page.locator(".group")
        expect(groups).to_have_count(9)
        bottoms = [box["y"] + box["height"] for group in groups.all() if (box := group.bounding_box()) is not None]
        assert sum(bottom <= 900 for bottom in bottoms) >= 8
        # Differences from the kept file are marked, with the value of the kept file.
        copy = groups.nth(0).locator(".member").nth(1)
        expect(copy.locator("td.differs").filter(has_text="144x96")).to_have_attribute(
            "title", "the kept file: 192x128"
        )
        expect(copy.locator("td").filter(has_text="0:04")).not_to_have_class("differs")

        def lengths() -> list[str]:
            return page.locator(".member:not(.best) td:nth-child(5)").all_inner_texts()

        page.get_by_role("button", name="Length").click()  # the longest first
        expect(page).to_have_url(f"{address}duplicates?sort=length&descending=yes")
        expect(page.locator("th[aria-sort=descending]")).to_contain_text("Length")
        assert lengths() == sorted(lengths(), reverse=True)
        page.keyboard.press("Enter")  # the focus is still there: once more turns the order
        expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Length")
        assert lengths() == sorted(lengths())
        for column in ("Folder", "Pixels", "Reason", "fps", "Sound", "Date", "Size"):
            page.get_by_role("button", name=column, exact=True).click()
            expect(groups).to_have_count(9)
        page.get_by_label("Sort").select_option("path")
        expect(page).to_have_url(f"{address}duplicates")


def test_filter_fields_share_a_row_on_a_tablet(browser: Browser, many: tuple[str, Path]) -> None:
    address, _ = many
    with new_page(browser, width=768, height=1024) as page:
        page.goto(f"{address}duplicates", wait_until="domcontentloaded")
        for form in ("#filter", "#wish"):
            fields = page.locator(f"{form} label:not(.check)")
            boxes = [box for field in fields.all() if (box := field.bounding_box()) is not None]
            assert len(boxes) == 3
            assert len({round(box["y"]) for box in boxes}) == 1
        # Name and values are next to the frames: a copy takes two lines.
        copy = page.locator(".member:not(.best)").first.bounding_box()
        assert copy is not None
        assert copy["height"] < 110


def test_copies_are_selected_by_rule_and_messages_do_not_cover_the_bar(
    browser: Browser, many: tuple[str, Path]
) -> None:
    address, folder = many
    with new_page(browser) as page:
        page.goto(f"{address}duplicates", wait_until="domcontentloaded")  # 54 frames come late
        expect(page.locator(".group")).to_have_count(9)
        chosen, rule = page.locator("#selected"), page.locator("#rule")
        rule.get_by_role("button", name="Select").click()
        expect(chosen).to_contain_text("9 copies selected")
        rule.locator("select").select_option("folder")
        rule.locator("[name=folder]").fill(str(folder / "old"))
        page.keyboard.press("Enter")
        old = page.locator(f".member:not(.best) .folder[title='{folder / 'old'}']").count()
        assert 3 <= old <= 4  # which of two files is the best one is not asked here
        expect(chosen).to_contain_text(f"{old} copies selected")
        sizes = sorted(path.stat().st_size for place in ("old", "phone") for path in (folder / place).iterdir())
        rule.locator("select").select_option("below")
        rule.locator("[name=below]").fill(str(sizes[3] / 1e6))
        page.keyboard.press("Enter")
        expect(chosen).to_contain_text("3 copies selected")
        # A message stands above the bar, also while the bar has more lines.
        copy = page.locator(".member:not(.best)").first
        copy.focus()
        page.keyboard.press("c")
        expect(page.locator("#messages p")).to_contain_text("Saved: copy")
        page.locator("#move").click()
        for width in (1440, 768, 400):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(300)
            message, bar = page.locator("#messages").bounding_box(), page.locator("#selection").bounding_box()
            assert message is not None
            assert bar is not None
            assert message["y"] + message["height"] <= bar["y"]
        # Large frames and details, by key and by mouse.
        page.set_viewport_size({"width": 1440, "height": 900})
        about = page.locator(".about").first
        page.locator(".member:not(.best)").first.focus()
        page.keyboard.press("Enter")
        expect(about).to_contain_text("Score 1.00")
        page.locator("[data-about]").first.click()
        expect(about).to_be_hidden()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#messages")).to_contain_text("Verdict undone.")
