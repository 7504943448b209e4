"""Shots of a recap that stored features miss are found next to known shots, and not elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.seasons import RATE, shots
from tests.support.videos import encode
from vidkin.index import Index, SerialExecutor

FIRST, KNOWN = ("coffee", 1, 22), ("rocket", 2, 45)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Of two episodes: the second begins with two shots of the first, which stand at 7.3 and 15.5 s there."""
    folder = tmp_path_factory.mktemp("recap")
    (folder / "season").mkdir()
    earlier = shots(("astronaut", 0, 73), FIRST, ("astronaut", 3, 60), KNOWN, ("chelsea", 0, 30))
    encode(folder / "season" / "e1.mp4", earlier, rate=RATE)
    encode(folder / "season" / "e2.mp4", shots(("brick", 1, 15), FIRST, KNOWN, ("grass", 0, 80)), rate=RATE)
    with Index.open(folder / "i.vidkin", create=True) as opened:
        opened.add(folder / "season", executor=SerialExecutor(opened.worker_spec))
        yield opened


def test_a_recap_of_short_shots_is_known_whole(index: Index) -> None:
    (recap,) = index.recurring(remember=False)
    shown = recap.occurrences[0]
    assert (recap.kind, Path(shown.path).name) == ("recap", "e2.mp4")
    assert (shown.start, shown.end) == (pytest.approx(1.5), pytest.approx(8.2))
