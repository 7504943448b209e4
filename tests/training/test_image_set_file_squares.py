"""Squares of one file: upright images, evenly sampled video frames, and neighbors by timestamp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import write_video
from vidkin.training import image_set as file_squares
from vidkin.training.image_set import ImageSettings, Square, read_squares

_STEP = 4


def make_counter(path: Path, count: int = 60, **options: Any) -> Path:
    """Write a video at 10 fps whose frame n has the gray level 4 n."""
    frames = (np.full((32, 32, 3), _STEP * number, np.uint8) for number in range(count))
    write_video(path, frames, **{"rate": 10, "crf": 0, **options})
    return path


def number_of(square: Square) -> int:
    """Number of the `make_counter` frame that a square shows."""
    return round(float(square.mean()) / _STEP)


def numbers(path: Path, settings: ImageSettings) -> list[tuple[int, int | None]]:
    """The frame and the neighbor shown by each square of a video."""
    return [
        (number_of(square), None if neighbor is None else number_of(neighbor))
        for square, neighbor in read_squares(path, settings)
    ]


class TestFrames:
    def test_are_sampled_at_the_centers_of_equal_parts(self, tmp_path: Path) -> None:
        # Parts of 1.5 s with centers at 0.75, 2.25, 3.75 and 5.25 s.
        settings = ImageSettings(side=8, frames_per_video=4)
        assert numbers(make_counter(tmp_path / "a.mp4"), settings) == [
            (7, None),
            (22, None),
            (37, None),
            (52, None),
        ]

    def test_follow_the_exif_orientation(self, tmp_path: Path) -> None:
        image = Image.new("RGB", (40, 20), (0, 0, 0))
        image.paste((255, 255, 255), (0, 0, 20, 20))
        exif = Image.Exif()
        exif[0x0112] = 6  # rotated right by 90 degrees when displayed, so the left side becomes the top
        image.save(tmp_path / "turned.jpg", exif=exif)
        ((square, neighbor),) = read_squares(tmp_path / "turned.jpg", ImageSettings(side=8, neighbor_seconds=1))
        assert square[:3].mean() > 240
        assert square[-3:].mean() < 15
        assert neighbor is None


class TestNeighbors:
    def test_are_other_frames_within_the_given_seconds(self, tmp_path: Path) -> None:
        path = make_counter(tmp_path / "a.mp4")
        drawn = numbers(path, ImageSettings(side=8, frames_per_video=30, neighbor_seconds=0.3))
        assert [frame for frame, _ in drawn] == list(range(1, 60, 2))
        moved = [neighbor - frame for frame, neighbor in drawn if neighbor is not None]
        assert len(moved) == 30
        assert set(moved) == {-3, -2, -1, 1, 2, 3}
        # Within the video, frame 1 has one frame before it and frame 59 none after it.
        assert -1 <= moved[0] <= 3
        assert -3 <= moved[-1] <= -1

    def test_depend_only_on_the_file_name_and_the_frame(self, tmp_path: Path) -> None:
        settings = ImageSettings(side=8, frames_per_video=10, neighbor_seconds=0.3)
        (tmp_path / "moved").mkdir()
        first = numbers(make_counter(tmp_path / "a.mp4"), settings)
        assert numbers(make_counter(tmp_path / "moved" / "a.mp4"), settings) == first
        assert numbers(make_counter(tmp_path / "b.mp4"), settings) != first
        assert [frame for frame, _ in first] == [3, 9, 15, 21, 27, 33, 39, 45, 51, 57]

    def test_are_chosen_by_timestamps(self, tmp_path: Path) -> None:
        """Frames 2 and 3 are 0.2 s apart, all others a second."""
        path = make_counter(tmp_path / "a.mp4", count=6, times=[0, 1, 2, 2.2, 3.2, 4.2])
        drawn = dict(numbers(path, ImageSettings(side=8, frames_per_video=60, neighbor_seconds=0.3)))
        assert drawn == {0: None, 1: None, 2: 3, 3: 2, 4: None, 5: None}

    def test_that_cannot_be_read_do_not_exclude_their_frames(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = make_counter(tmp_path / "a.mp4")

        def fail(path: Path, **_: Any) -> None:
            raise MediaError(str(path), "damaged")

        monkeypatch.setattr(file_squares, "iter_frames", fail)
        settings = ImageSettings(side=8, frames_per_video=2, neighbor_seconds=0.3)
        assert numbers(path, settings) == [(15, None), (45, None)]

    def test_in_damaged_parts_do_not_exclude_their_frames(self, tmp_path: Path) -> None:
        """Every frame is a key frame; all except the two sampled frames are overwritten."""
        path = make_counter(tmp_path / "a.avi", codec="mjpeg", pixel_format="yuvj420p", crf=None, preset=None)
        data = path.read_bytes()
        starts = [at for at in range(len(data)) if data.startswith(b"\xff\xd8\xff", at)]
        assert len(starts) == 60
        damaged = bytearray(data)
        for number, start in enumerate(starts):
            if number not in (15, 45):
                end = starts[number + 1] if number < 59 else start + 100
                # The eight-byte header of the next chunk stays intact.
                damaged[start : end - 8] = bytes(end - 8 - start)
        path.write_bytes(damaged)
        settings = ImageSettings(side=8, frames_per_video=2, neighbor_seconds=0.3)
        assert numbers(path, settings) == [(15, None), (45, None)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"side": 0}, "side and frames_per_video must be at least 1"),
        ({"frames_per_video": 0}, "side and frames_per_video must be at least 1"),
        ({"neighbor_seconds": -0.1}, "neighbor_seconds must be a number of at least 0, got -0.1"),
        ({"neighbor_seconds": float("nan")}, "neighbor_seconds must be .* got nan"),
    ],
)
def test_invalid_settings_are_rejected(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ImageSettings(**values)
