"""Pages that are opened, clicked and refreshed during work: each job has one follower, and nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.videos import encode, pan
from tests.web.browser import new_page, open_browser, served
from tests.web.conftest import make_library
from vidkin.index import Index, SerialExecutor

pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.browser]

# Counts the followers of each job. The request for running jobs waits until a job has been started, so that it finds
# exactly the job started by the click; pages fetched to refresh this one are delayed.
SLOW = """
window.followed = {}; window.begun = new Promise(resolve => window.begin = resolve);
const Events = window.EventSource;
window.EventSource = class extends Events {
  constructor(address) { super(address); followed[address] = (followed[address] ?? 0) + 1; }
};
const plain = window.fetch;
window.fetch = async (address, options = {}) => {
  const path = new URL(address, location).pathname;
  const isPage = !path.startsWith("/api/");
  if (path === "/api/jobs") await Promise.race([begun, new Promise(resolve => setTimeout(resolve, 3000))]);
  const answer = await plain(address, options);
  if (options.method === "POST") begin();
  if (isPage) await new Promise(resolve => setTimeout(resolve, 300 + 600 * Math.random()));
  return answer;
};
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yield the address of a server whose index has two groups that have not been searched for yet, and its folder."""
    library = make_library(tmp_path_factory.mktemp("jobs"))
    encode(library.folder / "cat.mp4", pan("chelsea", 80))
    encode(library.folder / "cat small.mp4", pan("chelsea", 80, width=144, height=96))
    with Index.open(library.index) as index:
        index.add(library.folder, executor=SerialExecutor(index.worker_spec))
    with served(library.index) as address:
        yield address, library.folder


def followers(page: Page) -> dict[str, int]:
    counts: dict[str, int] = page.evaluate("followed")
    assert counts
    return counts


def test_duplicate_search_has_one_watcher_and_ends_with_a_refresh(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser) as page:
        page.add_init_script(SLOW)
        page.goto(f"{address}duplicates")
        page.get_by_role("button", name="Find duplicates").dblclick()
        expect(page.locator("#progress")).to_be_visible()
        # Once the progress is hidden, nothing on the page changes, however late responses arrive.
        changes: int = page.evaluate(
            """async () => {
              const progress = document.getElementById("progress");
              while (!progress.hidden) await new Promise(resolve => setTimeout(resolve, 5));
              let changes = 0;
              new MutationObserver(found => changes += found.filter(({target}) => !target.matches(".frame")).length)
                .observe(document.getElementById("groups"), {subtree: true, childList: true});
              await new Promise(resolve => setTimeout(resolve, 1500));
              return changes;
            }"""
        )
        assert changes == 0
        assert set(followers(page).values()) == {1}
        expect(page.locator(".group")).to_have_count(2)


def test_refresh_keeps_unchanged_groups_and_the_focus(browser: Browser, place: tuple[str, Path]) -> None:
    address, _ = place
    with new_page(browser) as page:
        page.goto(f"{address}duplicates")
        page.get_by_role("button", name="Find duplicates").click()
        expect(page.locator("#progress")).to_be_hidden(timeout=60_000)
        expect(page.locator(".group")).to_have_count(2)
        # Copies cannot be selected during a search, so the second group is rendered again when another search starts
        # and when it ends.
        select = page.locator(".group").nth(1).get_by_role("button", name="Select copies")
        select.focus()
        page.evaluate("document.getElementById('wish').requestSubmit()")
        expect(page.locator("#progress")).to_be_hidden(timeout=60_000)
        expect(select).to_be_focused()
        # A verdict on the first group leaves the other one unchanged: the same elements, with the same focus.
        page.evaluate("for (const group of document.querySelectorAll('.group')) group.mark = true")
        play = page.locator(".group").nth(1).get_by_role("button", name="Play in sync")
        page.locator(".group").nth(0).locator(".member").nth(1).focus()
        page.keyboard.press("c")
        play.focus()
        expect(page.locator(".group").nth(0)).to_contain_text("you confirmed it")
        expect(page.locator("#messages")).to_contain_text("Saved")
        assert page.evaluate("[...document.querySelectorAll('.group')].map(group => Boolean(group.mark))")[1] is True
        expect(play).to_be_focused()


def test_other_pages_watch_their_job_only_once(browser: Browser, place: tuple[str, Path]) -> None:
    address, folder = place
    with new_page(browser) as page:
        page.add_init_script(SLOW)
        # With the mouse, a folder is added before the page knows that no job is running.
        page.goto(address)
        page.locator("#adding summary").click()
        page.locator("#add input[name=path]").fill(str(folder))
        page.locator("#add [type=submit]").dblclick()
        expect(page.locator("#outcome")).to_contain_text("unchanged", timeout=60_000)
        expect(page.locator("#progress")).to_be_hidden()
        assert set(followers(page).values()) == {1}
        # With the keyboard, the search for recurring segments is started twice.
        page.goto(f"{address}recurring")
        page.get_by_role("button", name="Find recurring segments").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator("#found")).not_to_contain_text("have not been searched", timeout=60_000)
        expect(page.locator("#progress")).to_be_hidden()
        assert set(followers(page).values()) == {1}
        # The buttons for the map and the shots are clicked twice.
        videos = page.request.get(f"{address}api/videos").json()["videos"]
        coffee = next(video["id"] for video in videos if video["name"] == "coffee.mp4")
        for path, button, done in (
            ("map", "Compute the map", "#points"),
            (f"videos/{coffee}/shots", "Find shots", "#list .card"),
        ):
            page.goto(address + path)
            page.get_by_role("button", name=button).dblclick()
            expect(page.locator(done).first).to_be_visible(timeout=60_000)
            assert set(followers(page).values()) == {1}
