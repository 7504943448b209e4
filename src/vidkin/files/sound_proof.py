"""A proof that all sound of a file is in another file, at the times that the frames say."""

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

# Blocks that are measured at a time, 8 s, and the samples they need.
_CHUNK_BLOCKS = 64
_STEP = BLOCK_STEP * HOP
_CHUNK_SAMPLES = (_CHUNK_BLOCKS - 1) * _STEP + (BLOCK_FRAMES - 1) * HOP + WINDOW
# Level, dB of full scale, below which there is silence; a sine that peaks at -60 dB has a mean square of -63 dB.
_SILENCE = -63.0
# Sound this far below the loud parts of its track, dB, is not compared: encoders leave it out.
_INAUDIBLE = 40.0
# Residuals of the same sound are up to about twice the typical one of the pair, which compression explains: its median
# is .00 to .23 for encoders at 48 kb/s and up, while unrelated sound has .75 and more. Where most of a pair differs its
# median says nothing, so there is a largest one.
_RESIDUAL_FACTOR, _RESIDUAL_MARGIN, _MAX_TYPICAL = 2.0, 0.12, 0.2
# Kept sound this far below its usual level, dB, is muted.
_MUTED = 20.0
# Blocks in a row that differ: half a second is in three blocks, while the joint of two stretches is in two.
_MIN_BLOCKS = 3
# Share of a block that has to differ for the block to differ.
_PART = 0.3
# Seconds of sound beyond the frames that are no loss, and the shortest sound that counts at all.
_MIN_SECONDS = 0.5
# Findings that are closer than this, seconds, are one.
_NEAR = 1.0
# A track of which more than this share differs is not in the other one.
_UNRELATED = 0.8
# Stereo whose sides differ by less than this, dB below its sum, sounds like mono; sides that lose this much are gone.
_STEREO, _LOST_SIDE = -15.0, 10.0
# Seconds of stereo in a row that must have lost its sides: encoders leave them out for moments.
_MIN_LOST_SIDES = 5.0
_MAX_FINDINGS = 12

Levels = NDArray[np.float16]


class _TrackBlocks:
    """Levels of the blocks of a track of the removed file, dB: of its sum, and of the difference of left and right."""

    def __init__(self) -> None:
        self.level: list[Levels] = []
        self.side: list[Levels] = []


class _PairBlocks:
    """How the blocks of a removed track are in a track of the kept file, and the delay found last, in samples."""

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
    """Prove that every sound track of a file is in a track of another file, over its whole length.

    Both are decoded once, side by side, unless they hold the same packets. A track that is silent needs no proof.
    Volume, compression, sample rate, a delay of up to .4 s and slow drift make no difference. Sound of another speed is
    compared as played at that speed, with its pitch changed.

    Args:
        kept: The file that stays.
        removed: The file that may be removed.
        time_map: Where stretches of the removed file lie in the kept file. The sound between, before and after
            stretches is looked for where the nearest stretch before it, or the first one, would have it.
        on_progress: Receives the share of the work that is done, 0 to 1.

    Returns:
        What the kept file lacks; empty if it has all sound.

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
        ours = stack.enter_context(TracksReader(removed))
        theirs = stack.enter_context(TracksReader(kept)) if has_sound else None
        findings: list[Finding] = []
        left = [track.number for track in ours.tracks if track.number not in same]
        if left:
            findings = _prove_by_waveform(ours, theirs, pieces, left, report)
        if theirs is not None:
            findings += _lost_languages(ours.tracks, theirs.tracks)
        report(1.0)
        return tuple(findings)


def is_audible(path: PathLike) -> bool:
    """Whether any sound track of a file is louder than silence for half a second in all: what is compared of it.

    Raises:
        MediaError: The file cannot be read, or has no sound.
    """
    with TracksReader(path) as reader:
        seconds = np.zeros(len(reader.tracks))
        first = reader.first
        while reader.has_more(first):
            samples, _ = reader.read(first, _CHUNK_SAMPLES)
            for number, (middle, side) in enumerate(map(_mix, samples)):
                level = np.maximum(_levels(middle), _levels(side))[:_CHUNK_BLOCKS]
                seconds[number] += (level > _SILENCE).sum() * STEP_SECONDS
            if seconds.max() >= _MIN_SECONDS:
                return True
            first += _CHUNK_BLOCKS * _STEP
    return False


def _lost_languages(ours: Sequence[SoundTrack], theirs: Sequence[SoundTrack]) -> list[Finding]:
    """Languages that no kept track is marked with, where they tell several tracks apart.

    The mark of a single track is no loss: its language is heard.
    """
    languages = {language_name(track.language) for track in ours} - {""}
    lost = languages - {language_name(track.language) for track in theirs}
    if len(languages) < 2:
        return []
    return [
        Finding("sound", f"a track marked as {name}, the kept file has none", certainty=0.5) for name in sorted(lost)
    ]


def _prove_by_waveform(
    ours: TracksReader,
    theirs: TracksReader | None,
    pieces: Sequence[tuple[float, float, TimeStretch]],
    numbers: Sequence[int],
    report: Callable[[float], None],
) -> list[Finding]:
    """Findings about the tracks with these numbers."""
    tracks = {number: _TrackBlocks() for number in numbers}
    kept_numbers = range(0 if theirs is None else len(theirs.tracks))
    pairs = {(number, other): _PairBlocks() for number in numbers for other in kept_numbers}
    for first, blocks, stretch in _chunks(ours, pieces):
        samples, _ = ours.read(first, _CHUNK_SAMPLES)
        kept_samples = [] if theirs is None else _read_kept(theirs, first, stretch)
        for number, track in tracks.items():
            middle, side = _mix(samples[number])
            level = _levels(middle)
            is_silent = bool((level < _SILENCE).all())
            track.level.append(level[:blocks])
            track.side.append(_levels(side)[:blocks])
            for other in kept_numbers:
                _compare(pairs[number, other], middle, kept_samples[other], blocks, is_silent=is_silent)
        report(min(1.0, first / SOUND_RATE / max(ours.duration, 1.0)))
    findings: list[Finding] = []
    for number in numbers:
        candidates = {other: pairs[number, other] for other in kept_numbers}
        findings += _judge(ours, number, tracks[number], candidates, pieces)
    return findings


def _chunks(
    ours: TracksReader, pieces: Sequence[tuple[float, float, TimeStretch]]
) -> Iterator[tuple[int, int, TimeStretch]]:
    """First sample, number of blocks and stretch of each chunk, in order; blocks follow each other without gaps."""
    first = ours.first
    for _, end, stretch in pieces:
        while ours.has_more(first):
            blocks = _CHUNK_BLOCKS
            if end != float("inf"):
                blocks = min(blocks, round((end * SOUND_RATE - first) / _STEP))
            if blocks <= 0:
                break
            yield first, blocks, stretch
            first += blocks * _STEP


def _read_kept(theirs: TracksReader, first: int, stretch: TimeStretch) -> list[NDArray[np.float32]]:
    """Samples [S, 2] of the kept tracks where the chunk from `first` lies, with `MAX_DELAY` more on either side."""
    count = _CHUNK_SAMPLES + 2 * MAX_DELAY
    start = round(stretch.kept_time((first - MAX_DELAY) / SOUND_RATE) * SOUND_RATE)
    length = round(count * stretch.speed)
    samples, _ = theirs.read(start, length)
    return samples if length == count else [_resample(track, count) for track in samples]


def _resample(samples: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    spectrum = np.fft.rfft(samples, axis=0)
    resampled = np.fft.irfft(spectrum[: count // 2 + 1], count, axis=0) * (count / len(samples))
    return resampled.astype(np.float32)


def _mix(samples: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Half the sum and half the difference of left and right."""
    half = np.float32(0.5)
    return half * (samples[:, 0] + samples[:, 1]), half * (samples[:, 0] - samples[:, 1])


def _levels(samples: NDArray[np.float32]) -> Levels:
    levels: Levels = (10 * np.log10(measure_levels(samples) + 1e-12)).astype(np.float16)
    return levels


def _compare(
    pair: _PairBlocks, middle: NDArray[np.float32], kept: NDArray[np.float32], blocks: int, *, is_silent: bool
) -> None:
    """Measure the blocks of a chunk at the delay of this chunk and at that of the chunk before, and take the better."""
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
    # Where the delay changes within the chunk, each block has the better one.
    pair.residual.append(residuals.min(axis=0)[:blocks].astype(np.float16))
    pair.kept_level.append(_levels(kept_middle[aligned[best]])[:blocks])
    pair.kept_side.append(_levels(kept_side[aligned[best]])[:blocks])


def _judge(
    ours: TracksReader,
    number: int,
    blocks: _TrackBlocks,
    candidates: dict[int, _PairBlocks],
    pieces: Sequence[tuple[float, float, TimeStretch]],
) -> list[Finding]:
    """Findings about one track of the removed file."""
    track = ours.tracks[number]
    level = _join(blocks.level)
    side = _join(blocks.side)
    sounding = np.maximum(level, side) > _SILENCE
    if sounding.sum() * STEP_SECONDS < _MIN_SECONDS:
        return []
    loud = sounding & (level > np.quantile(level[sounding], 0.9) - _INAUDIBLE)
    name = _track_name(track, ours.tracks)
    if not candidates:
        return [Finding("sound", f"{name}, the kept file has no sound")]
    if not loud.any():
        # Left and right cancel out: there is nothing to compare by their sum.
        return [Finding("sound", f"{name} has opposite sides, which were not compared", certainty=0.5)]
    differing = {other: _differing(pair, level, loud) for other, pair in candidates.items()}
    best = min(differing, key=lambda other: int(differing[other].sum()))
    differs = differing[best]
    if differs.sum() > _UNRELATED * loud.sum():
        where = "in no track of the kept file" if len(candidates) > 1 else "not in the kept file"
        return [Finding("sound", f"{name} is {where}")]
    pair = candidates[best]
    first = ours.first / SOUND_RATE
    is_muted = _is_muted(pair, level, loud & ~differs) | (_join(pair.kept_level) < _SILENCE)
    runs = list(_runs(differs, _joints(pieces, first)))
    findings = _describe(runs, is_muted, int(np.flatnonzero(loud)[-1]), name, (first, ours.end(number)))
    kept_width = _join(pair.kept_side) - _join(pair.kept_level)
    if _has_lost_sides(side - level, kept_width, loud & ~differs & (side > _SILENCE)):
        findings.append(Finding("sound", f"{name} differs left and right, the kept file's is mono"))
    return findings


def _has_lost_sides(
    width: NDArray[np.float32], kept_width: NDArray[np.float32], is_compared: NDArray[np.bool_]
) -> bool:
    """Whether left and right are alike for a while in the kept sound and not in the removed sound, by side to sum."""
    stereo = is_compared & (width > _STEREO)
    lost = (width - kept_width > _LOST_SIDE)[stereo]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lost.astype(np.int8), [0]])))
    longest = int((edges[1::2] - edges[::2]).max(initial=0))
    return longest * STEP_SECONDS >= min(_MIN_LOST_SIDES, max(len(lost) * STEP_SECONDS / 2, _MIN_SECONDS))


def _join(parts: Sequence[Levels]) -> NDArray[np.float32]:
    return np.concatenate(parts).astype(np.float32)


def _differing(pair: _PairBlocks, level: NDArray[np.float32], loud: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Blocks of a track that the kept track does not have."""
    residual = _join(pair.residual)
    typical = min(float(np.median(residual[loud])), _MAX_TYPICAL)
    differs = residual > _RESIDUAL_MARGIN + _RESIDUAL_FACTOR * typical
    return loud & (differs | _is_muted(pair, level, loud & ~differs))


def _is_muted(pair: _PairBlocks, level: NDArray[np.float32], same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Blocks in which the kept sound is far quieter than it is where both are the same."""
    change = _join(pair.kept_level) - level
    usual = float(np.median(change[same])) if same.any() else 0.0
    return change < usual - _MUTED


def _describe(
    runs: Sequence[tuple[int, int]], is_muted: NDArray[np.bool_], last: int, name: str, times: tuple[float, float]
) -> list[Finding]:
    """A finding for each run of differing blocks; times are those of the first block and of the end of the track."""
    findings = []
    for start, end in runs:
        # A block differs if a good part of it does.
        begin = max(times[0] + start * STEP_SECONDS + _PART * BLOCK_SECONDS, 0.0)
        finish = max(min(times[0] + end * STEP_SECONDS + (1 - _PART) * BLOCK_SECONDS, times[1]), begin)
        has_muted = bool(is_muted[start + 1 : end].mean() > 0.5)
        if end >= last - 1 and has_muted:
            finish = max(times[1], begin)
            text = f"{name} goes on {finish - begin:.1f} s longer"
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


def _runs(differs: NDArray[np.bool_], joints: Sequence[float]) -> Iterator[tuple[int, int]]:
    """First and last block of each run, near runs joined; joints are numbers of blocks at which the kept file jumps."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], differs.astype(np.int8), [0]])))
    runs: list[list[int]] = []
    for start, end in zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True):
        # Blocks that hold a joint have some of both sides.
        has_joint = any(start <= joint <= end + 2 for joint in joints)
        if end - start + 1 < _MIN_BLOCKS + has_joint:
            continue
        if runs and (start - runs[-1][1]) * STEP_SECONDS < _NEAR:
            runs[-1][1] = end
        else:
            runs.append([start, end])
    for start, end in runs:
        yield start, end


def _joints(pieces: Sequence[tuple[float, float, TimeStretch]], first: float) -> list[float]:
    """Numbers of the blocks at which the next stretch does not go on where the one before it ends."""
    return [
        (start - first) / STEP_SECONDS
        for (_, _, before), (start, _, after) in pairwise(pieces)
        if abs(before.kept_time(start) - after.kept_time(start)) > HOP / SOUND_RATE
    ]


def _track_name(track: SoundTrack, tracks: Sequence[SoundTrack]) -> str:
    if len(tracks) == 1:
        return "its sound"
    language = language_name(track.language)
    return f"the sound of the {language} track" if language else f"the sound of track {track.number + 1}"
