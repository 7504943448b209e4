"""Screenshots of every page of `vidkin serve`, at three widths, light and dark, for visual inspection.

    python research/benchmarks/web_pictures.py INDEX [--experiments FOLDER] [--only library] [--widths 400] \
        [--schemes dark]
        [--docs docs/pictures]

Requires an index of real videos, with duplicates already found, and a folder with at least one training run; shots and
both maps are computed if missing. The pages show the paths of videos and training runs, so put them into folders with
neutral names, such as /home/ada/Videos. In addition to the screenshots, it prints pages that are wider than the screen.
With --docs the light screenshots at 1400 pixels are also stored there, small enough for the documentation.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as NotThere

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.web.browser import new_page, open_browser, served

WIDTHS = {1400: 900, 768: 1024, 400: 800}
_SCHEMES = ("light", "dark")
_QUALITY, _WIDTH_IN_DOCS = 70, 1000
# Pages without screenshots in the documentation.
_NOT_IN_DOCS = ("video",)
# Milliseconds to wait for content that loads by itself: images, maps, comparisons.
_SETTLE, _PATIENCE = 800, 30_000
# Posters are generated on first request, and images far below the fold are not requested.
_PICTURES_ARE_THERE = """() => [...document.images].every((image) =>
  (image.complete && image.naturalWidth) || !image.checkVisibility() ||
  image.getBoundingClientRect().top > innerHeight)"""


def main() -> None:
    """Take the screenshots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--experiments", type=Path, help="folder of training runs (without it, their page is empty)")
    parser.add_argument("--output", type=Path, default=Path("build/pages"))
    parser.add_argument("--only", nargs="*", default=None, help="names of the pages to capture")
    parser.add_argument("--widths", nargs="*", type=int, choices=tuple(WIDTHS), default=tuple(WIDTHS))
    parser.add_argument("--schemes", nargs="*", choices=_SCHEMES, default=_SCHEMES)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    more = () if options.experiments is None else ("--experiments", str(options.experiments))
    with served(options.index, *more) as address, open_browser() as browser:
        videos = prepare(browser, address)
        for name, path, act in pages(videos):
            if options.only is not None and name not in options.only:
                continue
            for width in options.widths:
                for scheme in options.schemes:
                    picture = take(browser, address + path, act, (width, WIDTHS[width]), scheme)
                    (options.output / f"{name}-{width}-{scheme}.png").write_bytes(picture)
                    if options.docs is not None and (width, scheme) == (1400, "light") and name not in _NOT_IN_DOCS:
                        store_small(picture, options.docs / f"web-{name}.webp")


def prepare(browser: Browser, address: str) -> dict[str, Any]:
    """Find the shots of a video and compute the map; return a video with a copy, that copy, and a video with shots."""
    with new_page(browser, seconds=600, refused="409") as page:

        def ask(path: str, body: dict[str, Any] | None = None) -> Any:
            answer = page.request.get(address + path) if body is None else page.request.post(address + path, data=body)
            return answer.json()

        def finish(job: dict[str, Any]) -> None:
            while ask(f"api/jobs/{job['id']}")["state"] == "running":
                time.sleep(0.5)

        groups = ask("api/duplicates")["groups"]
        first, second = (member["id"] for member in groups[0]["members"][:2])
        if ask("api/map") is None:
            finish(ask("api/map", {}))
        finish(ask(f"api/videos/{first}/shots", {}))
        finish(ask("api/recurring", {"least": 2}))
        if ask("api/map?of=shots") is None:
            finish(ask("api/map", {"of": "shots"}))
        known = ask("api/videos?shots=yes&limit=50")["videos"]
        found = {video["id"]: ask(f"api/videos/{video['id']}/shots")["cuts"] for video in known}
        film = max(found, key=lambda number: len(found[number]))
        # Not the beginning, which is black in many films.
        cut = found[film][len(found[film]) // 2]["time"] if found[film] else 0.0
        return {"first": first, "second": second, "film": film, "time": cut + 0.5}


def pages(videos: dict[str, Any]) -> Iterator[tuple[str, str, Callable[[Page], None]]]:
    """Yield name, address and action for every page."""
    first, second, film = videos["first"], videos["second"], videos["film"]
    yield "library", "", nothing
    yield "library-selected", "", select_some
    yield "video", f"videos/{first}", nothing
    yield "search", f"search?video={first}", play_a_match
    yield "match", f"match?video={first}&target={second}", wait_for("#segments li")
    yield "duplicates", "duplicates", wait_for(".member")
    yield "recurring", "recurring", nothing
    yield "shots-list", "shots", nothing
    yield "shots", f"videos/{film}/shots?time={videos['time']:.2f}", wait_for("#list .card")
    yield "map", "map", wait_for("#clusters li")
    yield "map-shots", "map?of=shots", nothing
    yield "review", "review", wait_for("#pair figure")
    yield "experiments", "experiments", choose_runs
    yield "api", "api", nothing
    yield "not-found", "nothing-here", nothing


def nothing(page: Page) -> None:
    """Leave the page as it opens."""


def wait_for(place: str) -> Callable[[Page], None]:
    """Wait for an element; if it never appears, the screenshot shows that."""

    def act(page: Page) -> None:
        with suppress(NotThere):
            page.locator(place).first.wait_for(timeout=_PATIENCE)

    return act


def play_a_match(page: Page) -> None:
    """Play the best match next to the query."""
    wait_for(".match")(page)
    page.locator(".match button.picture").first.click()
    wait_for("#target video")(page)
    page.wait_for_timeout(3 * _SETTLE)


def choose_runs(page: Page) -> None:
    """Compare two training runs, if there are two."""
    wait_for("#runs input")(page)
    for box in page.locator("#runs input").all()[:2]:
        box.check()
    wait_for("#figures tr")(page)


def select_some(page: Page) -> None:
    """Select three videos of the library and open its other filters."""
    page.get_by_text("More filters").click()
    for number in range(3):
        page.locator("[data-pick]").nth(number).check()


def take(browser: Browser, address: str, act: Callable[[Page], None], size: tuple[int, int], scheme: str) -> bytes:
    """Take a screenshot two screens high."""
    with new_page(browser, width=size[0], height=size[1], scheme=scheme, refused="Failed to load") as page:
        page.goto(address)
        act(page)
        page.wait_for_timeout(_SETTLE)
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > size[0]:
            print(f"{address} at {size[0]} pixels, {scheme}: {wide} pixels wide", flush=True)
        height = min(page.evaluate("document.documentElement.scrollHeight"), 2 * size[1])
        page.set_viewport_size({"width": size[0], "height": int(height)})
        with suppress(NotThere):
            page.wait_for_function(_PICTURES_ARE_THERE, timeout=_PATIENCE)
        page.wait_for_timeout(_SETTLE)
        return page.screenshot()


def store_small(picture: bytes, path: Path) -> None:
    """Save a reduced version for the documentation."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.thumbnail((_WIDTH_IN_DOCS, 10_000))
    image.save(path, quality=_QUALITY, method=6)


if __name__ == "__main__":
    main()
