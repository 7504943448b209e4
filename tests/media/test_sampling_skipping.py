"""Reading at a low rate decodes only some frames, with the same result as decoding all of them."""

from __future__ import annotations

import re
import time
from pathlib import Path

import av
import numpy as np
import pytest

from tests.media.makers import naive_sample
from tests.support.videos import encode, pan
from vidkin.media import PictureReader, iter_frames, read_frames
from vidkin.media import sampling as _skipping

X264 = {"preset": "veryfast"}
X265 = {"preset": "ultrafast"}
QUICK_VP9 = {"cpu-used": "8", "deadline": "realtime"}

# name: (codec, extension, options). Short and long, closed and open groups of pictures, with and without B-frames that
# other frames reference, with hidden frames (VP8), and with a single key frame.
LAYOUTS = {
    "h264 ip short": ("libx264", "mp4", {**X264, "g": "5", "bf": "0"}),
    "h264 b short": ("libx264", "mp4", {**X264, "g": "12", "bf": "3"}),
    "h264 b long": ("libx264", "mkv", {**X264, "g": "250", "bf": "3"}),
    "h264 second": ("libx264", "mp4", {**X264, "g": "24", "bf": "2", "sc_threshold": "0"}),
    "h264 open": ("libx264", "mp4", {**X264, "g": "12", "bf": "3", "x264-params": "open-gop=1:b-pyramid=normal"}),
    "h264 open ts": ("libx264", "ts", {**X264, "g": "30", "bf": "3", "x264-params": "open-gop=1:b-pyramid=normal"}),
    "h264 open mkv": ("libx264", "mkv", {**X264, "g": "5", "bf": "3", "x264-params": "open-gop=1:bframes=2"}),
    "h264 refresh": ("libx264", "mp4", {**X264, "g": "30", "intra-refresh": "1"}),
    "h264 refresh ts": ("libx264", "ts", {**X264, "g": "12", "intra-refresh": "1"}),
    "h264 interlaced": ("libx264", "mp4", {**X264, "g": "12", "flags": "+ildct+ilme", "x264-params": "tff=1"}),
    "hevc open": ("libx265", "mp4", {**X265, "x265-params": "keyint=12:open-gop=1:log-level=none"}),
    "hevc closed": ("libx265", "mkv", {**X265, "x265-params": "keyint=30:open-gop=0:log-level=none"}),
    "mpeg2": ("mpeg2video", "ts", {"g": "12", "bf": "2"}),
    "mpeg2 ps": ("mpeg2video", "mpg", {"g": "12", "bf": "2"}),
    "mpeg4": ("mpeg4", "mp4", {"g": "12", "bf": "2"}),
    "mpeg4 avi": ("mpeg4", "avi", {"g": "12", "bf": "0"}),
    "mjpeg": ("mjpeg", "mkv", {}),
    "vp8 hidden": ("libvpx", "webm", {"g": "30", "cpu-used": "8", "auto-alt-ref": "1", "lag-in-frames": "16"}),
    "vp9": ("libvpx-vp9", "webm", {**QUICK_VP9, "g": "30"}),
    "av1": ("libsvtav1", "mp4", {"g": "30", "preset": "12"}),
}  # fmt: skip


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    codec, ending, options = LAYOUTS[request.param]
    path = tmp_path_factory.mktemp("layouts") / f"video.{ending}"
    frames = pan("astronaut", 192, width=96, height=64)
    return encode(
        path,
        frames,
        rate=24,
        codec=codec,
        options=options,
        pixel_format="yuvj420p" if codec == "mjpeg" else "yuv420p",
    )


@pytest.mark.parametrize(
    ("rate", "start", "end", "threads"),
    [(1.0, 0.0, None, 1), (1.0, 0.0, None, 3), (0.4, 0.0, None, 1), (3.0, 0.3, None, 2), (1.0, 6.4, None, 1),
     (7.0, 5.5, 6.5, 1), (60.0, 2.0, 2.5, 1)],
)  # fmt: skip
def test_samples_equal_those_of_decoding_everything(
    layout: Path, rate: float, start: float, end: float | None, threads: int
) -> None:
    times, images = naive_sample(layout, rate, start, end)
    frames = read_frames(layout, rate=rate, start=start, end=end, threads=threads)
    np.testing.assert_allclose(frames.timestamps, times, atol=1e-9)
    np.testing.assert_array_equal(frames.images, np.stack(images))


def fed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, str]]:
    """Record (is key frame, skip mode of the decoder) for every packet sent to the decoder."""
    packets: list[tuple[bool, str]] = []
    feed = PictureReader.feed

    def spy(self: PictureReader, packet: object) -> object:
        if packet is not None:
            packets.append((packet.is_keyframe, self.stream.codec_context.skip_frame))  # type: ignore[attr-defined]
        return feed(self, packet)  # type: ignore[arg-type]

    monkeypatch.setattr(PictureReader, "feed", spy)
    return packets


def test_only_key_frames_are_decoded_if_they_suffice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = encode(tmp_path / "a.mp4", pan("coffee", 240), rate=24, options={**X264, "g": "24", "sc_threshold": "0"})
    packets = fed(monkeypatch)
    assert len(read_frames(path, rate=1, threads=1)) == 10
    # The decoder returns the first frame a few packets later, because of B-frames.
    assert len(packets) <= 10 + 8
    assert sum(key for key, _ in packets) == 10


def test_unreferenced_frames_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = encode(tmp_path / "a.mp4", pan("coffee", 120), rate=24, options={**X264, "g": "250", "bf": "3"})
    packets = fed(monkeypatch)
    read_frames(path, rate=1, threads=1)
    decoded = [skip for _, skip in packets]
    assert len(decoded) <= 120
    assert decoded.count("NONREF") > 80


def test_a_late_start_reads_from_the_previous_key_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = encode(tmp_path / "a.mp4", pan("coffee", 480), rate=24, options={**X264, "g": "48"})
    packets = fed(monkeypatch)
    demuxed = []
    read = PictureReader.packets

    def spy(self: PictureReader) -> object:
        for packet in read(self):
            demuxed.append(packet.pts)
            yield packet

    monkeypatch.setattr(PictureReader, "packets", spy)
    frames = read_frames(path, rate=None, start=17.0, end=17.2, threads=1)
    np.testing.assert_allclose(frames.timestamps, [17.0, 17 + 1 / 24, 17 + 2 / 24, 17 + 3 / 24, 17 + 4 / 24])
    assert len(packets) < 60
    assert len(demuxed) < 120


def test_queue_of_packets_is_bounded_at_any_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_skipping, "MAX_WAITING_PACKETS", 32)
    path = encode(tmp_path / "a.mp4", pan("coffee", 240), rate=24, options={**X264, "g": "250", "bf": "3"})
    longest = 0
    wait = _skipping.SkippingDecoder._wait

    def spy(self: _skipping.SkippingDecoder, time: int, packet: object) -> None:
        nonlocal longest
        wait(self, time, packet)  # type: ignore[arg-type]
        longest = max(longest, len(self._waiting))

    monkeypatch.setattr(_skipping.SkippingDecoder, "_wait", spy)
    frames = read_frames(path, rate=0.11, threads=1)
    times, images = naive_sample(path, 0.11, 0.0, None)
    np.testing.assert_allclose(frames.timestamps, times)
    np.testing.assert_array_equal(frames.images, np.stack(images))
    assert longest <= 33


@pytest.mark.parametrize("rate", [1.0, 5.0, 1000.0])
@pytest.mark.parametrize("ending", ["mkv", "nut"])
def test_gap_of_months_in_the_times_takes_no_time(tmp_path: Path, ending: str, rate: float) -> None:
    """Samples during the gap of ten million seconds are not visited one by one."""
    times = [index / 5 + (0 if index < 30 else 10_000_000) for index in range(60)]
    path = encode(tmp_path / f"a.{ending}", pan("coffee", 60, width=96, height=64), rate=5, times=times)
    began = time.perf_counter()
    frames = read_frames(path, rate=rate)
    assert time.perf_counter() - began < 5
    # The last frame before the gap is on screen at the next sample.
    expected = [*times[:30:5], times[29], *times[30::5]] if rate == 1 else times
    np.testing.assert_allclose(frames.timestamps, expected, atol=2e-3)


@pytest.mark.parametrize(
    ("ending", "codec", "options"),
    [
        ("mp4", "libx264", {**X264, "g": "5", "bf": "0"}),
        ("mkv", "libx265", {**X265, "x265-params": "keyint=5:min-keyint=5:bframes=0:log-level=none"}),
        ("webm", "libvpx-vp9", {**QUICK_VP9, "g": "5", "lag-in-frames": "0"}),
        ("webm", "libvpx", {"cpu-used": "8", "deadline": "realtime", "g": "5", "lag-in-frames": "0"}),
        ("mp4", "libsvtav1", {"g": "5", "preset": "12"}),
    ],
)
def test_damage_to_skipped_packets_is_reported(
    tmp_path: Path, ending: str, codec: str, options: dict[str, str]
) -> None:
    """Damage two of the frames 6 to 8, which are not decoded at one sample per second."""
    path = encode(
        tmp_path / f"a.{ending}",
        pan("coffee", 72, width=96, height=64),
        rate=24,
        codec=codec,
        options=options,
    )

    def told() -> list[str]:
        damage: list[str] = []
        list(iter_frames(path, rate=1, on_damage=damage.append))
        return damage

    assert told() == []
    with av.open(path) as container:
        contents = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    data = path.read_bytes()
    # In AV1, a packet of three bytes shows a frame that was decoded before.
    for content in [content for content in contents[6:9] if len(content) > 4][:2]:
        assert data.count(content) == 1
        data = data.replace(content, b"\xff" * 4 + content[4:])
    path.write_bytes(data)
    (damage,) = told()
    assert re.fullmatch(r"the file is damaged: 2 packets skipped(, first at 0\.[1-3] s)?", damage)


def test_reading_far_into_a_file_with_many_key_frames_decodes_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seek goes back a second too far; decoding must not start at the key frames in between."""
    options = {"preset": "ultrafast", "g": "10", "bf": "0", "sc_threshold": "0"}
    path = encode(tmp_path / "video.mp4", pan("coffee", 200, width=96, height=64), rate=10, options=options)
    fed = []
    feed = PictureReader.feed

    def count(reader: PictureReader, packet: object) -> object:
        fed.append(packet)
        return feed(reader, packet)  # type: ignore[arg-type]

    monkeypatch.setattr(PictureReader, "feed", count)
    frames = read_frames(path, rate=None, start=15.5, end=16.5, threads=1)
    assert frames.timestamps == pytest.approx(np.arange(15.5, 16.45, 0.1))
    # The first frame, those from the key frame at 15 s on, and a few beyond the end, but not the 155 before.
    assert len(fed) < 60
