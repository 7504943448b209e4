"""Packets of sound and subtitles, handed out piece by piece."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from av.container import InputContainer, OutputContainer
    from av.packet import Packet
    from av.stream import Stream

__all__ = ["SoundReader"]

# Seconds by which the streams of a file can be stored out of step.
_SLACK = 10


class SoundReader:
    """Copies the packets of all streams except the main one to one piece after another.

    A packet belongs to the piece in which it starts; packets between two pieces are dropped.

    Args:
        container: The open file, from which nothing else is read.
        kept: Numbers of the streams to copy.
    """

    def __init__(self, container: InputContainer, kept: AbstractSet[int]) -> None:
        self._streams = [stream for stream in container.streams if stream.index in kept]
        self._packets: Iterator[Packet[Any]] = container.demux(self._streams) if self._streams else iter(())
        self._waiting: deque[tuple[Fraction, Packet[Any]]] = deque()
        self._newest = Fraction(-(10**9))
        self._latest: dict[int, Fraction] = {}
        self._outputs: Mapping[int, Stream] = {}
        self._output: OutputContainer | None = None
        self._start: Fraction | None = None
        self._shift = Fraction(0)

    def begin(self, output: OutputContainer, start: Fraction, *, is_first: bool) -> None:
        """Copy to this file from now on.

        Args:
            output: The open file, to which its video has been added but nothing has been written.
            start: Time in the source, in seconds, that becomes 0.
            is_first: Whether to copy packets before the start, too.
        """
        self._output = output
        self._outputs = {
            stream.index: output.add_stream_from_template(stream, opaque=True) for stream in self._streams
        }
        self._start, self._shift = None if is_first else start, start

    def copy_until(self, time: Fraction) -> int:
        """Copy the packets that start before this time of the source, in seconds; return their number."""
        while self._newest < time + _SLACK and (packet := next(self._packets, None)) is not None:
            if packet.size:
                place, stamp = packet.stream_index, packet.pts if packet.pts is not None else packet.dts
                if stamp is not None:
                    self._latest[place] = stamp * Fraction(packet.time_base)
                self._newest = self._latest.get(place, Fraction(0))
                self._waiting.append((self._newest, packet))
        ready = [
            packet
            for stamp, packet in self._waiting
            if stamp < time and (self._start is None or stamp >= self._start)
        ]
        self._waiting = deque(entry for entry in self._waiting if entry[0] >= time)
        assert self._output is not None or not ready  # begin() comes first
        for packet in ready:
            shift = math.floor(self._shift / Fraction(packet.time_base) + Fraction(1, 2))
            packet.pts = None if packet.pts is None else packet.pts - shift
            packet.dts = None if packet.dts is None else packet.dts - shift
            packet.stream = self._outputs[packet.stream_index]
            assert self._output is not None
            self._output.mux_one(packet)
        return len(ready)
