"""Edited copies show the content given by their segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.media.makers import flat
from tests.support.videos import pan
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import probe, read_frames, write_video
from vidkin_research.copies.applying import EditResult, apply_edit

pytestmark = pytest.mark.large

Image = NDArray[np.uint8]

# The others are tested frame by frame, without encoding.
WHOLE_FILES = """
    reencode resize crop letterbox pillarbox logo caption grey sepia brighter darker contrast blur noise mirror
    faster slower picture_in_picture excerpt rotate5 fade aspect vertical_pan split_four combined double_speed
""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 seconds of a camera moving over a photograph, 192 x 128."""
    path = tmp_path_factory.mktemp("edits") / "source.mp4"
    write_video(path, pan("coffee", 120), rate=15, crf=12)
    return path


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 seconds at 10 fps; the brightness of the two halves of frame i encodes the two digits of i."""
    path = tmp_path_factory.mktemp("edits") / "clock.mp4"
    write_video(path, (np.hstack([flat(25 * (i // 10)), flat(25 * (i % 10))]) for i in range(100)), rate=10, crf=4)
    return path


def clock_index(image: Image) -> int:
    """Index of a frame of `clock`."""
    tens, ones = (float(half.mean()) / 25 for half in np.split(image, 2, axis=1))
    return 10 * round(tens) + round(ones)


@pytest.fixture(scope="module")
def filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3 seconds of pure red, which are shorter than every edit requires and have another size."""
    path = tmp_path_factory.mktemp("edits") / "filler.mp4"
    red = np.zeros((90, 90, 3), dtype=np.uint8)
    red[..., 0] = 255
    write_video(path, [red] * 75, rate=25)
    return path


@pytest.fixture(scope="module")
def copies(source: Path, filler: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, EditResult]:
    """Edits of seconds 1 to 7."""
    folder = tmp_path_factory.mktemp("copies")
    return {
        name: apply_edit(source, folder / f"{name}.mp4", name, seed=5, start=1.0, end=7.0, filler=filler)
        for name in WHOLE_FILES
    }


def frame_pair(source: Path, result: EditResult, part: float = 0.5) -> tuple[Image, Image]:
    """Return the copy's frame at this fraction of its segment, and the source frame given by the time map."""
    segment = result.segments[0]
    time = segment.edited_start + part * (segment.edited_end - segment.edited_start)
    copy = read_frames(result.path, start=time, end=time + 0.01).images[0]
    moment = result.time_map.to_source(time)
    return copy, read_frames(source, start=moment, end=moment + 0.01).images[0]


def difference(a: Image, b: Image) -> float:
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_segments_have_the_length_of_the_file(copies: dict[str, EditResult], name: str) -> None:
    result = copies[name]
    (segment,) = result.segments
    info = probe(result.path)
    assert info.frame_rate == pytest.approx(15, abs=0.01)
    speed = {"faster": 1.25, "slower": 0.8, "double_speed": 2.0}.get(name, 1.0)
    assert result.time_map.speed == speed
    assert segment.source_end - segment.source_start == pytest.approx(
        speed * (segment.edited_end - segment.edited_start)
    )
    assert result.time_map.to_edited(segment.source_end) == pytest.approx(segment.edited_end)
    assert result.time_map.to_source(segment.edited_start) == pytest.approx(segment.source_start)
    assert result.mirrored == (name == "mirror")
    if name == "excerpt":
        assert segment.source_end - segment.source_start == pytest.approx(5.0)
        assert 1.0 <= segment.source_start <= 2.0
        assert 2.0 <= segment.edited_start <= 18.0
        assert info.duration == pytest.approx(25.0, abs=0.01)
    else:
        assert segment[:4] == pytest.approx((1.0, 7.0, 0.0, 6.0 / speed), abs=0.05)
        assert info.duration == pytest.approx(segment.edited_end, abs=0.01)


@pytest.mark.parametrize("name", ["reencode", "faster", "slower", "excerpt"])
@pytest.mark.parametrize("seed", [0, 1])
def test_time_map_is_exact(clock: Path, filler: Path, tmp_path: Path, name: str, seed: int) -> None:
    result = apply_edit(clock, tmp_path / "a.mp4", name, seed=seed, start=0.7, filler=filler)
    frames = read_frames(result.path, rate=None)
    segment = result.segments[0]
    inside = 0
    for time, image in zip(frames.timestamps, frames.images, strict=True):
        if segment.edited_start - 1e-6 <= time < segment.edited_end - 1e-6:
            inside += 1
            # The source frame visible at that time.
            assert clock_index(image) == int(result.time_map.to_source(time) * 10 + 1e-4)
        else:
            assert image[..., 0].min() > 220
            assert image[..., 1].max() < 40
    assert inside == round((segment.edited_end - segment.edited_start) * 10)


def test_reordered_pieces_have_exact_times(clock: Path, tmp_path: Path) -> None:
    result = apply_edit(clock, tmp_path / "a.mp4", "reordered", seed=2, start=1.0, end=9.0)
    frames = read_frames(result.path, rate=None)
    assert len(frames) == 80
    shown = set()
    for segment in result.segments:
        for time, image in zip(frames.timestamps, frames.images, strict=True):
            if segment.edited_start - 1e-6 <= time < segment.edited_end - 1e-6:
                moment = segment.source_start + time - segment.edited_start
                assert clock_index(image) == int(moment * 10 + 1e-4)
                shown.add(clock_index(image))
    assert shown == set(range(10, 90))


def test_segments_have_the_boxes_of_the_scaled_frame(copies: dict[str, EditResult]) -> None:
    # A height of 128 pixels gives a width of 72 of 192.
    (segment,) = copies["vertical_pan"].segments
    assert segment.source_box[2] - segment.source_box[0] == pytest.approx(72 / 192)
    assert segment.edited_box == (0, 0, 1, 1)
    (segment,) = copies["split_four"].segments
    assert segment.source_box == (0, 0, 1, 1)
    assert {tuple(np.subtract(segment.edited_box[2:], segment.edited_box[:2]))} == {(0.5, 0.5)}
    (segment,) = copies["reencode"].segments
    assert segment.source_box == segment.edited_box == (0, 0, 1, 1)


@pytest.mark.parametrize(
    "name", ["reencode", "brighter", "darker", "contrast", "noise", "blur", "grey", "sepia", "fade"]
)
def test_frames_change_but_stay_recognizable(copies: dict[str, EditResult], source: Path, name: str) -> None:
    copy, original = frame_pair(source, copies[name])
    assert copy.shape == original.shape
    likeness = np.corrcoef(copy.mean(axis=2).ravel(), original.mean(axis=2).ravel())[0, 1]
    assert likeness > (0.85 if name == "noise" else 0.93)
    if name != "fade":  # not dark in the middle
        assert difference(copy, original) > 1.2


def test_brightness_and_contrast_follow_their_formulas(copies: dict[str, EditResult], source: Path) -> None:
    for name, function in {
        "brighter": lambda v: v + 50,
        "darker": lambda v: 0.6 * v,
        "contrast": lambda v: 1.6 * (v - 128) + 128,
    }.items():
        copy, original = frame_pair(source, copies[name])
        expected = np.clip(function(original.astype(float)), 0, 255)
        assert abs(float((copy - expected).mean())) < 4
        assert float(np.abs(copy - expected).mean()) < 9


def test_mirrored_copy_is_flipped_left_to_right(copies: dict[str, EditResult], source: Path) -> None:
    copy, original = frame_pair(source, copies["mirror"])
    assert difference(copy, original[:, ::-1]) < 6 < difference(copy, original)


def test_gray_copy_has_no_color(copies: dict[str, EditResult], source: Path) -> None:
    copy, _ = frame_pair(source, copies["grey"])
    assert int(np.ptp(copy.astype(int), axis=2).max()) <= 6


def test_crop_keeps_an_off_center_window_of_70_percent(copies: dict[str, EditResult], source: Path) -> None:
    copy, original = frame_pair(source, copies["crop"])
    assert copy.shape[0] * copy.shape[1] == pytest.approx(0.7 * 192 * 128, rel=0.03)
    places = {
        (y, x): difference(copy, original[y : y + copy.shape[0], x : x + copy.shape[1]])
        for y in range(128 - copy.shape[0] + 1)
        for x in range(192 - copy.shape[1] + 1)
    }
    y, x = min(places, key=lambda place: places[place])
    assert places[y, x] < 6
    room_y, room_x = 128 - copy.shape[0], 192 - copy.shape[1]
    assert min(y, room_y - y) <= room_y / 3 + 1
    assert min(x, room_x - x) <= room_x / 3 + 1


@pytest.mark.parametrize(("name", "size"), [("letterbox", (168, 192)), ("pillarbox", (128, 252))])
def test_each_bar_covers_12_percent_of_the_side(
    copies: dict[str, EditResult], source: Path, name: str, size: tuple[int, int]
) -> None:
    copy, original = frame_pair(source, copies[name])
    assert copy.shape[:2] == size
    axis = 0 if name == "letterbox" else 1
    bar = (size[axis] - original.shape[axis]) // 2
    assert bar / size[axis] == pytest.approx(0.12, abs=0.005)
    edges, picture = (
        np.split(copy, [bar - 2], axis=axis)[0],
        np.take(copy, range(bar, size[axis] - bar), axis=axis),
    )
    assert edges.max() < 24
    assert difference(picture, original) < 6


@pytest.mark.parametrize(("name", "size"), [("resize", (64, 96)), ("aspect", (128, 170)), ("rotate5", (128, 192))])
def test_file_sizes_have_decimal_units(copies: dict[str, EditResult], name: str, size: tuple[int, int]) -> None:
    info = probe(copies[name].path)
    assert (info.height, info.width) == size


def test_rotation_leaves_no_empty_corner(tmp_path: Path) -> None:
    write_video(tmp_path / "white.mp4", [flat(200, 192, 128)] * 5, rate=5)
    result = apply_edit(tmp_path / "white.mp4", tmp_path / "a.mp4", "rotate5")
    assert int(read_frames(result.path, rate=None).images.min()) > 190


def test_logo_and_caption_hide_part_of_the_frame(copies: dict[str, EditResult], source: Path) -> None:
    for name, least, most in (("logo", 0.08, 0.25), ("caption", 0.15, 0.26)):
        copy, original = frame_pair(source, copies[name])
        changed = np.abs(copy.astype(int) - original.astype(int)).max(axis=2) > 40
        assert least < changed.mean() < most
    caption, original = frame_pair(source, copies["caption"])
    assert difference(caption[:95], original[:95]) < 6  # unchanged above the band
    assert (caption[102:].max(axis=2) > 200).mean() > 0.02  # white text on it


def test_fade_starts_and_ends_black(copies: dict[str, EditResult]) -> None:
    light = read_frames(copies["fade"].path, rate=None).images.mean(axis=(1, 2, 3))
    assert light[0] < 3
    assert light[-1] < 3
    assert (np.diff(light[:12]) > 0).all()
    assert light[45] > 60


def test_picture_in_picture_shows_the_source_in_a_corner(copies: dict[str, EditResult], source: Path) -> None:
    copy, original = frame_pair(source, copies["picture_in_picture"])
    assert copy.shape == original.shape
    red = (copy[..., 0] > 200) & (copy[..., 1] < 70)
    rows, columns = np.where(~red.all(axis=1))[0], np.where(~red.all(axis=0))[0]
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    assert height / 128 == pytest.approx(0.45, abs=0.04)
    assert width / 192 == pytest.approx(0.45, abs=0.04)
    assert rows[0] < 10 or rows[-1] > 117
    assert columns[0] < 13 or columns[-1] > 178
    small = original[::2, ::2][:height, :width]
    inset = copy[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    shape = (min(len(small), len(inset)), min(small.shape[1], inset.shape[1]))
    likeness = np.corrcoef(small[: shape[0], : shape[1]].ravel(), inset[: shape[0], : shape[1]].ravel())[0, 1]
    assert likeness > 0.3


def test_copies_depend_only_on_the_seed(source: Path, tmp_path: Path) -> None:
    for name in ("crop", "noise", "logo"):
        images = []
        for index, seed in enumerate((1, 1, 2, 3, 4)):
            result = apply_edit(source, tmp_path / f"{name}-{index}.mp4", name, seed=seed, end=0.5)
            images.append(read_frames(result.path).images)
        np.testing.assert_array_equal(images[0], images[1])
        assert any(not np.array_equal(images[0], other) for other in images[2:])


def test_variable_frame_rate_becomes_constant_with_correct_times(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.2, 1.5, 1.6, 1.7, 3.0, 3.1]
    write_video(tmp_path / "vfr.mp4", (flat(30 * i) for i in range(8)), rate=10, times=times)
    result = apply_edit(tmp_path / "vfr.mp4", tmp_path / "a.mp4", "reencode", end=3.05)
    for moment, level in [(0.05, 0), (0.6, 60), (1.4, 60), (2.9, 150)]:
        image = read_frames(result.path, start=result.time_map.to_edited(moment), end=9).images[0]
        assert float(image.mean()) == pytest.approx(level, abs=6)


def test_high_frame_rates_are_reduced_to_thirty(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", (flat(i) for i in range(120)), rate=60)
    result = apply_edit(tmp_path / "a.mp4", tmp_path / "b.mp4", "grey")
    assert probe(result.path).frame_rate == pytest.approx(30, abs=0.01)
    assert result.segments[0][:4] == pytest.approx((0, 2, 0, 2), abs=0.02)


def test_short_side_option_resizes_the_source_first(source: Path, tmp_path: Path) -> None:
    result = apply_edit(source, tmp_path / "a.mp4", "grey", end=0.5, short_side=64)
    assert probe(result.path).short_side == 64


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"name": "sparkle"}, InvalidArgumentError, "unknown edit 'sparkle'; choose from reencode, resize, crop"),
        ({"name": "excerpt"}, InvalidArgumentError, "the edit 'excerpt' needs unrelated footage; pass a video"),
        ({"name": "grey", "start": 3, "end": 2}, InvalidArgumentError, "0 <= start < end, got 3 and 2"),
        ({"name": "grey", "start": 30}, MediaError, r"source\.mp4: start 30\.0 s is beyond the end \(8\.0 s\)"),
    ],
)  # fmt: skip
def test_impossible_edit_is_rejected_without_leaving_a_file(
    source: Path, tmp_path: Path, arguments: dict[str, object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        apply_edit(source, tmp_path / "a.mp4", **arguments)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
