"""Every page is fast with an index of 10,000 videos."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import HOST, finish_job
from tests.web.synthetic import fill
from vidkin.index import Decisions, Index, Occurrence, RecurringGroup
from vidkin.web import Settings, create_app
from vidkin.web.groups import FoundRecurring, RecurringWish
from vidkin.web.site import Site

pytestmark = pytest.mark.large

# Maximum seconds of processor time; wall-clock time would depend on other work on the machine.
_MAX_SECONDS = 0.3
ADDRESSES = (
    "/",
    "/?q=video+00307",
    "/?sort=duration&min_seconds=100&folder={root}/07&page=2",
    "/?list=seen&shots=no",
    "/?copies=no",
    "/shots?q=07",
    "/search",
    "/?copies=yes",
    "/duplicates",
    "/duplicates?page=3&sort=savings",
    "/api/duplicates",
    "/recurring",
    "/recurring?page=3",
    "/api/recurring",
    "/match?video=77&target=78",
    "/review",
    "/map",
    "/api/map",
    "/api/map/shots",
    "/experiments",
    "/api",
    "/videos/77",
    "/videos/77/shots",
    "/api/videos/numbers",
    "/api/library/folders?under={root}",
    "/api/computer/folders",
    "/api/lists",
    "/api/review/history",
    "/api/videos/77/neighbors",
    "/api/videos/77/recurring",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many")


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[TestClient]:
    """Of an index that knows all there is to show: 500 groups of copies, 300 recurring parts of 10 files, a map."""
    path = root / "many.vidkin"
    fill(path, 10_000, root=root / "videos")
    with Index.open(path) as index:
        index.change_list("seen", add=[record.path for record in index.videos()[:20]])
    app: Any = create_app(path, Settings())
    with TestClient(app, base_url=HOST) as opened:
        opened.get("/", headers={"Accept": "text/html"})  # templates are compiled once
        show_recurring(app.inner.state.site)
        ended = finish_job(opened, opened.post("/api/map", json={"method": "pca"}).json())
        assert ended["state"] == "done", ended
        assert opened.get("/api/duplicates").json()["total"] == 500
        yield opened


def show_recurring(site: Site) -> None:
    """300 openings that ten files each share, as found by a search."""
    listing = site.index.listing()
    groups = []
    for first in range(0, 3000, 10):
        occurrences = tuple(
            Occurrence(path=record.path, start=0.0, end=0.5, score=0.9)
            for record in listing.records[first : first + 10]
        )
        groups.append(RecurringGroup(occurrences, "opening", 10_000))
    decisions = site.index.place.version(Decisions.FILE)
    site.recurring.found = FoundRecurring(RecurringWish(), tuple(groups), (), listing, decisions)


@pytest.mark.parametrize("address", ADDRESSES)
def test_pages_take_less_than_three_tenths_of_a_second(client: TestClient, root: Path, address: str) -> None:
    address = address.replace("{root}", str(root / "videos"))
    took = []
    for _ in range(3):
        began = time.process_time()
        answer = client.get(address, headers={"Accept": "text/html"})
        took.append(time.process_time() - began)
        assert answer.status_code == 200, answer.text
    assert min(took) < _MAX_SECONDS, took
