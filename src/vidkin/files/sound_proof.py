"""Prove that all audio in one file is in another file, at the times given by the frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin.files.findings import Finding
from vidkin.files.languages import language_name
from vidkin.files.sound_comparison import (
    BLOCK_FRAMES,
    BLOCK_SECONDS,
    BLOCK_STEP,
    HOP,
    MAX_DELAY,
    STEP_SECONDS,
    WINDOW,
    find_delay,
    measure_levels,
    measure_residuals,
)
from vidkin.files.sound_packets import find_same_packets
from vidkin.files.sound_reading import TracksReader
from vidkin.files.stretches import TimeStretch, describe_range, extend_stretches
from vidkin.media.probing import probe
from vidkin.media.sound import SOUND_RATE, SoundTrack

# Number of blocks to measure at a time (8 s), and the samples they need.
_CHUNK_BLOCKS = 64
_STEP = BLOCK_STEP * HOP
_CHUNK_SAMPLES = (_CHUNK_BLOCKS - 1) * _STEP + (BLOCK_FRAMES - 1) * HOP + WINDOW
# Level of silence in dB relative to full scale; a sine that peaks at -60 dB has a mean square of -63 dB.
_SILENCE = -63.0
# Audio this many dB below the loud parts of its track is not compared, because encoders drop it.
_INAUDIBLE = 40.0
# Compression causes residuals of up to about twice the median of a pair, which is 0.00 to 0.23 at 48 kb/s and above;
# unrelated audio has 0.75 or more. The median is capped, because it is meaningless if most of a pair differs.
_RESIDUAL_FACTOR, _RESIDUAL_MARGIN, _MAX_TYPICAL = 2.0, 0.12, 0.2
# Kept audio this many dB below its typical level is muted.
_MUTED_BELOW = 20.0
# Minimum number of consecutive differing blocks: half a second spans three blocks, while the joint between two
# stretches affects only two.
_MIN_BLOCKS = 3
# Minimum fraction of a block that must differ for the whole block to count as different.
_MIN_PART = 0.3
# Minimum duration in seconds of audio that counts.
_MIN_SECONDS = 0.5
# Findings separated by less than this many seconds are merged.
_MAX_GAP = 1.0
# If a larger fraction of a track differs, the track is not in the kept track at all.
_MAX_DIFFERING = 0.8
# Level of the difference between left and right, in dB relative to their sum, below which stereo sounds like mono, and
# the drop in this level that means that stereo was lost.
_STEREO, _MIN_SIDE_LOSS = -15.0, 10.0
# Minimum duration in seconds for which stereo must be missing; encoders drop it for short moments.
_MIN_LOST_SIDES = 5.0
_MAX_FINDINGS = 12

Levels = NDArray[np.float16]


class _TrackBlocks:
    """Levels in dB of the blocks of a removed track: of the sum and of the difference of left and right."""

    def __init__(self) -> None:
        self.level: list[Levels] = []
        self.side: list[Levels] = []


class _PairBlocks:
    """Comparison of the blocks of a removed and a kept track, with the most recent delay in samples."""

    def __init__(self) -> None:
        self.kept_level: list[Levels] = []
        self.kept_side: list[Levels] = []
        self.residual: list[Levels] = []
        self.delay: int | None = None


def prove_sound(
    kept: PathLike,
    removed: PathLike,
    time_map: Sequence[TimeStretch],
    *,
    on_progress: Callable[[float], None] | None = None,
) -> tuple[Finding, ...]:
    """Prove that every audio track of one file is in a track of another file, over its whole length.

    Both files are decoded once, in parallel, unless they contain the same packets. Silent tracks need no proof.
    Volume, compression, sample rate, a delay of up to 0.4 s and slow drift do not matter. If a stretch plays at another
    speed, its audio is compared at that speed, with changed pitch.

    Args:
        kept: The file that stays.
        removed: The file that may be removed.
        time_map: Stretches of the removed file in the kept file. Each stretch also covers the audio up to the next
            one; the first also covers all audio before it.
        on_progress: Callback that receives the completed fraction of the work, 0 to 1.

    Returns:
        Findings about missing audio; empty if the kept file has all of it.

    Raises:
        InvalidArgumentError: `time_map` is empty.
        MediaError: One of the files cannot be read.
    """
    pieces = list(extend_stretches(time_map))
    report = on_progress or (lambda share: None)
    if not probe(removed).has_audio:
        report(1.0)
        return ()
    has_sound = probe(kept).has_audio
    same = find_same_packets(kept, removed, pieces) if has_sound else {}
    with ExitStack() as stack:
        removed_reader = stack.enter_context(TracksReader(removed))
        kept_reader = stack.enter_context(TracksReader(kept)) if has_sound else None
        findings: list[Finding] = []
        left = [track.number for track in removed_reader.tracks if track.number not in same]
        if left:
            findings = _prove_by_waveform(removed_reader, kept_reader, pieces, left, report)
        if kept_reader is not None:
            findings += _find_lost_languages(removed_reader.tracks, kept_reader.tracks)
        report(1.0)
        return tuple(findings)


def is_audible(path: PathLike) -> bool:
    """Whether any audio track of a file has at least half a second of audible sound in total.

    Raises:
        MediaError: The file cannot be read, or has no audio.
    """
    with TracksReader(path) as reader:
        seconds = np.zeros(len(reader.tracks))
        first = reader.first
        while reader.has_more(first):
            samples, _ = reader.read(first, _CHUNK_SAMPLES)
            for number, (middle, side) in enumerate(map(_mix, samples)):
                level = np.maximum(_measure_decibels(middle), _measure_decibels(side))[:_CHUNK_BLOCKS]
                seconds[number] += (level > _SILENCE).sum() * STEP_SECONDS
            if seconds.max() >= _MIN_SECONDS:
                return True
            first += _CHUNK_BLOCKS * _STEP
    return False


def _find_lost_languages(removed_reader: Sequence[SoundTrack], kept_reader: Sequence[SoundTrack]) -> list[Finding]:
    """Report languages that no kept track states, if the removed tracks state several.

    If they state only one, losing its label is harmless, because the language can be heard.
    """
    languages = {language_name(track.language) for track in removed_reader} - {""}
    lost = languages - {language_name(track.language) for track in kept_reader}
    if len(languages) < 2:
        return []
    return [
        Finding("sound", f"a track marked as {name}, the kept file has none", certainty=0.5) for name in sorted(lost)
    ]


def _prove_by_waveform(
    removed_reader: TracksReader,
    kept_reader: TracksReader | None,
    pieces: Sequence[tuple[float, float, TimeStretch]],
    numbers: Sequence[int],
    report: Callable[[float], None],
) -> list[Finding]:
    """Compare the tracks with these indices by their waveforms."""
    tracks = {number: _TrackBlocks() for number in numbers}
    kept_numbers = range(0 if kept_reader is None else len(kept_reader.tracks))
    pairs = {(number, other): _PairBlocks() for number in numbers for other in kept_numbers}
    for first, blocks, stretch in _iter_chunks(removed_reader, pieces):
        samples, _ = removed_reader.read(first, _CHUNK_SAMPLES)
        kept_samples = [] if kept_reader is None else _read_kept(kept_reader, first, stretch)
        for number, track in tracks.items():
            middle, side = _mix(samples[number])
            level = _measure_decibels(middle)
            is_silent = bool((level < _SILENCE).all())
            track.level.append(level[:blocks])
            track.side.append(_measure_decibels(side)[:blocks])
            for other in kept_numbers:
                _compare(pairs[number, other], middle, kept_samples[other], blocks, is_silent=is_silent)
        report(min(1.0, first / SOUND_RATE / max(removed_reader.duration, 1.0)))
    findings: list[Finding] = []
    for number in numbers:
        candidates = {other: pairs[number, other] for other in kept_numbers}
        findings += _judge(removed_reader, number, tracks[number], candidates, pieces)
    return findings


def _iter_chunks(
    removed_reader: TracksReader, pieces: Sequence[tuple[float, float, TimeStretch]]
) -> Iterator[tuple[int, int, TimeStretch]]:
    """Yield the first sample, the number of blocks and the stretch of each chunk in order, without gaps."""
    first = removed_reader.first
    for _, end, stretch in pieces:
        while removed_reader.has_more(first):
            blocks = _CHUNK_BLOCKS
            if end != float("inf"):
                blocks = min(blocks, round((end * SOUND_RATE - first) / _STEP))
            if blocks <= 0:
                break
            yield first, blocks, stretch
            first += blocks * _STEP


def _read_kept(kept_reader: TracksReader, first: int, stretch: TimeStretch) -> list[NDArray[np.float32]]:
    """Read samples [S, 2] of the kept tracks for the chunk at `first`, with `MAX_DELAY` more on either side."""
    count = _CHUNK_SAMPLES + 2 * MAX_DELAY
    start = round(stretch.kept_time((first - MAX_DELAY) / SOUND_RATE) * SOUND_RATE)
    length = round(count * stretch.speed)
    samples, _ = kept_reader.read(start, length)
    return samples if length == count else [_resample(track, count) for track in samples]


def _resample(samples: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    spectrum = np.fft.rfft(samples, axis=0)
    resampled = np.fft.irfft(spectrum[: count // 2 + 1], count, axis=0) * (count / len(samples))
    return resampled.astype(np.float32)


def _mix(samples: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return half the sum and half the difference of left and right."""
    half = np.float32(0.5)
    return half * (samples[:, 0] + samples[:, 1]), half * (samples[:, 0] - samples[:, 1])


def _measure_decibels(samples: NDArray[np.float32]) -> Levels:
    levels: Levels = (10 * np.log10(measure_levels(samples) + 1e-12)).astype(np.float16)
    return levels


def _compare(
    pair: _PairBlocks, middle: NDArray[np.float32], kept: NDArray[np.float32], blocks: int, *, is_silent: bool
) -> None:
    """Compare the blocks of a chunk at the chunk's own delay and at the previous delay, and keep the better result."""
    kept_middle, kept_side = _mix(kept)
    delays = [] if is_silent else [find_delay(middle, kept_middle)]
    if pair.delay is not None and pair.delay not in delays:
        delays.append(pair.delay)
    delays = delays or [0]
    aligned = [slice(MAX_DELAY + delay, MAX_DELAY + delay + len(middle)) for delay in delays]
    residuals = np.stack([measure_residuals(middle, kept_middle[part]) for part in aligned])
    best = int(residuals.mean(axis=1).argmin())
    if not is_silent:
        pair.delay = delays[best]
    # The delay can change within the chunk, so choose the better one for each block.
    pair.residual.append(residuals.min(axis=0)[:blocks].astype(np.float16))
    pair.kept_level.append(_measure_decibels(kept_middle[aligned[best]])[:blocks])
    pair.kept_side.append(_measure_decibels(kept_side[aligned[best]])[:blocks])


def _judge(
    removed_reader: TracksReader,
    number: int,
    blocks: _TrackBlocks,
    candidates: dict[int, _PairBlocks],
    pieces: Sequence[tuple[float, float, TimeStretch]],
) -> list[Finding]:
    """Judge one track of the removed file."""
    track = removed_reader.tracks[number]
    level = _join(blocks.level)
    side = _join(blocks.side)
    sounding = np.maximum(level, side) > _SILENCE
    if sounding.sum() * STEP_SECONDS < _MIN_SECONDS:
        return []
    loud = sounding & (level > np.quantile(level[sounding], 0.9) - _INAUDIBLE)
    name = _name_track(track, removed_reader.tracks)
    if not candidates:
        return [Finding("sound", f"{name}, the kept file has no sound")]
    if not loud.any():
        # Left and right cancel each other out, so their sum contains nothing to compare.
        return [Finding("sound", f"{name} has left and right in opposite phase, which was not compared", certainty=0.5)]
    differing = {other: _find_differing(pair, level, loud) for other, pair in candidates.items()}
    best = min(differing, key=lambda other: int(differing[other].sum()))
    differs = differing[best]
    if differs.sum() > _MAX_DIFFERING * loud.sum():
        where = "in no track of the kept file" if len(candidates) > 1 else "not in the kept file"
        return [Finding("sound", f"{name} is {where}")]
    pair = candidates[best]
    first = removed_reader.first / SOUND_RATE
    is_muted = _find_muted(pair, level, loud & ~differs) | (_join(pair.kept_level) < _SILENCE)
    runs = list(_find_runs(differs, _find_joints(pieces, first)))
    findings = _describe(runs, is_muted, int(np.flatnonzero(loud)[-1]), name, (first, removed_reader.end(number)))
    kept_width = _join(pair.kept_side) - _join(pair.kept_level)
    if _has_lost_sides(side - level, kept_width, loud & ~differs & (side > _SILENCE)):
        findings.append(Finding("sound", f"{name} is stereo, the kept file has it in mono"))
    return findings


def _has_lost_sides(
    width: NDArray[np.float32], kept_width: NDArray[np.float32], is_compared: NDArray[np.bool_]
) -> bool:
    """Whether the kept audio stays mono for a while where the removed audio is stereo."""
    stereo = is_compared & (width > _STEREO)
    lost = (width - kept_width > _MIN_SIDE_LOSS)[stereo]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lost.astype(np.int8), [0]])))
    longest = int((edges[1::2] - edges[::2]).max(initial=0))
    return longest * STEP_SECONDS >= min(_MIN_LOST_SIDES, max(len(lost) * STEP_SECONDS / 2, _MIN_SECONDS))


def _join(parts: Sequence[Levels]) -> NDArray[np.float32]:
    return np.concatenate(parts).astype(np.float32)


def _find_differing(pair: _PairBlocks, level: NDArray[np.float32], loud: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Find the loud blocks that are missing in the kept track."""
    residual = _join(pair.residual)
    typical = min(float(np.median(residual[loud])), _MAX_TYPICAL)
    differs = residual > _RESIDUAL_MARGIN + _RESIDUAL_FACTOR * typical
    return loud & (differs | _find_muted(pair, level, loud & ~differs))


def _find_muted(pair: _PairBlocks, level: NDArray[np.float32], same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Find blocks in which the kept audio is far quieter than is typical for the matching blocks."""
    change = _join(pair.kept_level) - level
    usual = float(np.median(change[same])) if same.any() else 0.0
    return change < usual - _MUTED_BELOW


def _describe(
    runs: Sequence[tuple[int, int]], is_muted: NDArray[np.bool_], last: int, name: str, times: tuple[float, float]
) -> list[Finding]:
    """Describe each run of differing blocks; `times` are the start of the first block and the end of the track."""
    findings = []
    for start, end in runs:
        # Only part of the first and last blocks must differ.
        begin = max(times[0] + start * STEP_SECONDS + _MIN_PART * BLOCK_SECONDS, 0.0)
        finish = max(min(times[0] + end * STEP_SECONDS + (1 - _MIN_PART) * BLOCK_SECONDS, times[1]), begin)
        has_muted = bool(is_muted[start + 1 : end].mean() > 0.5)
        if end >= last - 1 and has_muted:
            finish = max(times[1], begin)
            text = f"{name} is {finish - begin:.1f} s longer"
        elif has_muted:
            text = f"{describe_range(begin, finish)}: {name} is silent in the kept file"
        else:
            text = f"{describe_range(begin, finish)}: {name} is different"
        findings.append(Finding("sound", text, begin, finish))
    if len(findings) > _MAX_FINDINGS:
        rest = findings[_MAX_FINDINGS - 1 :]
        text = f"{name} is different in {len(rest)} more stretches"
        findings = [*findings[: _MAX_FINDINGS - 1], Finding("sound", text, rest[0].start, rest[-1].end)]
    return findings


def _find_runs(differs: NDArray[np.bool_], joints: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Yield the first and last block of each run, merging runs that are close together.

    ``joints`` are the blocks at which the time in the kept file jumps.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], differs.astype(np.int8), [0]])))
    runs: list[list[int]] = []
    for start, end in zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True):
        # Blocks at a joint mix the audio before and after it.
        has_joint = any(start <= joint <= end + 2 for joint in joints)
        if end - start + 1 < _MIN_BLOCKS + has_joint:
            continue
        if runs and (start - runs[-1][1]) * STEP_SECONDS < _MAX_GAP:
            runs[-1][1] = end
        else:
            runs.append([start, end])
    for start, end in runs:
        yield start, end


def _find_joints(pieces: Sequence[tuple[float, float, TimeStretch]], first: float) -> list[float]:
    """Find the blocks at which a stretch does not continue the previous one."""
    return [
        (start - first) / STEP_SECONDS
        for (_, _, before), (start, _, after) in pairwise(pieces)
        if abs(before.kept_time(start) - after.kept_time(start)) > HOP / SOUND_RATE
    ]


def _name_track(track: SoundTrack, tracks: Sequence[SoundTrack]) -> str:
    if len(tracks) == 1:
        return "its sound"
    language = language_name(track.language)
    return f"the sound of the {language} track" if language else f"the sound of track {track.number + 1}"
