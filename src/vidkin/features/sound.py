"""Describe audio by spectral landmarks, together with the frames of a video or on its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike
from vidkin.media.probing import ProbedVideo
from vidkin.media.sound import Listener, SoundTrack, iter_sound
from vidkin.similarity.sound import PITCHES, SOUND_RATE, STEP, STEPS_A_SECOND, STEPS_AN_OCTAVE, SoundFeatures

LANDMARKS_REVISION = 1
"""Increment this whenever the same audio would get different landmarks, so that stored ones are recomputed."""

_WINDOW, _MIN_FREQUENCY = 1024, 250.0

# Power of silence relative to a full-scale sine: -70 dB.
_FLOOR = 1e-7
# A landmark is the maximum within this many steps of time and pitch; its prominence is relative to the mean over this
# many steps around it.
_NEAR_TIME, _NEAR_PITCH, _AROUND = 5, 4, 32
# Maximum number of landmarks per second, and of strong landmarks, which form pairs.
_MAX_LANDMARKS, _MAX_STRONG = 24, 10
# Minimum prominence of a landmark (natural logarithm of a power ratio).
_MIN_PROMINENCE = 0.7
# Number of samples to process at a time.
_BLOCK = 32 * SOUND_RATE


def fingerprint_of_landmarks() -> str:
    """Return text that identifies all settings that landmarks depend on."""
    scale = (SOUND_RATE, _WINDOW, STEP, _MIN_FREQUENCY, STEPS_AN_OCTAVE, PITCHES, _FLOOR)
    return repr(
        (LANDMARKS_REVISION, scale, _NEAR_TIME, _NEAR_PITCH, _AROUND, _MAX_LANDMARKS, _MAX_STRONG, _MIN_PROMINENCE)
    )


@check_constructor
class Hearing:
    """Describes the audio tracks of a file while its frames are read.

    Args:
        video: The probed file, not read yet; None if the samples come from elsewhere.
    """

    def __init__(self, video: ProbedVideo | None = None) -> None:
        self._video = video
        self._tracks: list[SoundDescriber] = []
        if video is not None:
            video.open_listener = self.open_listener

    def open_listener(self, track: SoundTrack) -> Listener:
        """Create the listener that receives the samples of the next track."""
        self._tracks.append(SoundDescriber(track.language, is_default=track.is_default))
        return self._tracks[-1].push

    def finish(self) -> tuple[tuple[SoundFeatures, ...], str]:
        """Return the landmarks of all tracks, and one line about parts that could not be decoded (empty if there are
        none)."""
        failures = 0 if self._video is None else self._video.sound_failures
        return tuple(track.finish() for track in self._tracks), describe_failures(failures)


def describe_failures(failures: int) -> str:
    """Describe in one line how many audio packets could not be decoded; empty for 0."""
    if not failures:
        return ""
    return f"its sound is damaged: {failures} packet{'' if failures == 1 else 's'} skipped"


@check_arguments
def describe_sound(
    path: PathLike,
    *,
    start: float = 0.0,
    end: float | None = None,
    on_read: Callable[[], None] = lambda: None,
) -> tuple[SoundFeatures, ...]:
    """Compute landmarks of the audio tracks of a video or audio file; times count from the first frame or, if there are
    no frames, from the first sample.

    Args:
        path: The file.
        start, end: Part to describe in seconds; default: the whole file.
        on_read: Callback for each packet that is read.

    Raises:
        MediaError: The file cannot be read, or has no audio.
    """
    hearing = Hearing()
    iter_sound(path, hearing.open_listener, end=None if end is None else end + 1.0, on_read=on_read)
    tracks, _ = hearing.finish()
    if start > 0 or end is not None:
        last = float("inf") if end is None else end
        return tuple(track.between(start, min(last, track.length)) for track in tracks)
    return tracks


class SoundDescriber:
    """Finds the landmarks of a track whose samples arrive in chunks.

    Landmarks depend only on the audio around them, not on how it is chunked, and memory use does not grow with the
    length of the track.
    """

    def __init__(self, language: str = "", *, is_default: bool = True) -> None:
        self._language, self._is_default = language, is_default
        self._pieces: list[NDArray[np.float32]] = []
        # Positions of the first buffered sample and of the sample after the last.
        self._first = 0
        self._end = 0
        self._begun = False
        self._found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]] = []

    def push(self, first: int, samples: NDArray[np.float32]) -> None:
        """Add samples [S] at 8,000 Hz in [-1, 1]; ``first`` is the position of the first one, counted from time 0."""
        if self._begun and first - self._end > _BLOCK:
            self._describe(is_last=True)  # the gap is longer than a block, so finish the part before it
            self._begun = False
        if not self._begun:
            # Align with the grid of steps, with zeros up to the first sample.
            self._first = self._end = max(0, first // STEP * STEP - _WINDOW)
            self._pieces, self._begun = [], True
        if first > self._end:
            self._pieces.append(np.zeros(first - self._end, np.float32))
        self._pieces.append(samples)
        self._end = first + len(samples)
        if self._end - self._first >= 2 * _BLOCK:
            self._describe(is_last=False)

    def finish(self) -> SoundFeatures:
        """Return the landmarks of all samples."""
        if self._begun:
            self._describe(is_last=True)
        length = self._end / SOUND_RATE
        if not self._found:
            none = np.zeros(0, np.int32)
            return SoundFeatures(
                none, none.astype(np.uint8), none.astype(np.bool_), length, self._language, self._is_default
            )
        times, pitches, values = (np.concatenate(column) for column in zip(*self._found, strict=True))
        order = np.lexsort((pitches, times))
        times, pitches, values = times[order], pitches[order], values[order]
        ranks = _ranks(times, values, round(STEPS_A_SECOND / 2))
        kept = ranks < _MAX_LANDMARKS
        return SoundFeatures(
            times[kept].astype(np.int32),
            pitches[kept].astype(np.uint8),
            ranks[kept] < _MAX_STRONG,
            length,
            self._language,
            self._is_default,
        )

    def _describe(self, *, is_last: bool) -> None:
        """Find the landmarks whose neighborhood is complete, and keep the samples that later landmarks need."""
        samples = np.concatenate(self._pieces)
        margin = _AROUND + _NEAR_TIME
        if is_last:
            samples = np.concatenate([samples, np.zeros(_WINDOW + STEP, np.float32)])
        times, pitches, values = _landmarks(samples)
        steps = (len(samples) - _WINDOW) // STEP + 1
        start = self._first // STEP
        # Landmarks before the margin were found with the previous block.
        least = margin if self._found_before else 0
        most = steps if is_last else steps - margin
        inside = (times >= least) & (times < most)
        # The time of a landmark is the middle of its window.
        middle = _WINDOW // STEP // 2
        self._found.append((times[inside] + start + middle, pitches[inside], values[inside]))
        if is_last:
            self._found_before = False
            return
        self._found_before = True
        kept = (steps - 2 * margin) * STEP
        self._pieces, self._first = [samples[kept:].copy()], self._first + kept

    _found_before = False


@cache
def _bank() -> tuple[tuple[slice, slice, NDArray[np.float32]], ...]:
    """Return the filter bank by octave: its spectrum bins, its pitches, and weights [bins, pitches] that sum to 1 for
    each pitch."""
    bins = np.arange(_WINDOW // 2 + 1) * SOUND_RATE / _WINDOW
    middles = _MIN_FREQUENCY * 2.0 ** (np.arange(PITCHES) / STEPS_AN_OCTAVE)
    widths = np.maximum(middles * (2 ** (1 / STEPS_AN_OCTAVE) - 1), SOUND_RATE / _WINDOW)
    weights = np.maximum(1 - np.abs(bins[:, None] - middles) / widths, 0.0)
    bank = (weights / weights.sum(axis=0)).astype(np.float32)
    octaves = []
    for first in range(0, PITCHES, STEPS_AN_OCTAVE):
        pitches = slice(first, min(first + STEPS_AN_OCTAVE, PITCHES))
        used = np.flatnonzero(bank[:, pitches].any(axis=1))
        taken = slice(int(used[0]), int(used[-1]) + 1)
        octaves.append((taken, pitches, np.ascontiguousarray(bank[taken, pitches])))
    return tuple(octaves)


def _spectrum(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the natural logarithm [T, pitches] of the power at each step, relative to a full-scale sine and at least
    the power of silence."""
    window = np.hanning(_WINDOW + 1)[:-1].astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::STEP]
    result = np.empty((len(frames), PITCHES), np.float32)
    scale = np.float32((_WINDOW / 4) ** -2)
    for first in range(0, len(frames), 512):
        part = np.fft.rfft(frames[first : first + 512] * window, axis=1)
        for bins, pitches, weights in _bank():
            taken = part[:, bins]
            power = (taken.real**2 + taken.imag**2).astype(np.float32, copy=False)
            result[first : first + 512, pitches] = power @ weights
    result *= scale
    result += np.float32(_FLOOR)
    return np.log(result, out=result)


def _landmarks(
    samples: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return the step, pitch and prominence of each landmark."""
    if len(samples) < _WINDOW:
        none = np.zeros(0, np.int64)
        return none, none, none.astype(np.float32)
    levels = _spectrum(samples)
    around = _box_mean(levels, _AROUND)
    outstanding = levels - around
    highest = _window_max(_window_max(outstanding, _NEAR_TIME, 0), _NEAR_PITCH, 1)
    is_landmark = (outstanding == highest) & (outstanding >= _MIN_PROMINENCE)
    is_landmark[:, [0, -1]] = False
    times, pitches = np.nonzero(is_landmark)
    return times, pitches, outstanding[times, pitches]


def _box_mean(values: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """Compute the mean over up to ``reach`` rows before and after each row."""
    sums = np.zeros((len(values) + 1, values.shape[1]), np.float64)
    np.cumsum(values, axis=0, out=sums[1:])
    rows = np.arange(len(values))
    first, last = np.maximum(rows - reach, 0), np.minimum(rows + reach + 1, len(values))
    mean: NDArray[np.float32] = ((sums[last] - sums[first]) / (last - first)[:, None]).astype(np.float32)
    return mean


def _window_max(values: NDArray[np.float32], reach: int, axis: int) -> NDArray[np.float32]:
    """Compute the maximum within ``reach`` positions before and after each position."""
    result = values.copy()
    moved, target = np.moveaxis(values, axis, 0), np.moveaxis(result, axis, 0)
    for lag in range(1, min(reach, len(moved) - 1) + 1):
        np.maximum(target[lag:], moved[:-lag], out=target[lag:])
        np.maximum(target[:-lag], moved[lag:], out=target[:-lag])
    return result


def _ranks(times: NDArray[np.int64], values: NDArray[np.float32], reach: int) -> NDArray[np.int64]:
    """Count the more prominent landmarks within ``reach`` steps of each landmark."""
    ranks = np.zeros(len(times), np.int64)
    for lag in range(1, len(times)):
        near = times[lag:] - times[:-lag] <= reach
        if not near.any():
            break
        earlier_wins = values[:-lag] >= values[lag:]
        ranks[lag:] += near & earlier_wins
        ranks[:-lag] += near & ~earlier_wins
    return ranks
