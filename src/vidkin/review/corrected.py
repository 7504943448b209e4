"""Cuts corrected by a person, stored with an index; every cut kept, added or removed becomes a label."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from vidkin._base.atomic import write_text
from vidkin._base.plain_values import parse_json
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.review.labels import REVIEW_FOLDER, CutVerdict, Labels
from vidkin.shots import DetectedCut

__all__ = ["forget_corrected", "read_corrected", "write_corrected"]


def read_corrected(index: Path, video: str) -> tuple[DetectedCut, ...] | None:
    """Corrected cuts of a video; None if nobody corrected them.

    Args:
        index: Folder of the index.
        video: Content hash.

    Raises:
        CollectionDamagedError: The file is damaged.
    """
    path = _file(index, video)
    if not path.is_file():
        return None
    try:
        return tuple(DetectedCut(**row) for row in parse_json(path.read_text(encoding="utf-8"))["cuts"])
    except (ValueError, KeyError, TypeError, InvalidArgumentError) as error:
        raise CollectionDamagedError(
            f"{path} is damaged ({error}); delete it to see the cuts that were detected"
        ) from error


def write_corrected(
    index: Path, video: str, cuts: Sequence[DetectedCut], *, detected: Sequence[DetectedCut], source: str
) -> None:
    """Store corrected cuts: those in the list are labeled ``cut``, detected ones missing from it ``no cut``.

    Args:
        index: Folder of the index.
        video: Content hash.
        cuts: In order of frames.
        detected: Cuts that the detector reported.
        source: Source of the labels.

    Raises:
        CollectionLockedError: Another process is writing.
    """
    frames = {cut.frame for cut in cuts}
    verdicts: list[tuple[int, CutVerdict]] = [(frame, "cut") for frame in sorted(frames)]
    verdicts += [(cut.frame, "no cut") for cut in detected if cut.frame not in frames]
    Labels.judge_cuts(index, video, verdicts, source=source)
    write_text(_file(index, video), json.dumps({"cuts": [asdict(cut) for cut in cuts]}) + "\n")


def forget_corrected(index: Path, video: str) -> None:
    """Discard the corrections, so that the detected cuts are shown again; the labels stay."""
    _file(index, video).unlink(missing_ok=True)


def _file(index: Path, video: str) -> Path:
    if not video.replace("-", "").replace(":", "").isalnum():
        raise InvalidArgumentError(f"content hash must consist of letters and digits, got {video!r}")
    return index / REVIEW_FOLDER / f"shots-{video.replace(':', '-')}.json"
