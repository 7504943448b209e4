"""Typical searches on real encoded files in a real index.

Black frames, a shared intro, a shared logo card, a short clip in a long video, a mirrored copy, one second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFont

from tests.support.videos import Image, encode, pan
from vidkin.index import Index, SerialExecutor

RATE = 5
SIZE = {"width": 160, "height": 120}
PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket", "coins", "brick", "retina", "motorcycle_left")


def clip(name: str, seconds: float, seed: int = 0) -> list[Image]:
    source = {"motorcycle_left": "camera"}.get(name, name)
    return list(pan(source, round(seconds * RATE), seed=seed, **SIZE))


def black(seconds: float) -> list[Image]:
    return [np.zeros((120, 160, 3), np.uint8)] * round(seconds * RATE)


def logo_card(seconds: float) -> list[Image]:
    card = PILImage.new("RGB", (160, 120), (16, 24, 60))
    draw = ImageDraw.Draw(card)
    draw.ellipse((64, 30, 96, 62), fill=(230, 200, 60))
    draw.text((48, 76), "PICTURES", fill=(255, 255, 255), font=ImageFont.load_default(14))
    return [np.asarray(card)] * round(seconds * RATE)


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Callable[[dict[str, list[Image]]], Index]]:
    opened: list[Index] = []

    def build(videos: dict[str, list[Image]]) -> Index:
        folder = tmp_path / "videos"
        folder.mkdir()
        for name, frames in videos.items():
            encode(folder / f"{name}.mp4", frames, rate=RATE)
        index = Index.open(tmp_path / "collection.vidkin", create=True)
        opened.append(index)
        report = index.add(folder, executor=SerialExecutor(index.worker_spec))
        assert len(report.added) == len(videos)
        return index

    yield build
    for index in opened:
        index.close()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Twelve seconds of each of five photographs, for read-only tests."""
    folder = tmp_path_factory.mktemp("photographs")
    for name in PHOTOGRAPHS[:5]:
        encode(folder / f"{name}.mp4", clip(name, 12, seed=3), rate=RATE)
    with Index.open(tmp_path_factory.mktemp("index") / "collection.vidkin", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
        yield index


def file_of(index: Index, name: str) -> Path:
    return next(Path(record.path) for record in index.videos() if Path(record.path).stem == name)


def scores(index: Index, query: Path) -> dict[str, float]:
    return {Path(match.path).stem: match.score for match in index.search(query, limit=50)}


@pytest.mark.large
def test_black_frames_never_match(collection: Callable[[dict[str, list[Image]]], Index], tmp_path: Path) -> None:
    index = collection(
        {
            "first": [*black(6), *clip("astronaut", 8)],
            "second": [*black(6), *clip("coffee", 8)],
            "black": black(10),
        }
    )
    query = encode(tmp_path / "query.mp4", [*black(6), *clip("chelsea", 8)], rate=RATE)
    assert max([0.0, *scores(index, query).values()]) < 0.2
    all_black = encode(tmp_path / "all black.mp4", black(8), rate=RATE)
    assert scores(index, all_black) == {}
    # Identical files are copies whatever they show.
    assert scores(index, tmp_path / "videos" / "black.mp4") == {"black": 1.0}


@pytest.mark.large
def test_videos_that_share_only_an_intro_match_in_the_intro_but_are_not_copies(
    collection: Callable[[dict[str, list[Image]]], Index], tmp_path: Path
) -> None:
    intro = clip("rocket", 5, seed=9)
    names = ("astronaut", "chelsea", "coffee", "coins", "brick")
    index = collection({name: [*intro, *clip(name, 15)] for name in names})
    query = encode(tmp_path / "query.mp4", [*intro, *clip("camera", 15)], rate=RATE)
    for match in index.search(query):
        assert match.score < 0.7
        assert all(segment.query_end < 6 and segment.target_end < 6 for segment in match.segments)
    assert index.duplicates() == []
    # A shared intro does not hide a real copy.
    copy = encode(tmp_path / "copy.mp4", [*intro, *clip("coffee", 15)], rate=RATE, options={"crf": "35"})
    found = scores(index, copy)
    assert found.pop("coffee") > 0.7
    assert max([0.0, *found.values()]) < 0.7


@pytest.mark.large
def test_videos_that_share_only_a_logo_card_do_not_match(
    collection: Callable[[dict[str, list[Image]]], Index], tmp_path: Path
) -> None:
    index = collection({"other": [*clip("astronaut", 12), *logo_card(4)], "plain": clip("coins", 12)})
    query = encode(tmp_path / "query.mp4", [*logo_card(4), *clip("coffee", 12)], rate=RATE)
    assert max([0.0, *scores(index, query).values()]) < 0.3


@pytest.mark.large
def test_four_seconds_are_found_in_twenty_minutes(
    collection: Callable[[dict[str, list[Image]]], Index], tmp_path: Path
) -> None:
    parts = [frame for seed in range(24) for frame in clip(PHOTOGRAPHS[seed % len(PHOTOGRAPHS)], 50, seed=seed)]
    assert len(parts) == 20 * 60 * RATE
    start = 754.0
    index = collection({"long": parts, "other": clip("brick", 20, seed=77)})
    first = round(start * RATE)
    query = encode(tmp_path / "q.mp4", parts[first : first + 4 * RATE], rate=RATE, options={"crf": "32"})
    best = index.search(query)[0]
    assert Path(best.path).stem == "long"
    assert best.score > 0.5
    assert best.segments[0].target_start == pytest.approx(start, abs=1.0)
    assert best.segments[0].target_end == pytest.approx(start + 4, abs=1.0)
    assert best.segments[0].query_start == pytest.approx(0, abs=0.5)
    assert best.segments[0].query_end == pytest.approx(4, abs=0.5)


def test_mirrored_copy_is_found_and_flagged(photographs: Index, tmp_path: Path) -> None:
    flipped = [np.ascontiguousarray(frame[:, ::-1]) for frame in clip("chelsea", 12, seed=3)]
    query = encode(tmp_path / "flipped.mp4", flipped, rate=RATE)
    best = photographs.search(query)[0]
    assert Path(best.path).stem == "chelsea"
    assert best.mirrored
    assert best.score > 0.8


def test_segment_of_a_file_is_found_at_its_position(photographs: Index) -> None:
    best = photographs.search(file_of(photographs, "coffee"), start=5.0, end=10.0)[0]
    assert Path(best.path).stem == "coffee"
    assert best.score > 0.9
    segment = best.segments[0]
    assert (segment.query_start, segment.query_end) == (pytest.approx(5, abs=0.3), pytest.approx(10, abs=0.3))
    assert (segment.target_start, segment.target_end) == (
        pytest.approx(5, abs=0.3),
        pytest.approx(10, abs=0.3),
    )


@pytest.mark.thorough
def test_trim_between_two_samples_is_still_a_copy(
    collection: Callable[[dict[str, list[Image]]], Index], tmp_path: Path
) -> None:
    # The trim starts half a second from the sampled frames, and the camera moves.
    frames = list(pan("chelsea", 120, seed=4, **SIZE))
    index = collection({"long": frames, "other": clip("coffee", 8)})
    query = encode(tmp_path / "trim.mp4", frames[13:88], rate=RATE)
    best = index.search(query)[0]
    assert Path(best.path).stem == "long"
    assert best.score > 0.8
    assert best.segments[0].target_start == pytest.approx(13 / RATE, abs=0.5)
    assert best.segments[0].target_end == pytest.approx(88 / RATE, abs=0.5)


def test_one_second_is_enough_for_a_match(photographs: Index, tmp_path: Path) -> None:
    query = encode(tmp_path / "short.mp4", clip("coffee", 12, seed=3)[6 * RATE : 7 * RATE], rate=RATE)
    matches = photographs.search(query)
    assert Path(matches[0].path).stem == "coffee"
    assert matches[0].score > 0.5
    assert matches[0].segments[0].target_start == pytest.approx(6, abs=1.0)
    assert all(match.score < 0.3 for match in matches[1:])


@pytest.mark.parametrize("name", PHOTOGRAPHS[:3])
def test_identical_video_scores_one_and_unrelated_ones_near_zero(photographs: Index, name: str) -> None:
    found = scores(photographs, file_of(photographs, name))
    assert found.pop(name) == pytest.approx(1.0, abs=0.005)
    assert max([0.0, *found.values()]) < 0.2


@pytest.mark.large
def test_copies_of_one_video_form_one_group(
    collection: Callable[[dict[str, list[Image]]], Index], tmp_path: Path
) -> None:
    source = clip("coffee", 6)
    copies = {f"copy {number}": source for number in range(4)}
    darker = {"dark": [(frame * 0.6).astype(np.uint8) for frame in source]}
    index = collection({**copies, **darker, "other": clip("chelsea", 6)})
    groups = index.duplicates()
    assert [sorted(Path(member.path).stem for member in group.members) for group in groups] == [
        [*(f"copy {number}" for number in range(4)), "dark"]
    ]
    index.reject(tmp_path / "videos" / "dark.mp4", tmp_path / "videos" / "copy 0.mp4")
    assert len(index.duplicates()[0].members) == 4
