"""Square crops of the frames of unlabeled videos, and the windows into which they are divided."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from vidkin.errors import DatasetError
from vidkin.training.clip_footage import VideoSquares, cache_tensors, cut_windows, read_squares, split_windows


def video(count: int) -> VideoSquares:
    return VideoSquares("film.mp4", count, f"key {count}", None, torch.zeros(count, 3, 16, 16, dtype=torch.uint8))


def read(folder: Path, cache: Path | None = None) -> list[VideoSquares]:
    return read_squares([folder], rate=5.0, side=32, cache=cache)[0]


def test_long_videos_are_cut_into_equal_windows() -> None:
    windows = cut_windows([video(5), video(20), video(11)], 8)
    assert [(window.video, window.start, window.stop) for window in windows] == [
        (0, 0, 5), (1, 0, 10), (1, 10, 20), (2, 0, 11),
    ]  # fmt: skip
    assert [window.number for window in windows] == [0, 1, 2, 3]


def test_videos_are_in_one_split_and_small_folders_have_no_validation() -> None:
    windows = cut_windows([video(20)] * 10, 8)
    train, validation = split_windows(windows, share=0.3, seed=1)
    assert (len(train), len(validation)) == (14, 6)
    assert {window.video for window in train}.isdisjoint(window.video for window in validation)
    assert split_windows(windows, share=0.1, seed=1) == (tuple(windows), ())


class TestSquares:
    def test_are_decoded_once_and_cached_in_a_file_per_video(
        self, footage: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        told: list[tuple[int, int]] = []
        videos, broken = read_squares(
            [footage], rate=5.0, side=32, cache=tmp_path, on_video=lambda *at: told.append(at)
        )
        assert [(Path(item.path).stem, item.count) for item in videos[:2]] == [
            ("astronaut", 16),
            ("camera", 16),
        ]
        assert [Path(path).name for path, _ in broken] == ["broken.mp4", "still.mp4"]
        assert broken[1][1] == "must have at least 4 frames at 5 per second, got 1"
        assert told[-1] == (8, 8)
        plain = read(footage)
        for kept, whole in zip(videos, plain, strict=True):
            assert whole.values is not None
            assert kept.values is None
            assert torch.equal(kept.read(3, 9), whole.values[3:9])
        before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
        damaged = next(iter(before))
        damaged.write_bytes(b"short")
        again = read(footage, tmp_path)
        assert [item.count for item in again] == [16] * 6
        after = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
        assert {path for path in before if before[path] != after[path]} == {damaged}
        assert "is damaged; reading the video again" in caplog.text

    def test_are_stretched_or_cropped(self, footage: Path) -> None:
        squeezed, cut = (
            read_squares([footage], rate=5.0, side=32, fit=fit, cache=None)[0][0] for fit in ("stretch", "crop")
        )
        assert squeezed.key != cut.key
        assert squeezed.values is not None
        assert cut.values is not None
        # The center 64 x 64 of 96 x 64 pixels remain, so a square of 32 shows two thirds of the width.
        wide = torch.nn.functional.interpolate(squeezed.values.float(), (32, 48), mode="bilinear")
        assert float((wide[..., 8:40] - cut.values.float()).abs().mean()) < 6
        assert float((squeezed.values.float() - cut.values.float()).abs().mean()) > 10

    def test_are_decoded_again_for_another_rate_or_content_but_not_for_a_copy(
        self, footage: Path, tmp_path: Path
    ) -> None:
        first = read(footage)[0].key
        assert read_squares([footage], rate=2.5, side=32, cache=None)[0][0].key != first
        for name in ("astronaut", "camera", "coffee"):
            shutil.copyfile(footage / f"{name}.mp4", tmp_path / f"{name}.mp4")
        assert read(tmp_path)[0].key == first
        shutil.copyfile(footage / "coffee.mp4", tmp_path / "astronaut.mp4")
        assert read(tmp_path)[0].key != first

    def test_of_unreadable_files_are_skipped(self, footage: Path, tmp_path: Path) -> None:
        for name in ("astronaut", "camera", "coffee"):
            shutil.copyfile(footage / f"{name}.mp4", tmp_path / f"{name}.mp4")
        lost = tmp_path / "coffee.mp4"
        videos, broken = read_squares(
            [tmp_path], rate=5.0, side=32, cache=None, on_video=lambda *at: lost.unlink(missing_ok=True)
        )
        assert [Path(video.path).stem for video in videos] == ["astronaut", "camera"]
        assert broken == [(str(lost), "cannot be read: No such file or directory")]

    def test_of_a_single_video_are_rejected(self, footage: Path) -> None:
        with pytest.raises(DatasetError, match="must contain at least 2 videos with 4 frames at 5 per second"):
            read(footage / "coffee.mp4")

    def test_of_too_few_readable_videos_are_rejected_with_the_first_cause(self, footage: Path, tmp_path: Path) -> None:
        shutil.copy(footage / "coffee.mp4", tmp_path)
        (tmp_path / "notes.mp4").write_text("no video")
        with pytest.raises(DatasetError, match=r"got 1 of 2 videos; the first .* is .*notes\.mp4: this is text"):
            read(tmp_path)

    def test_a_damaged_cache_file_is_rebuilt(self, tmp_path: Path) -> None:
        path = tmp_path / "a" / "b.safetensors"
        made = cache_tensors(path, lambda: {"x": torch.ones(2)})
        assert torch.equal(cache_tensors(path, lambda: {"x": torch.zeros(2)})["x"], made["x"])
        path.write_bytes(b"short")
        assert torch.equal(cache_tensors(path, lambda: {"x": torch.zeros(2)})["x"], torch.zeros(2))
