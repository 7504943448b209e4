"""Prove that all subtitle lines in one file are in another file, at the times given by the frames."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import av.error
from av.packet import Packet
from av.subtitles.subtitle import AssSubtitle

from vidkin._base.files import PathLike
from vidkin.files.findings import Finding
from vidkin.files.languages import language_name
from vidkin.files.stretches import TimeStretch, extend_stretches
from vidkin.media.reader import demux, is_refusal, media_error, open_video

# Maximum offset of a line relative to the frames in seconds; converters round, and joined files shift slightly.
_MAX_DELAY = 1.0
# Minimum fraction of lines that must be present; subtitle credits vary between copies.
_MIN_FRACTION = 0.98
# Styles, drawings and positions within lines, which not all formats can store.
_MARKUP = re.compile(r"\{[^}]*\}|<[^>]*>|\\[Nnh]")


@dataclass(frozen=True, slots=True)
class _Track:
    language: str
    lines: tuple[tuple[float, str], ...]


def prove_subtitles(kept: PathLike, removed: PathLike, time_map: Sequence[TimeStretch]) -> tuple[Finding, ...]:
    """Prove that the lines of every subtitle track in one file are in a track of another file.

    Text in any format is compared without markup; images are compared by their compressed content. Tracks in a
    language that the kept file lacks are reported by `vidkin.files.facts.compare_facts`.

    Args:
        kept: The file that stays.
        removed: The file that may be removed.
        time_map: Stretches of the removed file in the kept file.

    Returns:
        Findings about missing lines; empty if the kept file has all of them.

    Raises:
        InvalidArgumentError: `time_map` is empty.
        MediaError: One of the files cannot be read.
    """
    pieces = list(extend_stretches(time_map))
    removed_tracks = _read_tracks(removed)
    kept_tracks = _read_tracks(kept) if any(track.lines for track in removed_tracks) else []
    findings = []
    for track in removed_tracks:
        candidates = [other for other in kept_tracks if not track.language or other.language in ("", track.language)]
        if not track.lines or not candidates:
            continue
        shares = [_measure_fraction(track, other, pieces) for other in candidates]
        if max(shares) < _MIN_FRACTION:
            missing = round((1 - max(shares)) * len(track.lines))
            name = f"the subtitles in {track.language}" if track.language else "its subtitles"
            text = f"{name} have {missing} of {len(track.lines)} lines that the kept file lacks"
            findings.append(Finding("subtitles", text))
    return tuple(findings)


def _read_tracks(path: PathLike) -> list[_Track]:
    name = os.fspath(path)
    with open_video(name, threads=1) as (container, video):
        streams = container.streams.subtitles
        if not streams:
            return []
        origin = float((video.start_time or 0) * (video.time_base or 0))
        lines: dict[int, list[tuple[float, str]]] = {stream.index: [] for stream in streams}
        try:
            for packet in demux(container, *streams):
                if not packet.size or packet.pts is None or packet.time_base is None:
                    continue
                text = _read_text(packet)
                if text:
                    lines[packet.stream_index].append((float(packet.pts * packet.time_base) - origin, text))
        except av.error.FFmpegError as error:
            if is_refusal(name, error):
                raise media_error(name, error) from error
            # Players cannot show lines after the damage either, so they are not counted.
        return [
            _Track(language_name(stream.metadata.get("language", "")), tuple(lines[stream.index])) for stream in streams
        ]


def _read_text(packet: Packet[Any]) -> str:
    """Read the text of a packet, or its content if it is an image; empty for the gaps that MP4 stores as packets."""
    content = bytes(packet)
    if getattr(packet.stream, "codec_context", None) is None:
        return content.hex()
    try:
        decoded = packet.decode()
    except (av.error.FFmpegError, ValueError):
        return content.hex()
    words = [rect.dialogue for rect in decoded if isinstance(rect, AssSubtitle)]
    if words or len(content) <= 2:
        text = b" ".join(words).decode("utf-8", "replace")
        return " ".join(_MARKUP.sub(" ", text).split())
    return content.hex()


def _measure_fraction(track: _Track, other: _Track, pieces: Sequence[tuple[float, float, TimeStretch]]) -> float:
    """Compute the fraction of a track's lines that another track has at the same times."""
    times: dict[str, list[float]] = {text: [] for _, text in other.lines}
    for time, text in other.lines:
        times[text].append(time)
    found = 0
    for time, text in track.lines:
        stretch = next(stretch for start, end, stretch in pieces if start <= time < end)
        at = stretch.kept_time(time)
        found += any(abs(at - known) <= _MAX_DELAY for known in times.get(text, ()))
    return found / len(track.lines)
