"""Shots of a recap that are missed by stored features are found next to known shots, and nowhere else."""

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
    """An index of two episodes; the second begins with two shots of the first, where they are at 7.3 and 15.5 s."""
    folder = tmp_path_factory.mktemp("recap")
    (folder / "season").mkdir()
    earlier = shots(("astronaut", 0, 73), FIRST, ("astronaut", 3, 60), KNOWN, ("chelsea", 0, 30))
    encode(folder / "season" / "e1.mp4", earlier, rate=RATE)
    encode(folder / "season" / "e2.mp4", shots(("brick", 1, 15), FIRST, KNOWN, ("grass", 0, 80)), rate=RATE)
    with Index.open(folder / "i.vidkin", create=True) as opened:
        opened.add(folder / "season", executor=SerialExecutor(opened.worker_spec))
        yield opened


def test_recap_of_short_shots_is_found_completely(index: Index) -> None:
    (recap,) = index.recurring(remember=False)
    shown = recap.occurrences[0]
    assert (recap.kind, Path(shown.path).name) == ("recap", "e2.mp4")
    assert (shown.start, shown.end) == (pytest.approx(1.5), pytest.approx(8.2))
