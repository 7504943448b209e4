"""Whether every page can be seen and reached: contrast in both color schemes, and a round with the Tab key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.support.stored_runs import write_benchmark, write_training
from tests.support.videos import pan
from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import make_library
from vidkin.index import Index, SerialExecutor, open_place
from vidkin.review import Labels

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]

# axe-core, MPL 2.0, as the package for tests brings it.
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SIGHT = (Path(__file__).parent / "sight.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, int]]]:
    """The address of a server whose pages have all there is to see, and its videos' numbers by name."""
    root = tmp_path_factory.mktemp("sight")
    library = make_library(root)
    with Index.open(library.index) as index:
        for name in ("photo.png", "same photo.png"):
            Image.fromarray(next(pan("chelsea", 1))).save(library.folder / name)
        index.add(library.folder, images=True, executor=SerialExecutor(index.worker_spec))
    write_training(root / "runs" / "first", [2.0, 1.0], report=True)
    write_training(root / "runs" / "second", [3.0], report=False)
    write_benchmark(root / "runs" / "figures.json")
    with Index.open(library.index, read_only=True) as index:
        records = {Path(record.path).name: record for record in index.videos()}
    coffee, copy = (records[name].content_hash for name in ("coffee.mp4", "copy.mp4"))
    Labels.judge_pair(open_place(library.index), coffee, copy, "same", source="test")
    run = {"kind": "measure", "trained_on": 20, "held_back": 10, "before": 0.5, "after": 0.75}
    (library.index / "review" / "runs.jsonl").write_text(
        "".join(json.dumps({**run, "judgment": word}) + "\n" for word in ("better", "worse"))
    )
    with served(library.index, "--experiments", str(root / "runs")) as address:
        yield address, {name: record.id for name, record in records.items()}


def open_folder_form(page: Page) -> None:
    page.locator("#adding summary").click()
    page.get_by_text("More filters").click()
    page.locator("[data-pick]").first.check()


def mark_a_stretch(page: Page) -> None:
    page.get_by_role("button", name="Start here").click()
    expect(page.locator(".range")).to_have_text("0:00.0 - 0:12.0")


def draw_a_rectangle(page: Page) -> None:
    page.get_by_role("button", name="Rectangle").click()


def play_a_match(page: Page) -> None:
    page.locator(".match button.picture").first.click()
    expect(page.locator("#target .segment")).to_be_visible()


def show_a_photograph(page: Page) -> None:
    """Neither has a length, so nothing is said of times."""
    expect(page.locator(".match p.facts").first).to_have_text(re.compile(r"^score [01]\.\d\d$"))
    assert page.locator(".match .line").count() == 0
    page.locator(".match button.picture").first.click()
    expect(page.locator("#target img")).to_be_visible()


def point_at_the_map(page: Page) -> None:
    page.locator(".heat").click()
    expect(page.locator("#pair")).to_be_visible()


def find_duplicates(page: Page) -> None:
    page.get_by_role("button", name="Find duplicates").click()
    expect(page.locator(".member.best").first).to_be_visible(timeout=60_000)
    expect(page.locator("#progress")).to_be_hidden(timeout=60_000)
    page.locator("[data-select]").first.check()
    page.locator("#move").click()
    page.locator("#history summary").click()
    expect(page.locator("#history .removals")).to_contain_text("Nothing was removed")


def show_the_keys(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")


def find_shots(page: Page) -> None:
    page.get_by_role("button", name="Find shots").click()
    expect(page.locator("#list .card")).to_have_count(1, timeout=60_000)
    page.keyboard.press("a")  # there is a cut here now: at the first frame it goes to the second
    expect(page.locator("#cuts button")).to_have_count(1)


def wait_for_a_pair(page: Page) -> None:
    expect(page.locator("#pair figure")).to_have_count(2)


def choose_all_runs(page: Page) -> None:
    boxes = page.locator("#runs input")
    expect(boxes).to_have_count(3)
    for number in range(3):
        boxes.nth(number).check()
    expect(page.locator("#tables table")).to_be_visible()
    expect(page.locator("#legend li")).to_have_count(2)


def compute_the_map(page: Page) -> None:
    page.get_by_role("button", name="Compute the map").click()
    expect(page.locator("#points")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Select cluster 1").click()


def nothing(page: Page) -> None:
    pass


STATES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "library": ("", open_folder_form),
    "nothing found": ("?q=zzz", nothing),
    "video": ("videos/{coffee.mp4}", mark_a_stretch),
    "rectangle": ("videos/{coffee.mp4}", draw_a_rectangle),
    "broken video": ("videos/{broken.mp4}", nothing),
    "search": ("search", nothing),
    "matches": ("search?video={coffee.mp4}", play_a_match),
    "photographs": ("search?video={photo.png}", show_a_photograph),
    "match": ("match?video={coffee.mp4}&target={copy.mp4}", point_at_the_map),
    "duplicates": ("duplicates", find_duplicates),
    "shots": ("shots", nothing),
    "shots of a video": ("videos/{coffee.mp4}/shots", find_shots),
    "review": ("review", wait_for_a_pair),
    "experiments": ("experiments", choose_all_runs),
    "map": ("map", compute_the_map),
    "API": ("api", show_the_keys),
}


@pytest.mark.parametrize("state", STATES)
def test_everything_is_visible_and_reachable_by_tab(
    browser: Browser, numbers: tuple[str, dict[str, int]], state: str
) -> None:
    address, ids = numbers
    path, act = STATES[state]
    for name, number in ids.items():
        path = path.replace(f"{{{name}}}", str(number))
    with new_page(browser, width=360, height=800) as page:
        page.goto(address + path)
        act(page)
        for width in (768, 400, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert page.evaluate(f"{SIGHT}.faults()") == [], scheme
            page.evaluate(AXE)
            found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], scheme
        walk_with_tab(page)


def walk_with_tab(page: Page) -> None:
    """Tab reaches everything in turn, with a ring around it, leaves the page, and comes back to the link that skips."""
    page.evaluate(f"window.sight = {SIGHT}; window.left = new Set(sight.stops())")
    page.locator(".skip").focus()
    faults, trail = [], []
    for _ in range(page.evaluate("left.size") + 5):
        page.keyboard.press("Tab")
        trail.append(page.evaluate("document.activeElement.outerHTML.slice(0, 100)"))
        faults += page.evaluate("left.delete(document.activeElement) ? [sight.focusFault()] : []")
        if page.evaluate("document.activeElement.matches('.skip')"):
            break
    assert [fault for fault in faults if fault] == []
    assert page.evaluate("[...left].map(element => element.outerHTML.slice(0, 100))") == [], "\n".join(trail)
