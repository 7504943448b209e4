"""Whether a file is whole: what the lengths in it say, in one line."""

from __future__ import annotations

import os
from collections.abc import Callable

from vidkin._base.files import PathLike, open_regular_file
from vidkin.errors import MediaError
from vidkin.media.containers import EXAMINERS, MOST_DAMAGED
from vidkin.media.matroska import examine_matroska
from vidkin.media.reader import demux, open_video

# A time that is later than the one before by more seconds than this is itself damaged.
_LONGEST_STEP = 60.0


def find_damage(path: PathLike, container: str, *, on_read: Callable[[], None] = lambda: None) -> str:
    """Describe damage to the structure of a file in one line; "" if there is none, or if its format states no lengths.

    Files that are not whole: parts do not begin where the one before ends, checksums are wrong (Matroska), the file is
    shorter than it says, or its index names frames that are not there (MP4, AVI). Examined are MP4 and QuickTime,
    Matroska and WebM, AVI, ASF (WMV), FLV, MPEG program and transport streams, GIF. Nothing is decoded, and what lies
    inside a part is not examined.

    Args:
        path: The file.
        container: Name of its format, `VideoInfo.container`.
        on_read: Callback for every part read.

    Raises:
        OSError: The file cannot be read.
    """
    names = container.split(",")
    examine = examine_matroska if names[0] == "matroska" else EXAMINERS.get(names[0])
    if examine is None:
        return ""
    with open_regular_file(path) as file:
        findings = examine(file, os.fstat(file.fileno()).st_size, on_read)
    sentences = []
    if findings.parts:
        count, total = (
            f"{findings.parts:,}",
            f" of about {findings.total:,}" if findings.total >= findings.parts else "",
        )
        if findings.parts > MOST_DAMAGED:
            count, total = f"more than {MOST_DAMAGED:,}", ""
        verb = "part" if count == "1" and not total else "parts"
        seconds = None if findings.first is None else _time_before(path, findings.first, on_read)
        where = "" if seconds is None else f", first at {seconds:.1f} s"
        sentences.append(f"the file is damaged: {count}{total} {verb} changed after they were written{where}")
        if findings.missing:
            sentences.append(f"it lacks {findings.missing:,} bytes or more")
    elif findings.missing:
        sentences.append(f"the file is cut off: {findings.missing:,} bytes or more are missing at its end")
    if findings.index and not sentences:
        sentences.append(f"the file's index is damaged: {findings.index}")
    return "; ".join(sentences)


def _time_before(path: PathLike, place: int, on_read: Callable[[], None]) -> float | None:
    """Seconds from the first picture to the last one that is stored before this byte; None if it cannot be known."""
    first, latest = None, 0.0
    try:
        with open_video(path, threads=1) as (container, stream):
            for packet in demux(container, stream):
                on_read()
                stamp = packet.dts if packet.pts is None else packet.pts
                if stamp is None or packet.time_base is None:
                    continue
                seconds = float(stamp * packet.time_base)
                first = seconds if first is None else first
                if packet.pos is not None and packet.pos >= place:
                    return latest
                if seconds - first < latest + _LONGEST_STEP:
                    latest = max(latest, seconds - first)
    except MediaError:
        return None
    return latest if first is not None else None
