"""Test videos with streams and tags as written by cameras and discs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av

from tests.support.videos import pan

MILLISECONDS = Fraction(1, 1000)

Line = tuple[float, float, str]
"""Start and end in seconds, and text of a subtitle."""


def write_streams(
    path: Path,
    *,
    subtitles: Sequence[tuple[str, Sequence[Line]]] = (),
    chapters: Sequence[str] = (),
    attachments: Mapping[str, bytes] | None = None,
    tags: Mapping[str, str] | None = None,
    video_tags: Mapping[str, str] | None = None,
    second_video: bool = False,
    subtitle_codec: str = "subrip",
) -> Path:
    """Write two seconds of video; each subtitle track is (language, lines)."""
    with av.open(
        str(path), "w", options={"movflags": "use_metadata_tags"} if path.suffix == ".mov" else {}
    ) as container:
        container.metadata.update(tags or {})
        videos = [container.add_stream("libx264", rate=10, options={"threads": "1"}) for _ in range(1 + second_video)]
        for video in videos:
            video.width, video.height, video.pix_fmt = 96, 64, "yuv420p"
        videos[0].metadata.update(video_tags or {})
        tracks = []
        for language, _ in subtitles:
            track = container.add_mux_stream(subtitle_codec)
            track.metadata["language"], track.time_base = language, MILLISECONDS
            tracks.append(track)
        for name, content in (attachments or {}).items():
            container.add_attachment(name, "application/octet-stream", content)
        if chapters:
            container.set_chapters([
                {
                    "id": number,
                    "start": number * 500,
                    "end": (number + 1) * 500,
                    "time_base": MILLISECONDS,
                    "metadata": {"title": title},
                }
                for number, title in enumerate(chapters)
            ])  # fmt: skip
        for number, image in enumerate(pan("coffee", 20, width=96, height=64)):
            for video in videos:
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 10)
                container.mux(video.encode(frame))
        for video in videos:
            container.mux(video.encode(None))
        for track, (_, lines) in zip(tracks, subtitles, strict=True):
            for start, end, text in lines:
                content = text.encode()
                if subtitle_codec == "mov_text":
                    content = len(content).to_bytes(2, "big") + content
                packet = av.Packet(content)
                packet.stream, packet.time_base = track, MILLISECONDS
                packet.pts = packet.dts = round(start * 1000)
                packet.duration = round((end - start) * 1000)
                container.mux(packet)
    return path
