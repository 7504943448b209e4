"""Every frame of small files in each available codec and container is read at its time, without false reports of
damage.

The frames are uniform, each eight gray levels brighter than the previous one, so that a missing, repeated or misplaced
frame changes the brightness of all later frames.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from vidkin.media import iter_frames

_FRAMES = 24
_DARKEST, _STEP = 20, 8
_FORMATS = ("yuv420p", "yuv422p", "yuv422p10le", "yuv444p", "rgb24", "gbrp", "bgr24", "rgb8", "pal8")
# Codecs by container; options follow the comma.
_SAMPLES = {
    "3gp": ("h263", "libx264"),
    "apng": ("apng",),
    "asf": ("msmpeg4", "wmv1", "wmv2"),
    "avi": (
        "asv1", "cinepak", "ffv1", "h263p", "huffyuv", "libx264", "mpeg4", "mpeg4,bf=2,qmax=2", "msmpeg4", "msmpeg4v2",
        "rawvideo", "svq1", "utvideo", "wmv2",
    ),
    "flv": ("flashsv", "flv", "libx264"),
    "gif": ("gif",),
    "h264": ("libx264",),
    "ivf": ("libvpx",),
    "m4v": ("mpeg4",),
    "matroska": (
        "ffv1", "libvpx", "libvpx,auto-alt-ref=1,lag-in-frames=12", "libvpx-vp9", "libx264", "libx265", "mpeg1video",
        "mpeg2video", "mpeg4", "msmpeg4", "prores_ks", "snow",
    ),
    "mov": ("cfhd", "jpeg2000", "libx264", "png", "prores_ks", "qtrle", "svq1"),
    "mp4": (
        "libvpx-vp9", "libx264", "libx264,bf=0", "libx264,bf=4,refs=6", "libx264,g=1", "libx265", "libx265,bf=4",
        "mpeg2video", "mpeg4",
    ),
    "mpeg": ("mpeg1video", "mpeg2video"),
    "mpegts": ("libx264", "libx264,bf=4", "libx265", "mpeg2video"),
    "mxf": ("mpeg2video",),
    "nut": ("ffv1", "libx264"),
    "rm": ("rv20",),
    "swf": ("flv",),
    "vob": ("mpeg2video",),
    "webm": ("libvpx", "libvpx-vp9"),
}  # fmt: skip
_PAIRS = [(container, codec) for container, codecs in _SAMPLES.items() for codec in codecs]


def _write(
    path: Path, container: str, codec: str, times: list[Fraction], options: dict[str, str], base: Fraction
) -> None:
    with av.open(str(path), "w", format=container) as output:
        stream = output.add_stream(codec, rate=25, options=options)
        stream.codec_context.time_base = base
        stream.width, stream.height = (128, 96) if codec == "h263" else (64, 48)
        known = [known.name for known in stream.codec.video_formats or ()] or ["yuv420p"]
        stream.pix_fmt = next((name for name in _FORMATS if name in known), known[0])
        for number, time in enumerate(times):
            image = np.full((stream.height, stream.width, 3), _DARKEST + _STEP * number, np.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.time_base = base
            frame.pts = round(time / base)
            output.mux(stream.encode(frame))
        output.mux(stream.encode())


def _check(path: Path, times: list[Fraction]) -> None:
    said: list[str] = []
    batches = list(iter_frames(path, rate=None, short_side=None, on_damage=said.append))
    list(iter_frames(path, rate=2.0, on_damage=said.append))
    assert said == []
    read = np.concatenate([batch.timestamps for batch in batches])
    gray = np.concatenate([batch.images.mean((1, 2, 3)) for batch in batches])
    np.testing.assert_allclose(read, [float(time - times[0]) for time in times], atol=0.0011)
    np.testing.assert_allclose(gray, _DARKEST + _STEP * np.arange(len(times)), atol=_STEP / 2)


@pytest.mark.parametrize(("container", "codec"), _PAIRS, ids=[" ".join(pair) for pair in _PAIRS])
def test_every_frame_is_read_at_its_time(container: str, codec: str, tmp_path: Path) -> None:
    name, *options = codec.split(",")
    times = [Fraction(number, 25) for number in range(_FRAMES)]
    path = tmp_path / f"sample.{container}"
    _write(path, container, name, times, dict(option.split("=") for option in options), Fraction(1, 25))
    _check(path, times)


@pytest.mark.parametrize(("container", "codec"), [("mp4", "libx264"), ("matroska", "libvpx-vp9"), ("mov", "prores_ks")])
def test_frames_of_irregular_length_keep_their_times(container: str, codec: str, tmp_path: Path) -> None:
    steps = [40, 40, 200, 20, 40, 1000, 60, 40] * 3
    times = [Fraction(sum(steps[:number]), 1000) for number in range(_FRAMES)]
    path = tmp_path / f"irregular.{container}"
    _write(path, container, codec, times, {}, Fraction(1, 1000))
    _check(path, times)
