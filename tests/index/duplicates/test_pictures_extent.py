"""Crops, split screens and insets: which file shows all of the other, and what would be lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import Image, encode, pan
from vidkin.errors import MediaError
from vidkin.index import VideoRecord
from vidkin.index.duplicates.comparisons import FileRecord, PairResult
from vidkin.index.duplicates.keeper import choose_keeper
from vidkin.index.duplicates.pictures import Extent, Pictures, extent_of, find_missing_picture
from vidkin.media import probe
from vidkin.similarity import WHOLE, Box, Segment

RATE, COUNT, SIZE = 5, 20, (320, 240)
QUARTER: Box = (0.0, 0.0, 0.5, 0.5)
MIDDLE: Box = (0.2, 0.2, 0.8, 0.8)


def result(first: Box, second: Box) -> PairResult:
    segment = Segment(0.0, 4.0, 0.0, 4.0, 0.9, query_box=first, target_box=second)
    return PairResult(0.9, True, (1.0, 1.0), (segment,), "")


@pytest.mark.parametrize(
    ("extent", "missing"),
    [
        (Extent(1.0, 1.0, 100, 400), ""),
        # A crop of .36 of the picture has .36 of its pixels: nothing is lost without it.
        (Extent(1.0, 0.36, 36, 100), ""),
        (Extent(0.36, 1.0, 100, 36), "shows more of the picture"),
        # A film of 100 pixels, and a split screen of 100 with the film in 25 of them.
        (Extent(1.0, 0.25, 100, 100), "sharper than the part that shows it"),
        (Extent(0.25, 1.0, 100, 100), "shows more of the picture"),
    ],
)
def test_what_would_be_lost(extent: Extent, missing: str) -> None:
    assert extent.missing == missing


def test_borders_do_not_count_toward_the_extent() -> None:
    """A letterboxed copy whose picture is the middle half: its box is half of the frame, and all of its content."""
    plain = Pictures((np.zeros((40, 80, 3), np.uint8),), 1.0)
    boxed = Pictures((np.zeros((40, 80, 3), np.uint8),), 0.5)
    extent = extent_of(result(WHOLE, (0.0, 0.25, 1.0, 0.75)), plain, boxed)
    assert (extent.first, extent.second) == (1.0, 1.0)
    assert extent.missing == ""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileRecord]:
    """A film, its middle, and a split screen that has it in a quarter."""
    folder = tmp_path_factory.mktemp("extent")
    width, height = SIZE
    film = list(pan("astronaut", COUNT, width=width, height=height))
    other = list(pan("coffee", COUNT, width=width, height=height))

    def split(frame: Image, beside: Image) -> Image:
        canvas = beside.copy()
        canvas[: height // 2, : width // 2] = frame[::2, ::2]
        return canvas

    made = {
        "film": film,
        "crop": [frame[48:192, 64:256] for frame in film],
        "split": [split(frame, beside) for frame, beside in zip(film, other, strict=True)],
    }
    records = {}
    for number, (name, frames) in enumerate(made.items()):
        path = encode(folder / f"{name}.mp4", frames, rate=RATE, options={"crf": "18"})
        info = probe(path)
        records[name] = FileRecord(
            VideoRecord(
                path=str(path),
                size=path.stat().st_size,
                mtime_ns=number,
                content_hash=name,
                duration=info.duration,
                width=info.width,
                height=info.height,
                codec=info.codec,
                id=number,
            )
        )
    return records


def compare(first: FileRecord, second: FileRecord) -> PairResult:
    """The film is in a quarter of the split screen; the crop is a part of the film."""
    one, other = (Path(side.record.path).stem for side in (first, second))
    boxes = {
        ("film", "crop"): (MIDDLE, WHOLE),
        ("film", "split"): (WHOLE, QUARTER),
        ("crop", "split"): (WHOLE, (0.1, 0.1, 0.4, 0.4)),
    }
    if (one, other) in boxes:
        return result(*boxes[one, other])
    return result(*boxes[other, one]).swapped()


@pytest.mark.parametrize("names", [("film", "split"), ("film", "crop"), ("crop", "film", "split")])
def test_the_film_is_kept(files: dict[str, FileRecord], names: tuple[str, ...]) -> None:
    keeper, reason = choose_keeper([files[name] for name in names], "best", compare)
    assert Path(keeper.record.path).stem == "film"
    assert reason in ("whole picture", "sharpest")


def test_crops_are_spare_and_split_screens_are_not(files: dict[str, FileRecord]) -> None:
    """Both directions at once: what is lost without the first, and without the second."""

    def missing(first: str, second: str) -> tuple[str, str]:
        return find_missing_picture(files[first], files[second], compare(files[first], files[second]))

    assert missing("crop", "film") == ("", "shows more of the picture")
    assert missing("film", "crop") == ("shows more of the picture", "")
    both = ("shows more of the picture", "sharper than the part that shows it")
    assert missing("split", "film") == both
    assert missing("film", "split") == both[::-1]


def test_files_are_read_only_for_a_part_of_the_picture(files: dict[str, FileRecord], tmp_path: Path) -> None:
    gone = replace(files["film"], record=replace(files["film"].record, path=str(tmp_path / "gone.mp4")))
    with pytest.raises(MediaError, match=r"gone\.mp4: there is no such file"):
        find_missing_picture(gone, files["split"], result(WHOLE, QUARTER))
    assert find_missing_picture(gone, files["split"], PairResult(0.0)) == ("", "")
    assert find_missing_picture(gone, files["split"], result(WHOLE, WHOLE)) == ("", "")
