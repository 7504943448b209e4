"""Prove, by decoding two files, that one contains everything in the other, which can then be removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, hash_file
from vidkin.errors import MediaError
from vidkin.files.enlargement import judge_detail
from vidkin.files.facts import FileFacts, compare_facts, read_facts
from vidkin.files.findings import Finding
from vidkin.files.picture_proof import PictureProof, prove_picture
from vidkin.files.proof_record import Proof
from vidkin.files.small_frames import RATE, REMOVED_RATE, SmallFrames
from vidkin.files.sound_proof import is_audible, prove_sound
from vidkin.files.stretches import TimeStretch
from vidkin.files.subtitle_proof import prove_subtitles
from vidkin.media.decode import iter_frames_at
from vidkin.media.reader import demux, open_video
from vidkin.similarity import Segment

_Value = TypeVar("_Value")

# Minimum ratio of pixel counts for the same part of the scene; smaller ratios come from rounding and cropping.
_MIN_PIXEL_RATIO = 1.1
# Ratio of bits per pixel, for the same codec, above which a copy of the same size has better quality.
_MIN_BIT_RATIO = 1.5
# Number of moments at which detail is compared at full size.
_DETAIL_MOMENTS = 8
# Maximum number of files whose frames are cached on disk; a group is proven against one kept file after another.
_MAX_CACHED = 4
# Progress after decoding, and after comparing frames; audio and the rest follow.
_DECODED, _COMPARED = 0.7, 0.8


@dataclass(slots=True)
class Prover:
    """Proves pairs of files, and caches decoded frames so that a file in several pairs is decoded only once.

    Args:
        threads: Decoding threads per file; 0 for one per processor.
    """

    threads: int = 0
    _frames: dict[str, tuple[tuple[int, int], SmallFrames]] = field(default_factory=dict)
    _facts: dict[str, tuple[tuple[int, int], FileFacts]] = field(default_factory=dict)
    _hashes: dict[str, tuple[tuple[int, int], str]] = field(default_factory=dict)

    def prove(
        self,
        kept: PathLike,
        removed: PathLike,
        segments: Sequence[Segment],
        *,
        on_progress: Callable[[float], None] | None = None,
    ) -> Proof:
        """Prove that everything in ``removed`` is in ``kept``, or report what is missing.

        Frames are aligned using the match and compared about five times per second. Ends, audio tracks, subtitles,
        other streams, properties and tags are compared by content. An unreadable file or an empty match is a finding.

        Args:
            kept: The file that stays.
            removed: The file that may be removed.
            segments: Matching segments, with the removed file as the query.
            on_progress: Callback that receives the completed fraction of the work, 0 to 1.
        """
        names = os.fspath(kept), os.fspath(removed)
        contents = ("", "")
        try:
            contents = self._hash(names[0]), self._hash(names[1])
            if contents[0] == contents[1]:
                return Proof(*names, *contents)
            findings, stretches = self._compare(*names, segments, on_progress or _ignore)
            changed = [name for name, content in zip(names, contents, strict=True) if self._hash(name) != content]
            findings += [Finding("unreadable", f"{name} changed while it was being read") for name in changed]
        except MediaError as error:
            return Proof(*names, *contents, (Finding("unreadable", f"{error.path}: {error.cause}"),))
        return Proof(*names, *contents, tuple(findings), stretches)

    def facts(self, path: str) -> FileFacts:
        """Return the properties of a file.

        Raises:
            MediaError: The file cannot be read.
        """
        return _read_cached(self._facts, path, lambda: read_facts(path))

    def close(self) -> None:
        """Remove the frames cached on disk."""
        for _, frames in self._frames.values():
            frames.close()
        self._frames.clear()

    def _hash(self, path: str) -> str:
        return _read_cached(self._hashes, path, lambda: hash_file(path))

    def _open_small_frames(self, path: str, rate: float, on_progress: Callable[[float], None]) -> SmallFrames:
        length = max(self.facts(path).duration, 1e-3)

        def read() -> SmallFrames:
            while len(self._frames) >= _MAX_CACHED:
                self._frames.pop(next(iter(self._frames)))[1].close()
            return SmallFrames(
                path, rate=rate, threads=self.threads, on_read=lambda seconds: on_progress(seconds / length)
            )

        if path in self._frames and self._frames[path][1].rate < rate:
            self._frames.pop(path)[1].close()
        frames = _read_cached(self._frames, path, read)
        self._frames[path] = self._frames.pop(path)  # move to the end, as the least recently used file is evicted first
        return frames

    def _compare(
        self, kept: str, removed: str, segments: Sequence[Segment], on_progress: Callable[[float], None]
    ) -> tuple[list[Finding], tuple[TimeStretch, ...]]:
        facts = self.facts(kept), self.facts(removed)
        total = sum(one.duration for one in facts) or 1.0
        shares = [_DECODED * one.duration / total for one in facts]
        frames = (
            self._open_small_frames(kept, RATE, lambda share: on_progress(shares[0] * min(share, 1.0))),
            self._open_small_frames(
                removed, REMOVED_RATE, lambda share: on_progress(shares[0] + shares[1] * min(share, 1.0))
            ),
        )
        findings = [
            Finding("unreadable", f"{name}: {one.damage}")
            for name, one in zip((kept, removed), frames, strict=True)
            if one.damage
        ]
        picture = prove_picture(*frames, segments)
        findings += picture.findings
        on_progress(_COMPARED)
        speed = picture.stretches[0].speed if picture.stretches else 1.0
        # More pixels can come from borders; _compare_detail compares the pixels of the scene instead.
        findings += [one for one in compare_facts(*facts, speed=speed) if one.kind != "resolution"]
        if not picture.stretches:
            return findings, ()
        if picture.is_still and not (facts[1].sounds and is_audible(removed)):
            text = "without motion or sound, it may be another recording of the same scene"
            findings.append(Finding("picture", text, certainty=0.5))
        findings += self._compare_detail(kept, removed, picture)
        findings += prove_subtitles(kept, removed, picture.stretches)
        findings += prove_sound(
            kept,
            removed,
            picture.stretches,
            on_progress=lambda share: on_progress(_COMPARED + (1 - _COMPARED) * share),
        )
        return findings, picture.stretches

    def _compare_detail(self, kept: str, removed: str, picture: PictureProof) -> list[Finding]:
        """Report whether the kept file shows the scene with fewer pixels or with merely enlarged ones."""
        here, there = self.facts(removed), self.facts(kept)
        own = (here.width, here.height) if picture.pose.quarter % 2 == 0 else (here.height, here.width)
        # Size of the removed frame, in pixels of the kept frame.
        under = [picture.alignment.scale[axis] * (there.width, there.height)[axis] for axis in (0, 1)]
        ratio = own[0] * own[1] / max(under[0] * under[1], 1.0)
        if ratio > _MIN_PIXEL_RATIO:
            text = f"{own[0]}x{own[1]} pixels, the kept file has {round(under[0])}x{round(under[1])} for them"
            return [Finding("resolution", text)]
        if ratio >= 1 / _MIN_PIXEL_RATIO:
            rates = [_video_size(path) / max(one.duration, 1e-3) for path, one in ((removed, here), (kept, there))]
            left, top, right, bottom = picture.alignment.inside_box
            more = (right - left) * (bottom - top) * rates[0] / max(rates[1], 1e-9)
            if here.codec == there.codec and more > _MIN_BIT_RATIO:
                return [Finding("quality", f"{more:.1f} times the data for the same number of pixels")]
            return []
        if picture.findings:
            return []
        large, small = self._read_full_frames(kept, removed, picture)
        verdict = judge_detail(large, small)
        if verdict.verdict == "more":
            return []
        words = "is" if verdict.verdict == "enlarged" else "may be"
        text = f"the kept file {words} an enlargement: it has more pixels than this one but no more detail"
        return [Finding("enlargement", text, certainty=verdict.certainty)]

    def _read_full_frames(
        self, kept: str, removed: str, picture: PictureProof
    ) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.uint8]]]:
        """Read full-size frames of the kept and the removed file at a few moments, cropped to their common area."""
        longest = max(picture.stretches, key=lambda one: one.removed_end - one.removed_start)
        length = longest.removed_end - longest.removed_start
        times = longest.removed_start + length * (np.arange(_DETAIL_MOMENTS) + 0.5) / _DETAIL_MOMENTS
        small, seen = _read_at(removed, times, self.threads)
        large, _ = _read_at(kept, np.array([longest.kept_time(time) for time in seen.tolist()]) + 1e-3, self.threads)
        box = picture.alignment.inside_box
        inside = (
            picture.alignment.scale[0] * box[0] + picture.alignment.shift[0],
            picture.alignment.scale[1] * box[1] + picture.alignment.shift[1],
            picture.alignment.scale[0] * box[2] + picture.alignment.shift[0],
            picture.alignment.scale[1] * box[3] + picture.alignment.shift[1],
        )
        upright = [np.asarray(picture.pose.apply(image), np.uint8) for image in small]
        return [_crop(image, inside) for image in large], [_crop(image, box) for image in upright]


@check_arguments
def prove(
    kept: PathLike,
    removed: PathLike,
    segments: Sequence[Segment],
    *,
    threads: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> Proof:
    """Prove that everything in ``removed`` is in ``kept``; :meth:`Prover.prove` for a single pair."""
    prover = Prover(threads)
    try:
        return prover.prove(kept, removed, segments, on_progress=on_progress)
    finally:
        prover.close()


def _read_cached(held: dict[str, tuple[tuple[int, int], _Value]], path: str, read: Callable[[], _Value]) -> _Value:
    """Return the cached value for a file; read it again if the file's size or modification time has changed."""
    try:
        status = os.stat(path)
        state = status.st_size, status.st_mtime_ns
        if path not in held or held[path][0] != state:
            held[path] = state, read()
    except OSError as error:
        raise MediaError(path, f"cannot be read: {error.strerror or error}") from error
    return held[path][1]


def _read_at(
    path: str, times: NDArray[np.float64], threads: int
) -> tuple[list[NDArray[np.uint8]], NDArray[np.float64]]:
    """Read the frame on screen at each of these times, repeated if it stays, and the times at which the frames
    start."""
    times = np.maximum(times, 0.0)
    batches = list(iter_frames_at(path, np.unique(times).tolist(), batch=1, threads=threads))
    begins = np.concatenate([batch.timestamps for batch in batches])
    rows = np.clip(np.searchsorted(begins, times, side="right") - 1, 0, len(begins) - 1)
    return [batches[row].images[0] for row in rows.tolist()], begins[rows]


def _video_size(path: str) -> int:
    """Return the total size of the video track in bytes."""
    with open_video(path, threads=1) as (container, stream):
        return sum(packet.size for packet in demux(container, stream))


def _crop(image: NDArray[np.uint8], box: tuple[float, float, float, float]) -> NDArray[np.uint8]:
    height, width = image.shape[:2]
    left, right = (min(max(round(side * width), 0), width) for side in (box[0], box[2]))
    top, bottom = (min(max(round(side * height), 0), height) for side in (box[1], box[3]))
    return image[top:bottom, left:right]


def _ignore(share: float) -> None:
    """Ignore progress if the caller passes no callback."""
