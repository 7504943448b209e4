"""Read ranges of all audio tracks of a file, mostly sequentially, with little memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import av
import av.error
import numpy as np
from av.packet import Packet
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin.media.reader import MAX_TRACKS, demux, is_refusal, media_error
from vidkin.media.sampling import SEEKABLE
from vidkin.media.sound import SOUND_RATE, Listener, SoundTrack, TracksDecoder, open_sound, sound_tracks

# Seconds by which the packets of one track may lag behind those of another track in a file.
_MAX_INTERLEAVING = 10.0
# Seconds to decode before the requested range after a seek; decoders need a few packets to produce correct output.
_WARM_UP = 2.0
# Seconds of decoded audio to keep in memory, so that small steps back do not read the file again.
_HISTORY = 30.0


class TracksReader:
    """Reads ranges of all audio tracks of a file as stereo at `SOUND_RATE`.

    Samples are counted from the first video frame. Reading forward is cheap; reading more than 30 seconds back seeks.

    Args:
        path: The file.

    Attributes:
        tracks: The audio tracks, at most `MAX_TRACKS`.
        position: Position of the most recent packet in seconds.
        duration: Duration in seconds from the header; 0 if not stated.
        failures: Number of packets that could not be decoded.

    Raises:
        MediaError: The file cannot be read, or has no audio.
    """

    def __init__(self, path: PathLike) -> None:
        self._name = os.fspath(path)
        self._stack = ExitStack()
        self._pieces: list[_TrackPieces] = []
        self._forgotten, self._is_done, self.position = 0, False, 0.0
        self.failures = 0
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def read(self, first: int, count: int) -> tuple[list[NDArray[np.float32]], list[int]]:
        """Read samples of all tracks.

        Args:
            first: Position of the first sample; negative before the first frame.
            count: Number of samples.

        Returns:
            Samples [count, 2] of each track, padded with zeros, and the number of these samples that are not padding.
        """
        first += self._lead
        if max(first, 0) < self._forgotten:
            self._jump(first)
        last = first + count
        # Do not wait for tracks that have ended or paused.
        latest = last / SOUND_RATE + _MAX_INTERLEAVING
        while not self._is_done and self.position <= latest and any(track.end < last for track in self._pieces):
            self._advance()
        keep = first - round(_HISTORY * SOUND_RATE)
        self._forgotten = max(self._forgotten, *(track.forget(keep) for track in self._pieces))
        parts = [track.take(first, count) for track in self._pieces]
        return [samples for samples, _ in parts], [known for _, known in parts]

    @property
    def first(self) -> int:
        """Position of the first sample that the file may have."""
        return -self._lead

    def end(self, number: int) -> float:
        """Return the end of the audio read so far from a track, in seconds from the first frame."""
        return (self._pieces[number].end - self._lead) / SOUND_RATE

    def has_more(self, first: int) -> bool:
        """Whether there may be samples at or after this position."""
        return not self._is_done or any(track.end > first + self._lead for track in self._pieces)

    def _open(self) -> None:
        self._stack.close()
        self._container, self._origin = self._stack.enter_context(open_sound(self._name))
        self.tracks = sound_tracks(self._container)
        self.duration = (self._container.duration or 0) / av.time_base
        # Audio that starts before the first frame counts as well.
        streams = self._container.streams.audio
        starts = [s.start_time * float(s.time_base) for s in streams if s.start_time is not None and s.time_base]
        self._lead = round(max(self._origin - min(starts, default=self._origin), 0.0) * SOUND_RATE)
        self._begin(0)

    def _begin(self, forgotten: int) -> None:
        self._pieces = [_TrackPieces() for _ in self.tracks]
        pieces = iter(self._pieces)

        def open_listener(_: SoundTrack) -> Listener:
            return next(pieces).push

        start = self._origin - self._lead / SOUND_RATE
        self._decoder = TracksDecoder(self._container, start, open_listener, "stereo")
        self._packets: Iterator[Packet[Any]] = demux(self._container, *self._container.streams.audio[:MAX_TRACKS])
        self._forgotten, self._is_done, self.position = forgotten, False, 0.0

    def _jump(self, first: int) -> None:
        seconds = max(first / SOUND_RATE - _WARM_UP, 0.0)
        if not self._container.format.name.startswith(SEEKABLE):
            self._open()
            return
        try:
            self._container.seek(int((self._origin + seconds - self._lead / SOUND_RATE) * av.time_base))
        except av.error.FFmpegError:
            self._open()
        else:
            self._begin(max(round(seconds * SOUND_RATE), 0))

    def _advance(self) -> None:
        """Read and decode the next packet."""
        try:
            packet = next(self._packets, None)
        except av.error.FFmpegError as error:
            if is_refusal(self._name, error):
                raise media_error(self._name, error) from error
            self.failures += 1
            packet = None
        if packet is None:
            self._is_done = True
            self.failures += self._decoder.finish()
            return
        if packet.pts is not None and packet.time_base is not None:
            self.position = float(packet.pts * packet.time_base) - self._origin + self._lead / SOUND_RATE
        self._decoder.push(packet)


class _TrackPieces:
    """Decoded samples of a track that are still in memory.

    Attributes:
        end: Position after the last sample.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[int, NDArray[np.float32]]] = []
        self.end = 0

    def push(self, first: int, samples: NDArray[np.float32]) -> None:
        self._pieces.append((first, samples))
        self.end = first + len(samples)

    def forget(self, before: int) -> int:
        """Drop chunks that end before a sample; return the end of the last dropped chunk, or 0."""
        dropped = 0
        while self._pieces and self._pieces[0][0] + len(self._pieces[0][1]) < before:
            first, samples = self._pieces.pop(0)
            dropped = first + len(samples)
        return dropped

    def take(self, first: int, count: int) -> tuple[NDArray[np.float32], int]:
        """Return samples [count, 2] starting at `first`, padded with zeros, and the number that are not padding."""
        taken = np.zeros((count, 2), np.float32)
        known = 0
        for start, samples in self._pieces:
            low, high = max(start, first), min(start + len(samples), first + count)
            if low < high:
                taken[low - first : high - first] = samples[low - start : high - start]
                known += high - low
        return taken, known
