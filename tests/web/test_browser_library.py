"""The library in a real browser: filters, folders, a selection and lists, by mouse and by key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.videos import broken_off
from tests.web.browser import export, new_page, open_browser, served
from tests.web.conftest import Library, make_library
from vidkin.index import Index, SerialExecutor

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]

SAY = """([text, seconds]) => import("/static/js/base.js").then(({ say }) => {
  document.querySelector("#messages p")?.remove();
  say(text, { seconds });
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library that these tests write to."""
    root = tmp_path_factory.mktemp("shelf")
    return make_library(root)


@pytest.fixture(scope="module")
def address(own: Library) -> Iterator[str]:
    with served(own.index) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with new_page(browser) as opened:
        opened.goto(address)
        expect(opened.locator(".card")).to_have_count(4)
        yield opened


def test_filters_follow_typing_and_the_address(page: Page) -> None:
    cards = page.locator(".card")
    page.get_by_text("More filters").click()
    page.get_by_label("Longest length in seconds").fill("10")
    expect(cards).to_have_count(2)  # 8 s, and the broken one without a length
    page.get_by_label("Shortest length in seconds").fill("1")
    expect(cards).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?min_seconds=1&max_seconds=10$"))
    page.reload()
    expect(cards).to_have_count(1)
    expect(page.get_by_label("Longest length in seconds")).to_have_value("10")
    page.get_by_role("button", name="Clear").click()
    expect(cards).to_have_count(4)
    page.get_by_role("navigation", name="Folders").get_by_role("link", name="videos").click()
    expect(page).to_have_url(re.compile("folder="))
    expect(page.locator(".chips")).to_contain_text("In ")
    page.get_by_role("link", name="All folders").first.click()
    expect(page.locator(".chips")).to_have_count(0)


def test_hovering_a_thumbnail_shows_other_moments(page: Page) -> None:
    image = page.get_by_role("link", name="coffee.mp4").locator("img")
    box = image.bounding_box()
    assert box is not None
    for share in (0.25, 0.85):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        expect(image).to_have_attribute("src", re.compile(f"&time={12 * (share - 0.05):.1f}$"))
    page.mouse.move(0, 0)
    expect(image).not_to_have_attribute("src", re.compile("time="))


def test_unfolded_folders_stay_open_while_filtering(browser: Browser, tmp_path: Path) -> None:
    library = make_library(tmp_path)
    inner = library.folder / "season_1" / "part_1"
    inner.mkdir(parents=True)
    library.clip.rename(inner / "a_name_with_2_lines.mp4")
    with Index.open(library.index) as index:
        index.add(library.folder, executor=SerialExecutor(index.worker_spec))
    with served(library.index) as address, new_page(browser, width=400, height=800) as page:
        page.goto(address)
        page.get_by_text("Folders", exact=True).click()
        page.get_by_role("button", name="Folders in season_1").press("Enter")
        part = page.get_by_role("navigation", name="Folders").get_by_role("link", name="part_1")
        expect(part).to_be_visible()
        page.get_by_label("Name", exact=True).fill("coffee")
        expect(page.locator(".card")).to_have_count(1)
        expect(part).to_be_visible()
        part.click()
        expect(page).to_have_url(re.compile("q=coffee&.*folder=.*part_1"))  # the filter stays
        page.get_by_label("Name", exact=True).fill("")
        name = page.locator(".card .name")
        expect(name).to_have_text("a_name_with_2_lines.mp4")
        assert name.evaluate("name => name.querySelectorAll('wbr').length") == 4
        facts = page.locator(".card .facts").last.inner_text()
        assert re.search("[0-9]\N{NO-BREAK SPACE}kB", facts), facts  # no line begins with a unit
        page.get_by_role("button", name="Folders in season_1").click()
        expect(part).to_be_hidden()


def test_videos_are_selected_by_mouse_and_keyboard(page: Page) -> None:
    cards, chosen = page.locator(".card"), page.locator(".card.picked")
    bar = page.get_by_role("region", name="Selection")
    expect(bar).to_be_hidden()
    cards.nth(0).hover()
    cards.nth(0).locator(".pick").click()
    expect(bar).to_contain_text("1 video selected")
    cards.nth(2).locator("a").first.click(modifiers=["Shift"])
    expect(chosen).to_have_count(3)
    with page.context.expect_page() as other:
        cards.nth(1).locator("a").first.click(modifiers=["Control"])  # opens a tab, as everywhere
    other.value.close()
    expect(chosen).to_have_count(3)
    page.keyboard.press("Escape")
    expect(chosen).to_have_count(0)
    expect(bar).to_be_hidden()
    cards.nth(0).locator("a").first.focus()
    page.keyboard.press("x")
    page.keyboard.press("Shift+ArrowRight")
    expect(chosen).to_have_count(2)
    expect(cards.nth(1).locator("a").first).to_be_focused()
    page.keyboard.press("Control+a")
    expect(chosen).to_have_count(4)
    # The selection is kept while another filter is shown.
    page.keyboard.press("/")
    page.keyboard.type("rocket")
    expect(cards).to_have_count(1)
    expect(bar).to_contain_text("4 videos selected")
    page.get_by_role("button", name="None", exact=True).click()
    page.get_by_label("Name").first.fill("")
    expect(cards).to_have_count(4)
    expect(bar).to_be_hidden()


def test_favorites_and_lists_are_stored_and_filter_the_library(page: Page) -> None:
    coffee = page.locator(".card", has_text="coffee.mp4")
    coffee.locator("a").first.focus()
    page.keyboard.press("f")
    expect(coffee.locator(".star")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("x")
    page.get_by_role("button", name="Lists...").click()
    page.get_by_label("Name of the list").fill("to cut")
    page.get_by_role("button", name="Add to list").click()
    expect(coffee.locator(".tag")).to_have_text("to cut")
    lists = page.get_by_role("navigation", name="Lists")
    lists.get_by_role("link", name="to cut").click()
    expect(page.locator(".card")).to_have_count(1)
    assert export(page, "CSV").suggested_filename == "to_cut.csv"
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete the list").click()
    expect(page.locator(".card")).to_have_count(4)
    expect(lists).not_to_contain_text("to cut")
    expect(lists).to_contain_text("favorites")


def test_copies_of_a_selection_are_shown_and_removed_videos_restored(page: Page) -> None:
    page.locator(".card", has_text="coffee.mp4").locator("a").first.focus()
    page.keyboard.press("x")
    page.get_by_role("button", name="Find copies").click()
    found = page.get_by_role("region", name="Copies found")
    expect(found).to_contain_text("1 of 1 video has copies")
    expect(found.get_by_role("link", name="copy.mp4")).to_be_visible()
    page.get_by_role("button", name="Remove from the index").click()
    expect(page.get_by_role("dialog")).to_contain_text("The files stay where they are")
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator(".card")).to_have_count(3)
    page.locator("#messages").get_by_role("button", name="Add again").click()
    expect(page.locator(".card")).to_have_count(4)


def test_shots_of_a_selection_are_found_and_messages_stay_above_the_bar(browser: Browser, address: str) -> None:
    with new_page(browser, width=400, height=800) as page:
        page.goto(address)
        page.locator(".card", has_text="rocket").locator("a").first.focus()
        page.keyboard.press("x")
        page.locator(".card", has_text="broken.mp4").locator("a").first.focus()
        page.keyboard.press("x")
        page.get_by_role("button", name="Find shots").click()
        message = page.locator("#messages p")
        expect(message).to_contain_text("Shots of 1 video are known now; 1 could not be read: ", timeout=60_000)
        expect(page.locator("#work")).to_be_hidden()
        # Words that stay for as long as it takes to look at them.
        page.evaluate(
            SAY, ["Shots of 1 video are known now; 1 could not be read: broken.mp4 is not a video. " * 2, 600]
        )
        expect(message).to_have_count(1)
        bar = page.get_by_role("region", name="Selection")
        # Wherever the page is scrolled to; the bar has several rows here.
        for place in (0, 100_000):
            page.evaluate("place => scrollTo(0, place)", place)
            above, below = message.bounding_box(), bar.bounding_box()
            assert above is not None
            assert below is not None
            assert below["height"] > 100
            assert above["y"] + above["height"] <= below["y"], (above, below)
        # At the end of the page the message covers no card.
        last = page.locator(".card").last.bounding_box()
        assert last is not None
        assert last["y"] + last["height"] <= above["y"] + 1, (last, above)
        page.goto(f"{address}?shots=yes")
        expect(page.locator(".card .name")).to_have_text(["rocket & <b>.mp4"])


def test_selection_is_split_into_shots(browser: Browser, address: str, tmp_path: Path) -> None:
    with new_page(browser, refused="422") as page:
        page.goto(address)
        split_and_refuse(page, tmp_path)


def split_and_refuse(page: Page, tmp_path: Path) -> None:
    for name in ("coffee.mp4", "rocket"):
        page.locator(".card", has_text=name).locator("a").first.focus()
        page.keyboard.press("x")
    page.get_by_role("button", name="Split into shots...").click()
    page.get_by_role("dialog").get_by_label("New or empty folder").fill(str(tmp_path / "shots"))
    page.keyboard.press("Enter")
    expect(page.locator("#messages")).to_contain_text(f"2 files of 2 videos in {tmp_path / 'shots'}.", timeout=60_000)
    written = {str(file.relative_to(tmp_path / "shots")) for file in (tmp_path / "shots").rglob("*.mp4")}
    assert written == {"coffee/coffee-001.mp4", "rocket & _b_/rocket & _b_-001.mp4"}
    # The folder is in use now.
    page.get_by_role("button", name="Split into shots...").click()
    page.get_by_role("dialog").get_by_role("button", name="Split", exact=True).click()
    expect(page.locator("#messages")).to_contain_text("is not empty; choose a new")


def test_library_filters_by_copies_and_damage(browser: Browser, tmp_path: Path) -> None:
    library = make_library(tmp_path)
    cut = broken_off(library.folder / "rocket & <b>.mp4", library.folder / "cut off.mp4")
    with Index.open(library.index) as index:
        index.add(cut, executor=SerialExecutor(index.worker_spec))
        index.reject(library.folder / "rocket & <b>.mp4", cut)
        index.duplicates()
    with served(library.index) as address, new_page(browser) as page:
        page.goto(address)
        names = page.locator(".card .name")
        expect(names).to_have_count(5)
        page.get_by_text("More filters").click()
        page.locator("select[name=copies]").select_option("known")
        expect(names).to_have_text(["coffee.mp4", "copy.mp4"])
        page.locator("select[name=copies]").select_option("none known")
        expect(names).to_have_text(["broken.mp4", "cut off.mp4", "rocket & <b>.mp4"])
        page.locator("select[name=state]").select_option("partly damaged")
        expect(names).to_have_text(["cut off.mp4"])
        expect(page.locator(".card strong")).to_have_text(re.compile("the file is cut off"))
        page.locator("select[name=state]").select_option("all")
        # A broken card is a folder and a cause, each whole.
        facts = page.locator(".card", has_text="broken.mp4").locator(".facts")
        assert re.match(r"videos\s*[^\s,]", facts.inner_text()), facts.inner_text()


def test_folder_is_chosen_and_added(page: Page, own: Library) -> None:
    page.locator("#adding summary").click()
    page.get_by_role("button", name="Choose...").click()
    folders = page.get_by_role("list", name="Folders")
    folders.get_by_role("button", name=str(own.folder)).click()
    expect(page.locator("#picker-path")).to_have_text(str(own.folder))
    page.get_by_role("button", name="Choose this folder").click()
    assert Path(page.locator("#adding").get_by_label("Folder on this computer").input_value()) == own.folder
