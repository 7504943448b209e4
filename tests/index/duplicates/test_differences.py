"""Differences between copies: a copy with exactly one FFmpeg edit is reported with exactly that difference."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.errors import InvalidArgumentError
from vidkin.index import Difference, FileRecord, PairResult, VideoRecord
from vidkin.index.duplicates import placement
from vidkin.index.duplicates.differences import find_differences
from vidkin.media import compare_packets, probe
from vidkin.similarity import Segment

RATE, FRAMES = 10, 60
SIZE = {"width": 320, "height": 240}


@cache
def scene() -> tuple[NDArray[np.uint8], ...]:
    return tuple(pan("coffee", FRAMES, **SIZE))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds with a key frame every second."""
    path = tmp_path_factory.mktemp("source") / "source.mp4"
    return encode(path, scene(), rate=RATE, options={"crf": "18", "g": "10"})


def apply_filters(path: Path, filters: str) -> Path:
    """Encode the scene through FFmpeg filters."""
    return encode(path, _filter(filters), rate=RATE, options={"crf": "22"})


def _filter(filters: str) -> Iterator[NDArray[np.uint8]]:
    graph = av.filter.Graph()
    source = graph.add("buffer", f"video_size={SIZE['width']}x{SIZE['height']}:pix_fmt=rgb24:time_base=1/{RATE}")
    last = source
    for step in filters.split(","):
        name, _, options = step.partition("=")
        following = graph.add(name, options or None)
        last.link_to(following)
        last = following
    form, sink = graph.add("format", "pix_fmts=rgb24"), graph.add("buffersink")
    last.link_to(form)
    form.link_to(sink)
    graph.configure()
    for index, image in enumerate(scene()):
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
        frame.pts = index
        source.push(frame)
        yield sink.pull().to_ndarray()  # type: ignore[union-attr]


def differences(copy: Path, source: Path, *, speed: float = 1.0, mirrored: bool = False) -> tuple[Difference, ...]:
    """Find the differences of a copy, given a match with the coarse times and speed of a search."""
    one, other = _file(copy), _file(source)
    start = 0.1
    end = one.record.duration - 0.1
    segment = Segment(start, end, speed * start + 0.1, speed * end, 0.9, speed, mirrored)
    return find_differences(one, other, PairResult(0.9, True, (1.0, 1.0), (segment,)))


def _file(path: Path) -> FileRecord:
    info = probe(path)
    shape = {"duration": info.duration, "width": info.width, "height": info.height, "codec": info.codec}
    facts = {
        "path": str(path),
        "size": info.size_bytes,
        "mtime_ns": 1,
        "content_hash": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    return FileRecord(VideoRecord(**facts, **shape, frames=8, id=1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("filters", "kinds", "amount"),
    [
        ("null", ["re-encoded"], None),
        ("crop=256:216:40:20", ["cropped"], 0.72),
        ("crop=224:168:60:30,scale=320:240", ["cropped"], 0.49),
        ("scale=160:120", ["lower resolution"], 0.5),
        ("pad=320:300:0:30", ["bars added"], 0.2),
        ("pad=400:240:40:0:color=0x4060a0", ["borders added"], 0.2),
        ("hue=s=0", ["without color"], None),
        ("lutrgb=r=val+40:g=val+40:b=val+40", ["brighter"], None),
        ("colorchannelmixer=rr=0:rb=1:br=1:bb=0", ["other colors"], None),
        ("scale=240:240", ["other aspect ratio"], None),
    ],
)
def test_single_edit_is_reported_as_a_single_difference(
    source: Path, tmp_path: Path, filters: str, kinds: list[str], amount: float | None
) -> None:
    found = differences(apply_filters(tmp_path / "copy.mp4", filters), source)
    assert [difference.kind for difference in found] == kinds
    if amount is not None:
        assert found[0].amount == pytest.approx(amount, rel=0.06)


def add_stripes(image: NDArray[np.uint8], left: int, top: int, width: int, height: int) -> NDArray[np.uint8]:
    """Overlay an image with black and white stripes that resemble letters."""
    laid = image.copy()
    laid[top : top + height, left : left + width] = 0
    laid[top + 4 : top + height - 4, left + 4 : left + width - 4 : 8] = 255
    laid[top + 4 : top + height - 4, left + 5 : left + width - 4 : 8] = 255
    return laid


@pytest.mark.parametrize(
    ("box", "kind", "where"),
    [
        ((40, 190, 240, 36), "caption", "bottom"),
        ((250, 12, 56, 56), "logo", "upper right"),
        ((8, 8, 150, 20), "logo", "upper left"),
    ],
)
def test_overlay_is_reported_with_its_position(
    source: Path, tmp_path: Path, box: tuple[int, int, int, int], kind: str, where: str
) -> None:
    copy = encode(tmp_path / "copy.mp4", (add_stripes(image, *box) for image in scene()), rate=RATE)
    assert differences(copy, source) == (Difference(kind, where=where),)  # type: ignore[arg-type]
    (back,) = differences(source, copy)
    assert (back.kind, back.where) == (f"no {kind}", where)


@pytest.mark.thorough
def test_mirrored_crop_is_reported_as_both_and_a_faster_copy_with_its_speed(source: Path, tmp_path: Path) -> None:
    flipped = apply_filters(tmp_path / "flipped.mp4", "crop=256:192:40:20,hflip")
    assert [difference.kind for difference in differences(flipped, source, mirrored=True)] == ["mirrored", "cropped"]
    faster = encode(tmp_path / "faster.mp4", scene()[::2], rate=RATE)
    (found,) = differences(faster, source, speed=2.05)
    assert (found.kind, found.amount) == ("speed", pytest.approx(2.0, abs=0.06))


def test_faster_copy_is_not_reported_as_trimmed(source: Path, tmp_path: Path) -> None:
    """The speed of the match is 1, because sampled frames are half a second apart."""
    faster = encode(tmp_path / "faster.mp4", scene(), rate=12)
    found = differences(faster, source)
    assert [difference.kind for difference in found] == ["speed"]
    assert found[0].amount == pytest.approx(1.2, abs=0.03)


@pytest.mark.parametrize("bars", [0, 24])
def test_box_of_a_mirrored_match_is_in_coordinates_of_the_unmirrored_frame(
    source: Path, tmp_path: Path, bars: int
) -> None:
    """Boxes refer to the frames as stored: not flipped, and including bars."""
    pages = []
    for page, image in zip(map(np.array, pan("chelsea", FRAMES, **SIZE)), scene(), strict=True):
        page[96:216, 16:176] = image[::2, ::-2]
        pages.append(np.pad(page, ((bars, bars), (0, 0), (0, 0))))
    copy = encode(tmp_path / "copy.mp4", pages, rate=RATE, options={"crf": "18"})
    height = SIZE["height"] + 2 * bars
    box = 16 / 320, (96 + bars) / height, 176 / 320, (216 + bars) / height
    match = Segment(0.0, 6.0, 0.0, 6.0, 0.9, mirrored=True, query_box=box)
    placed = placement.place_frames(str(copy), str(source), match, (6.0, 6.0))
    assert placed is not None
    assert placed.placement.inside_box == pytest.approx((1 - box[2], box[1], 1 - box[0], box[3]), abs=0.02)


def test_reversed_copy_is_reported(source: Path, tmp_path: Path) -> None:
    copy = encode(tmp_path / "copy.mp4", scene()[::-1], rate=RATE)
    match = PairResult(0.9, True, (1.0, 1.0), (Segment(0.0, 6.0, 0.0, 6.0, 0.9, backwards=True),))
    assert find_differences(_file(copy), _file(source), match) == (Difference("backwards"),)


def test_trimmed_copy_is_reported_with_the_seconds_it_shows(source: Path, tmp_path: Path) -> None:
    late = encode(tmp_path / "late.mp4", scene()[20:], rate=RATE, options={"crf": "28"})
    segment = Segment(0.0, 3.9, 1.8, 5.7, 0.9)
    found = find_differences(_file(late), _file(source), PairResult(0.9, True, (1.0, 1.0), (segment,)))
    assert [difference.kind for difference in found] == ["trimmed", "re-encoded"]
    assert (found[0].start, found[0].end) == pytest.approx((2.0, 6.0), abs=0.05)


def remux(source: Path, target: Path, share: float = 1.0) -> Path:
    with av.open(str(source)) as given, av.open(str(target), "w") as made:
        stream = made.add_stream_from_template(given.streams.video[0])
        packets = [packet for packet in given.demux(video=0) if packet.dts is not None]
        for packet in packets[round((1 - share) * len(packets)) :]:
            packet.stream = stream
            made.mux(packet)
    return target


@pytest.mark.parametrize("name", ["copy.mkv", "copy.ts"])
def test_same_packets_in_another_container_are_recognized(source: Path, tmp_path: Path, name: str) -> None:
    copy = remux(source, tmp_path / name)
    assert differences(copy, source) == (Difference("other container"),)
    assert differences(source, copy) == (Difference("other container"),)


def test_same_packets_in_the_same_container_differ_in_sound_or_tags(source: Path, tmp_path: Path) -> None:
    with av.open(str(source)) as given, av.open(str(tmp_path / "tagged.mp4"), "w") as made:
        made.metadata["title"] = "another title"
        stream = made.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                made.mux(packet)
    assert differences(tmp_path / "tagged.mp4", source) == (Difference("other sound or tags"),)


def test_lossless_trim_at_a_key_frame_is_distinguished_from_reencoding(source: Path, tmp_path: Path) -> None:
    cut = remux(source, tmp_path / "cut.mp4", share=0.5)
    found = compare_packets(cut, source)
    assert found is not None
    assert (found.is_whole, found.other_container, found.start) == (False, False, pytest.approx(3.0, abs=0.01))
    assert compare_packets(source, cut) is None
    again = encode(tmp_path / "again.mp4", scene(), rate=RATE, options={"crf": "19"})
    assert compare_packets(again, source) is None


@pytest.mark.thorough
def test_frames_of_a_video_are_read_once_for_all_its_copies(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def note(path: str, *arguments: Any, **options: Any) -> Any:
        read.append(Path(path))
        return read_frames(path, *arguments, **options)

    read_frames = placement.read_moments
    monkeypatch.setattr(placement, "read_moments", note)
    placement._read_around.cache_clear()
    gray, small = (
        apply_filters(tmp_path / "gray.mp4", "hue=s=0"),
        apply_filters(tmp_path / "small.mp4", "scale=160:120"),
    )
    kinds = [[difference.kind for difference in differences(copy, source)] for copy in (gray, small)]
    assert kinds == [["without color"], ["lower resolution"]]
    assert read == [gray, source, small]


@pytest.mark.thorough
def test_unrelated_video_has_no_differences(source: Path, tmp_path: Path) -> None:
    other = encode(tmp_path / "other.mp4", pan("brick", FRAMES, **SIZE), rate=RATE)
    assert differences(other, source) == ()


def test_invalid_differences_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"kind must be one of 'identical', .*, got 'blue'"):
        Difference("blue")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="amount must be positive and finite, got 0"):
        Difference("speed", 0.0)
