"""Sound edits, and writing edited sound to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal

import av
import numpy as np
from av.audio.resampler import AudioResampler
from av.filter import Graph
from numpy.typing import NDArray

_Sound = NDArray[np.float32]


SOUND_EDIT_RATE = 44_100
"""Sample rate of edited sound, in Hz."""


# Filters that normalize loudness before another sound is mixed in; gain of the sound under noise; gain of the noise.
_EVEN, _BELOW_NOISE, _NOISE = (("dynaudnorm", "f=500:g=31"),), 0.5, 0.06


@dataclass(frozen=True, slots=True)
class SoundEdit:
    """A way to change sound.

    Attributes:
        filters: FFmpeg filters in order, as (name, options).
        under: What is mixed in afterward: noise (10 dB quieter) or another sound at the same loudness.
        channel: The only channel to keep; None keeps all channels.
        rate: Sample rate in Hz.
        is_mono: Whether channels are mixed into one.
        bit_rate: Bit rate of the compression.
        start, seconds: Start and length of the part to keep; None keeps everything.
        speed: Seconds of the original per second of the result.
    """

    filters: tuple[tuple[str, str], ...] = ()
    under: Literal["", "noise", "other"] = ""
    channel: int | None = None
    rate: int = SOUND_EDIT_RATE
    is_mono: bool = False
    bit_rate: int = 128_000
    start: float = 0.0
    seconds: float | None = None
    speed: float = 1.0


_SPEEDS = (0.8, 1.25, 1.5, 2.0)


SOUND_EDITS: dict[str, SoundEdit] = {
    "copy": SoundEdit(bit_rate=192_000),
    "32 kbit/s": SoundEdit(bit_rate=32_000),
    "left channel": SoundEdit(channel=0),
    "mono, 16 kHz": SoundEdit(is_mono=True, rate=16_000),
    "loud": SoundEdit((("acompressor", "threshold=0.05:ratio=8"), ("volume", "6dB"), ("treble", "g=6"))),
    "room": SoundEdit(
        (("aecho", "0.8:0.7:23|37|61|97:0.5|0.4|0.35|0.25"), ("highpass", "f=250"), ("lowpass", "f=5000"))
    ),
    "5 s": SoundEdit(start=11.37, seconds=5.0),
    "10 s": SoundEdit(start=7.777, seconds=10.0),
    **{f"tempo {speed}": SoundEdit((("atempo", str(speed)),), speed=speed) for speed in _SPEEDS},
    **{
        f"tape {speed}": SoundEdit((("asetrate", str(round(SOUND_EDIT_RATE * speed))),), speed=speed)
        for speed in _SPEEDS
    },
    "noise at 10 dB": SoundEdit(under="noise"),
    "other sound over it": SoundEdit(under="other"),
}
"""Sound edits by name."""


def edit_sound(
    source: Path, target: Path, edit: SoundEdit, *, other: Path | None = None, pictures: Path | None = None
) -> None:
    """Edit the sound of a file and write it as AAC.

    Args:
        source: File whose first sound track is edited.
        target: File to write, m4a or mp4.
        edit: The edit to apply.
        other: File with the sound to mix in, if the edit needs one.
        pictures: Video whose frames accompany the sound; None writes only sound.

    Raises:
        MediaError: A file cannot be read.
    """
    samples = read_samples(source)
    first = round(edit.start * SOUND_EDIT_RATE)
    last = len(samples[0]) if edit.seconds is None else first + round(edit.seconds * SOUND_EDIT_RATE)
    if first >= len(samples[0]):  # the sound is too short for the excerpt, so keep all of it
        first, last = 0, len(samples[0])
    samples = samples[:, first:last]
    if edit.channel is not None:
        samples = samples[[edit.channel] * 2]
    samples = _apply_filters(samples, (*edit.filters, *(_EVEN if edit.under else ())))
    if edit.under == "noise":
        noise = _NOISE * (2 * np.random.default_rng(0).random(samples.shape[1], np.float32) - 1)
        samples = np.float32(_BELOW_NOISE) * samples + noise
    elif edit.under == "other" and other is not None:
        over = _apply_filters(read_samples(other), _EVEN)
        samples = samples.copy()
        shared = min(samples.shape[1], over.shape[1])
        samples[:, :shared] += over[:, :shared]
        samples *= 0.5
    write_sound(target, samples, edit, pictures)


def read_samples(path: Path, start: float = 0.0, end: float | None = None) -> _Sound:
    """Read the first sound track of a file as samples [2, S] at `SOUND_EDIT_RATE`."""
    with av.open(str(path)) as container:
        resampler = AudioResampler(format="fltp", layout="stereo", rate=SOUND_EDIT_RATE)
        pieces = []
        for frame in container.decode(audio=0):
            if frame.time is not None and end is not None and frame.time > end:
                break
            frame.pts = None
            pieces += [piece.to_ndarray() for piece in resampler.resample(frame)]
        pieces += [piece.to_ndarray() for piece in resampler.resample(None)]
    samples = np.concatenate(pieces, axis=1).astype(np.float32) if pieces else np.zeros((2, 0), np.float32)
    first = round(start * SOUND_EDIT_RATE)
    return samples[:, first : None if end is None else round(end * SOUND_EDIT_RATE)]


def _apply_filters(samples: _Sound, filters: Sequence[tuple[str, str]]) -> _Sound:
    """Apply FFmpeg filters to samples [2, S]."""
    if not filters:
        return samples
    graph = Graph()
    steps = [
        graph.add_abuffer(
            sample_rate=SOUND_EDIT_RATE, format="fltp", layout="stereo", time_base=Fraction(1, SOUND_EDIT_RATE)
        ),
        *(graph.add(name, options) for name, options in filters),
        graph.add("abuffersink"),
    ]
    for one, after in pairwise(steps):
        one.link_to(after)
    graph.configure()
    resampler = AudioResampler(format="fltp", layout="stereo", rate=SOUND_EDIT_RATE)
    pieces: list[_Sound] = []

    def pull() -> None:
        while True:
            try:
                made = steps[-1].pull()
            except (BlockingIOError, EOFError):
                return
            assert isinstance(made, av.AudioFrame)  # the graph only outputs sound
            made.pts = None
            pieces.extend(piece.to_ndarray().astype(np.float32) for piece in resampler.resample(made))

    for first in range(0, samples.shape[1], 4096):
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(samples[:, first : first + 4096]), format="fltp", layout="stereo"
        )
        frame.sample_rate, frame.pts, frame.time_base = SOUND_EDIT_RATE, first, Fraction(1, SOUND_EDIT_RATE)
        steps[0].push(frame)
        pull()
    steps[0].push(None)
    pull()
    pieces.extend(piece.to_ndarray().astype(np.float32) for piece in resampler.resample(None))
    return np.concatenate(pieces, axis=1).astype(np.float32)


def write_sound(target: Path, samples: _Sound, edit: SoundEdit, pictures: Path | None) -> None:
    seconds = samples.shape[1] / SOUND_EDIT_RATE
    partial = target.with_name(f"{target.stem}.partial{target.suffix}")
    with av.open(str(partial), "w") as container:
        layout = "mono" if edit.is_mono else "stereo"
        source = None if pictures is None else av.open(str(pictures))
        video = None if source is None else container.add_stream_from_template(source.streams.video[0])
        sound = container.add_stream("aac", rate=edit.rate, layout=layout)
        sound.bit_rate = edit.bit_rate
        if source is not None and video is not None:
            for packet in source.demux(video=0):
                if packet.dts is not None and packet.time_base and float(packet.dts * packet.time_base) < seconds:
                    packet.stream = video
                    container.mux(packet)
            source.close()
        resampler = AudioResampler(format="fltp", layout=layout, rate=edit.rate, frame_size=1024)
        given = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.clip(-1, 1)), format="fltp", layout="stereo")
        given.sample_rate, given.pts, given.time_base = SOUND_EDIT_RATE, 0, Fraction(1, SOUND_EDIT_RATE)
        for frame in (*resampler.resample(given), *resampler.resample(None)):
            container.mux(sound.encode(frame))
        container.mux(sound.encode(None))
    partial.replace(target)
