"""Comparison of the detail in two copies, tested on encoded footage of photographs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.videos import encode, photograph
from vidkin.errors import InvalidArgumentError
from vidkin.files.enlargement import DetailVerdict, judge_detail

Frames = list[NDArray[np.uint8]]

PHOTOGRAPHS = ("astronaut", "coffee", "rocket")


def resize(frames: Frames, width: int, height: int, kernel: Image.Resampling = Image.Resampling.BICUBIC) -> Frames:
    return [np.asarray(Image.fromarray(frame).resize((width, height), kernel)) for frame in frames]


def sharpen(frames: Frames, amount: float) -> Frames:
    """Sharpen frames with an unsharp mask."""
    sharpened = []
    for frame in frames:
        soft = Image.fromarray(frame).resize((frame.shape[1] // 2, frame.shape[0] // 2), Image.Resampling.BOX)
        smooth = np.asarray(soft.resize(frame.shape[1::-1], Image.Resampling.BICUBIC), dtype=np.float32)
        sharpened.append(np.clip(frame + amount * (frame - smooth), 0, 255).round().astype(np.uint8))
    return sharpened


def add_noise(frames: Frames, strength: float) -> Frames:
    generator = np.random.default_rng(5)
    noisy = (frame + generator.normal(0, strength, frame.shape[:2])[..., None] for frame in frames)
    return [np.clip(frame, 0, 255).round().astype(np.uint8) for frame in noisy]


def store(path: Path, frames: Frames, quality: int) -> Frames:
    """Encode frames at this quality (CRF) and decode them again."""
    encode(path, frames, options={"crf": str(quality)})
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


@pytest.fixture(scope="module", params=PHOTOGRAPHS)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """A camera that moves over a photograph at its original resolution."""
    photo = photograph(str(request.param))
    frames = [np.ascontiguousarray(photo[step : step + 256, 2 * step : 2 * step + 384]) for step in range(18)]
    return store(tmp_path_factory.mktemp("source") / "source.mp4", frames, 20)


def judge(large: Frames, small: Frames) -> DetailVerdict:
    return judge_detail(large[::4], small[::4])


@pytest.mark.parametrize("size", [(308, 204), (254, 168), (192, 128)])
def test_source_has_more_detail_than_its_small_copy(source: Frames, size: tuple[int, int], tmp_path: Path) -> None:
    verdict = judge(source, store(tmp_path / "small.mp4", resize(source, *size), 29))
    assert verdict.verdict == "more"
    assert verdict.certainty > 0.8
    assert verdict.ratio == pytest.approx(384 / size[0], rel=0.01)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda frames: frames, id="plain"),
        pytest.param(lambda frames: sharpen(frames, 1.0), id="sharpened"),
        pytest.param(lambda frames: add_noise(frames, 5), id="noise"),
        pytest.param(lambda frames: add_noise(sharpen(frames, 1.0), 5), id="sharpened-noise"),
    ],
)
@pytest.mark.parametrize("size", [(240, 160), (192, 128)])
def test_enlargement_never_has_more_detail_than_its_source(
    source: Frames, size: tuple[int, int], edit: Callable[[Frames], Frames], tmp_path: Path
) -> None:
    small = store(tmp_path / "small.mp4", resize(source, *size), 23)
    large = store(tmp_path / "large.mp4", edit(resize(small, 384, 256)), 20)
    assert judge(large, small).verdict != "more"


def test_plain_enlargement_is_recognized(source: Frames, tmp_path: Path) -> None:
    small = store(tmp_path / "small.mp4", resize(source, 240, 160), 23)
    large = store(tmp_path / "large.mp4", resize(small, 384, 256), 20)
    assert judge(large, small).verdict == "enlarged"


def test_heavily_compressed_large_copy_of_the_same_master_is_not_an_enlargement(source: Frames, tmp_path: Path) -> None:
    small = store(tmp_path / "small.mp4", resize(source, 254, 168), 18)
    large = store(tmp_path / "large.mp4", source, 30)
    assert judge(large, small).verdict != "enlarged"


def test_frames_may_be_shifted_by_a_pixel(source: Frames, tmp_path: Path) -> None:
    moved = [frame[1:-1, 1:-1] for frame in source]
    small = store(tmp_path / "small.mp4", resize(source, 254, 168), 29)
    assert judge(moved, small).verdict == "more"


def test_gray_frames_are_judged_like_color_frames(source: Frames, tmp_path: Path) -> None:
    def gray(frames: Frames) -> Frames:
        return [np.asarray(Image.fromarray(frame).convert("L")) for frame in frames]

    small = store(tmp_path / "small.mp4", resize(source, 254, 168), 29)
    assert judge(gray(source), gray(small)).beyond == pytest.approx(judge(source, small).beyond, abs=0.1)


def test_pairs_of_different_frames_are_ignored(source: Frames, tmp_path: Path) -> None:
    small = store(tmp_path / "small.mp4", resize(source, 192, 128), 23)
    large = store(tmp_path / "large.mp4", sharpen(resize(small, 384, 256), 1.0), 20)
    together = judge(large, small)
    # With a static camera, neighboring frames hardly differ: two of the five pairs are mismatched.
    apart = judge_detail(large[::4], [*small[:12:4], *small[2:10:6]])
    assert apart.verdict == together.verdict != "more"
    assert apart.gain == pytest.approx(together.gain, abs=0.05)
    assert apart.kept == pytest.approx(together.kept, abs=0.05)


def test_frames_without_detail_give_no_verdict() -> None:
    blank = [np.full((256, 384, 3), 90, np.uint8)] * 3
    verdict = judge_detail(blank, resize(blank, 192, 128))
    assert (verdict.verdict, verdict.detail) == ("unsure", pytest.approx(0, abs=0.1))


def test_copies_of_equal_size_give_no_verdict(source: Frames, tmp_path: Path) -> None:
    assert judge(source, store(tmp_path / "again.mp4", source, 32)).verdict == "unsure"


def test_different_footage_gives_no_verdict(tmp_path: Path) -> None:
    one, other = ([photograph(name)[:256, :384]] * 2 for name in ("coffee", "rocket"))
    assert judge_detail(one, resize(other, 192, 128)).verdict == "unsure"


FRAME = np.zeros((64, 96, 3), np.uint8)


@pytest.mark.parametrize(
    ("large", "small", "message"),
    [
        ([], [], "same number of frames, at least one, got 0 and 0"),
        ([FRAME, FRAME], [FRAME], "same number of frames, at least one, got 2 and 1"),
        ([FRAME[:48, :48]], [FRAME], "large must have more pixels than small, got 48x48 and 96x64"),
        ([FRAME], [FRAME[:16, :40]], "frames must have at least 32 pixels per side, got 40x16"),
    ],
)
def test_unsuitable_frames_are_refused(
    large: Sequence[NDArray[np.uint8]], small: Sequence[NDArray[np.uint8]], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        judge_detail(large, small)


def test_verdicts_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="verdict must be one of more, enlarged, unsure, got 'less'"):
        DetailVerdict("less", 0.9, 2.0, 0.0, 0.0, 0.0, 60.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"certainty must be from 0\.5 to 1, got 0\.2"):
        DetailVerdict("more", 0.2, 2.0, 0.0, 0.0, 0.0, 60.0)
