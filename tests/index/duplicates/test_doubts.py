"""Videos that look alike and are no copies: takes before one fixed camera, a speck in a plain sky."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PILImage
from vidkin.index.duplicates.doubts import (
    find_doubt,
    is_confirmed,
    picture_agreement,
    show_one_recording,
    template_correlation,
)

from tests.support.videos import Image, encode, pan, photograph
from vidkin.index import VideoRecord
from vidkin.index.duplicates.comparisons import FileRecord, PairResult
from vidkin.similarity import FrameFeatures, Segment

RATE, COUNT, SECONDS = 10, 50, 5.0
MATCH = PairResult(0.9, True, (1.0, 1.0), (Segment(0, SECONDS, 0, SECONDS, 0.9),))


def take(seed: int) -> list[Image]:
    """Somebody's hands before a wall: the same wall, other movements for each seed."""
    wall = photograph("brick")[:192, :256].copy()
    generator = np.random.default_rng(seed)
    phases, turns = generator.uniform(0, 6, 4), generator.uniform(1, 4, 4)
    frames = []
    for moment in range(COUNT):
        frame = wall.copy()
        across, down = (np.sin(turns * moment / RATE + phases) * 60 + 90).astype(int).reshape(2, 2)
        for x, y in zip(across, down, strict=True):
            frame[y : y + 40, x : x + 30] = (220, 180, 150)
        frames.append(frame)
    return frames


def sky(place: int) -> list[Image]:
    frames = [np.full((192, 256, 3), (120, 160, 210), np.uint8) for _ in range(COUNT)]
    for moment, frame in enumerate(frames):
        frame[60:64, place + moment : place + moment + 5] = 40
    return frames


def doubt(folder: Path, first: Sequence[Image], second: Sequence[Image], *, crf: int = 30) -> str:
    files = []
    for name, frames, quality in (("first", first, 18), ("second", second, crf)):
        path = encode(folder / f"{name}.mp4", frames, rate=RATE, options={"crf": str(quality)})
        files.append(FileRecord(VideoRecord(path=str(path), size=1, mtime_ns=1, content_hash=name)))
    return find_doubt(files[0], files[1], MATCH)


def test_takes_before_one_camera_are_doubtful_and_a_copy_is_not(tmp_path: Path) -> None:
    assert doubt(tmp_path, take(1), take(2)) == "other takes of one scene?"
    assert doubt(tmp_path, take(1), take(1)) == ""


@pytest.mark.parametrize("late", [0, 2])
def test_edited_copies_are_not_doubtful(tmp_path: Path, late: int) -> None:
    """A gray, darker copy, also if the times of the match are a little off."""
    frames = list(pan("coffee", COUNT + late, width=256, height=192))
    edited = [(frame.mean(axis=2, keepdims=True) * 0.7).astype(np.uint8).repeat(3, axis=2) for frame in frames]
    assert doubt(tmp_path, frames[:COUNT], edited[late:]) == ""


def test_a_cropped_copy_is_not_doubtful_although_its_box_is_not_exact(tmp_path: Path) -> None:
    frames = list(pan("coffee", COUNT, width=256, height=192))
    cropped = [frame[6:160, 20:226] for frame in frames]
    assert doubt(tmp_path, frames, cropped) == ""
    # What zooming makes alike is the picture, not what moves in it.
    other = [frame[18:174, 24:232] for frame in take(2)]
    assert doubt(tmp_path, take(1), other) == "other takes of one scene?"


def test_a_letterboxed_copy_whose_box_is_known_is_not_doubtful(tmp_path: Path) -> None:
    frames = list(pan("coffee", COUNT, width=256, height=192))
    boxed = [np.pad(frame, ((40, 40), (0, 0), (0, 0))) for frame in frames]
    one = encode(tmp_path / "one.mp4", frames, rate=RATE)
    other = encode(tmp_path / "other.mp4", boxed, rate=RATE)
    files = [FileRecord(VideoRecord(path=str(p), size=1, mtime_ns=1, content_hash=p.name)) for p in (one, other)]
    for box in ((0.0, 40 / 272, 1.0, 232 / 272), (0.0, 0.0, 1.0, 1.0)):
        match = Segment(0, SECONDS, 0, SECONDS, 0.9, target_box=box)
        assert find_doubt(files[0], files[1], PairResult(0.9, True, (1.0, 1.0), (match,))) == ""


def test_copies_of_nearly_empty_pictures_stay_doubtful(tmp_path: Path) -> None:
    assert doubt(tmp_path, sky(20), sky(150)) == "little detail"
    still = [photograph("brick")[:192, :256]] * COUNT
    assert doubt(tmp_path, still, still) == "hardly anything moves"


def test_without_a_segment_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    record = VideoRecord(path=str(tmp_path / "none.mp4"), size=1, mtime_ns=1, content_hash="a")
    assert find_doubt(FileRecord(record), FileRecord(record), PairResult(0.9)) == ""


def photographs(folder: Path, first: Image, second: Image) -> str:
    files = []
    for name, picture in (("first", first), ("second", second)):
        path = folder / f"{name}.png"
        PILImage.fromarray(picture).save(path)
        files.append(FileRecord(VideoRecord(path=str(path), size=1, mtime_ns=1, content_hash=name, frames=1)))
    return find_doubt(files[0], files[1], PairResult(0.9, True, (1.0, 1.0), (Segment(0, 0.25, 0, 0.25, 0.9),)))


def test_photographs_need_not_move(tmp_path: Path) -> None:
    picture = photograph("coffee")[:384, :512]
    half = np.asarray(PILImage.fromarray(picture).resize((256, 192)))
    assert photographs(tmp_path, picture, half) == ""
    assert photographs(tmp_path, picture, (picture * 0.6 + 20).astype(np.uint8)) == ""
    assert photographs(tmp_path, picture, picture[40:344, 50:460]) == ""
    # Something else lies before the same wall.
    other = picture.copy()
    other[100:250, 150:350] = photograph("brick")[100:250, 150:350]
    assert photographs(tmp_path, picture, other) == "another picture of one scene?"


def test_agreement_of_pictures_is_a_correlation() -> None:
    ramp = np.repeat(np.arange(0, 128, 2, dtype=np.uint8)[None, None, :, None], 48, axis=1).repeat(3, axis=3)
    assert picture_agreement(ramp, 100 + ramp) == pytest.approx(1.0)
    assert picture_agreement(ramp, 200 - ramp) == pytest.approx(-1.0)
    assert picture_agreement(ramp, np.full_like(ramp, 7)) == 0.0


@pytest.mark.parametrize(("height", "width"), [(40, 60), (1, 7), (96, 128), (95, 31)])
def test_templates_are_placed_as_scikit_image_places_them(height: int, width: int) -> None:
    feature = pytest.importorskip("skimage.feature")
    small = PILImage.fromarray(photograph("coffee")).convert("L")
    picture = np.asarray(small.resize((128, 96)), dtype=np.float64)
    picture[:50, :70] = 120.0  # nothing to compare with
    template = np.asarray(small.resize((width, height), box=(100, 80, 400, 300)), dtype=np.float64)
    here, there = template_correlation(picture, template), feature.match_template(picture, template)
    assert here.shape == (97 - height, 129 - width)
    # Where nothing can be compared, rounding decides what scikit-image says.
    flat = np.abs(here) < 1e-9
    np.testing.assert_allclose(here[~flat], there[~flat], atol=1e-6)


def test_a_flat_template_or_picture_correlates_with_nothing() -> None:
    noise = np.random.default_rng(0).random((20, 30))
    assert not template_correlation(noise, np.full((5, 6), 0.1)).any()
    assert not template_correlation(np.full((20, 30), 0.1), noise[:5, :6]).any()
    assert template_correlation(noise, noise[3:9, 4:14])[3, 4] == pytest.approx(1.0)


def described(scenes: Sequence[NDArray[np.float32]], seconds: int = 3) -> FrameFeatures:
    """One frame a second, the same picture for some seconds of each scene."""
    values = np.repeat(np.stack(scenes), seconds, axis=0)[:, None]
    return FrameFeatures.of_whole(values, np.arange(float(len(values))))


def near(vector: NDArray[np.float32], share: float, generator: np.random.Generator) -> NDArray[np.float32]:
    """A unit vector that has this cosine with another one."""
    other = generator.normal(size=len(vector)).astype(np.float32)
    other -= (other @ vector) * vector
    return np.asarray(share * vector + np.sqrt(1 - share**2) * other / np.linalg.norm(other), np.float32)


def test_stored_features_confirm_the_same_scenes_and_never_takes_before_one_camera() -> None:
    generator = np.random.default_rng(0)
    scenes = [near(np.eye(128, dtype=np.float32)[0], 0.2, generator) for _ in range(4)]
    match = Segment(0.0, 11.0, 0.0, 11.0, 0.9)
    film, copy = described(scenes), described([near(scene, 0.85, generator) for scene in scenes])
    assert is_confirmed(film, copy, match)
    # The same wall in both, and what moves before it differs: each frame resembles its counterpart as much as above.
    wall = scenes[0]
    first, second = ([near(wall, 0.93, generator) for _ in range(4)] for _ in range(2))
    assert not is_confirmed(described(first), described(second), match)
    # Scenes in another order are no copy, and little to see proves nothing.
    assert not is_confirmed(film, described(scenes[::-1]), match)
    plain = replace(film, information=np.full(12, 0.2, np.float32))
    assert not is_confirmed(film, plain, match)


def test_pictures_of_a_few_moments_prove_one_recording_only_where_they_change_in_the_same_way() -> None:
    whole = photograph("coffee")
    moments = [np.ascontiguousarray(whole[20 * n : 20 * n + 192, 30 * n : 30 * n + 256]) for n in range(4)]
    darker = [np.uint8(image * 0.7) for image in moments]
    assert show_one_recording(moments, darker)
    # The same place at other moments, too few moments, moments that hardly differ, and nothing to see.
    assert not show_one_recording(moments, moments[::-1])
    assert not show_one_recording(moments[:2], darker[:2])
    assert not show_one_recording(moments[:1] * 4, darker[:1] * 4)
    black = [np.zeros_like(image) for image in moments]
    assert not show_one_recording(black, black)
