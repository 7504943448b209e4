"""Highlight videos: labels match the files, parts are disjoint, and real recordings are used if available."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.support.recordings import LENGTHS
from tests.support.videos import encode
from vidkin.errors import InvalidArgumentError
from vidkin.media import read_frames
from vidkin.shots import VideoAnnotation, read_shot_annotations
from vidkin_research.made.highlights import ACTIVITIES, HIGHLIGHT_PLACES, build_highlights


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gray replacements for the recordings: the brightness increases by one step every second."""
    folder = tmp_path_factory.mktemp("recordings")
    for number, (name, seconds) in enumerate(LENGTHS.items()):
        frames = (
            np.full((48, 72, 3), 40 + number * 2 + int(frame / 5), dtype=np.uint8) for frame in range(int(seconds * 5))
        )
        encode(folder / name, frames, rate=5)
    return folder


def test_activities_are_ordered_and_do_not_overlap() -> None:
    assert len(ACTIVITIES) == 22
    for before, after in pairwise(ACTIVITIES):
        assert before.start < before.end
        assert before.place != after.place or before.end < after.start


def test_labels_match_the_files(recordings: Path, tmp_path: Path) -> None:
    labels = build_highlights(recordings, tmp_path, part="train", videos=3, shots=6, seed=2, rate=5)
    assert read_shot_annotations(tmp_path / "labels.json") == labels
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == [
        "highlights-000.mp4",
        "highlights-001.mp4",
        "highlights-002.mp4",
        "labels.json",
    ]
    for video in labels:
        assert len(video.shots) == 6
        assert [shot.start for shot in video.shots[1:]] == [shot.end for shot in video.shots[:-1]]
        frames = read_frames(video.video, rate=None)
        assert len(frames) == video.shots[-1].end
        assert frames.images.shape[1:] == (160, 240, 3)
        critical = [shot for shot in video.shots if shot.critical is not None]
        assert len(critical) == 2
        for shot in critical:
            assert shot.critical is not None
            # A calm part of at least a second (one segment of the room is shorter than 1.5 s), then the event until the
            # end.
            assert shot.critical[0] - shot.start >= 5
            assert shot.critical[1] == shot.end
            assert shot.end - shot.critical[0] >= 5


def test_calm_part_before_a_change_has_the_requested_length(recordings: Path, tmp_path: Path) -> None:
    labels = build_highlights(recordings, tmp_path, part="train", videos=2, shots=6, rate=5, calm_before=(2.0, 2.0))
    calm = [shot.critical[0] - shot.start for video in labels for shot in video.shots if shot.critical]
    # 2 s of 5 frames each, or everything if the recording is shorter.
    assert len(calm) == 4
    assert max(calm) in (10, 11)
    with pytest.raises(InvalidArgumentError, match="calm_before must be two positive times in increasing order"):
        build_highlights(recordings, tmp_path, part="train", calm_before=(3.0, 2.0))


def shapes(found: list[VideoAnnotation]) -> list[tuple[int, int]]:
    return [(shot.start, shot.end) for video in found for shot in video.shots]


def test_videos_depend_on_the_seed(recordings: Path, tmp_path: Path) -> None:
    def build(name: str, seed: int) -> list[VideoAnnotation]:
        return build_highlights(recordings, tmp_path / name, part="test", videos=1, shots=4, seed=seed, rate=5)

    one, two, other = build("a", 1), build("b", 1), build("c", 2)
    assert shapes(one) == shapes(two) != shapes(other)
    assert one[0].video.read_bytes() == two[0].video.read_bytes()


def test_places_can_be_chosen(recordings: Path, tmp_path: Path) -> None:
    build_highlights(recordings, tmp_path, part="test", videos=1, shots=3, rate=5, places=["road"])
    with pytest.raises(InvalidArgumentError, match=r"places must be among room, road, bottles.*, got \['sea'\]"):
        build_highlights(recordings, tmp_path, part="test", places=["sea"])


def test_invalid_arguments_are_rejected_with_the_accepted_values(recordings: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"missing one-by-one-person-detection\.mp4, .*sample-videos"):
        build_highlights(tmp_path, tmp_path / "out", part="train")
    with pytest.raises(InvalidArgumentError, match="part must be 'train' or 'test', got 'all'"):
        build_highlights(recordings, tmp_path, part="all")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError, match="videos, shots and rate must be at least 1, 3 and 1, got 1, 2 and 10"
    ):
        build_highlights(recordings, tmp_path, part="train", videos=1, shots=2)


@pytest.mark.data
def test_critical_frames_of_real_recordings_move_and_calm_frames_do_not(shared_data: Path, tmp_path: Path) -> None:
    (video,) = build_highlights(
        shared_data / "videos", tmp_path, part="test", videos=1, shots=6, places=["road", "bottles"]
    )
    images = read_frames(video.video, rate=None).images.astype(np.int16)
    moving = (np.abs(np.diff(images, axis=0)).max(axis=-1) > 40).mean(axis=(1, 2))
    assert set(HIGHLIGHT_PLACES) == {"room", "road", "bottles"}
    for shot in video.shots:
        if shot.critical is not None:
            calm = moving[shot.start : shot.critical[0] - 2]
            event = moving[shot.critical[0] : shot.end - 1]
            assert event.max() > 10 * np.median(calm) + 0.005
