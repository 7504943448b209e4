"""Performances of one piece: MIDI music played by FluidSynth with other sounds, instruments, tempi, keys and hands."""

from __future__ import annotations

import math
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Quarter notes that are played, the channel of drums, and the quarter note if a piece does not say it, microseconds.
_QUARTERS, _DRUMS, _USUAL_QUARTER = 48, 9, 500_000
_PROGRAM, _ALL_OFF, _TEMPO, _END = 0xC0, 120, b"\xff\x51\x03", b"\xff\x2f\x00"


@dataclass(frozen=True, slots=True)
class Performance:
    """How a piece is played.

    Attributes:
        font: Number of the soundfont, the first one is 0.
        tempo: Times as fast.
        key: Semitones higher.
        instruments: Programs that are taken instead: so many numbers on, of the 96 that play tones.
        hand: Seconds that a note is early or late (standard deviation); the tempo then swings by 5 %.
    """

    font: int = 0
    tempo: float = 1.0
    key: int = 0
    instruments: int = 0
    hand: float = 0.0


PLAYED = Performance()
"""The performance that others are compared with."""

PERFORMANCES: dict[str, Performance] = {
    "other synthesizer": Performance(font=1),
    "other instruments": Performance(instruments=40),
    "other key": Performance(key=2),
    "other tempo": Performance(tempo=1.12),
    "by hand": Performance(hand=0.02),
    "by hand, other synthesizer": Performance(font=1, hand=0.02),
    "by hand, other instruments": Performance(font=1, instruments=40, hand=0.02),
    "by hand, other instruments, tempo and key": Performance(font=1, tempo=0.92, key=-3, instruments=40, hand=0.02),
}
"""Other performances by name. The first four are a machine that plays the same notes at the same moments; by hand means
that no note is exactly where it is written."""


def find_pieces(paths: Sequence[Path]) -> tuple[list[bytes], list[Path]]:
    """MIDI music in these folders, of which a file may hold several (games do), and soundfonts in their order."""
    files = [file for path in paths for file in sorted(path.rglob("*")) if file.is_file()]
    fonts = [file for file in files if file.suffix.lower() in {".sf2", ".sf3"}]
    pieces = dict.fromkeys(piece for file in files if file not in fonts for piece in _pieces_in(file.read_bytes()))
    return list(pieces), fonts


def play(piece: bytes, performance: Performance, fonts: Sequence[Path], target: Path) -> Path:
    """Write the first 48 quarter notes of a piece as a sound.

    Raises:
        SystemExit: FluidSynth or the soundfonts are missing.
    """
    if shutil.which("fluidsynth") is None or len(fonts) < 2:
        raise SystemExit("--pieces needs the program fluidsynth, and two soundfonts (.sf2, .sf3) in its folders")
    source = target.with_suffix(".mid")
    source.write_bytes(changed(piece, performance))
    settings = ["-ni", "-q", "-R", "0", "-C", "0", "-r", "22050", "-F", str(target)]
    command = ["fluidsynth", *settings, str(fonts[performance.font]), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def changed(piece: bytes, performance: Performance) -> bytes:
    """The beginning of a piece as it is to be played."""
    division = int.from_bytes(piece[12:14], "big")
    hand = _Hand(performance.hand * division / (_USUAL_QUARTER / 1e6), division)
    chunks = []
    for number, track in enumerate(_tracks(piece)):
        events = [(time, _play_otherwise(event, performance)) for time, event in _events(track)]
        if number == 0:
            # What pieces leave out: their tempo, and the program of each channel.
            usual = [_TEMPO + _USUAL_QUARTER.to_bytes(3, "big")]
            usual += [bytes([_PROGRAM + channel, 0]) for channel in range(16) if channel != _DRUMS]
            events = [(0, _play_otherwise(event, performance)) for event in usual] + events
        end = _QUARTERS * division
        moved = sorted((hand.moved(*entry) for entry in events if entry[0] < end), key=lambda entry: entry[0])
        moved = [(min(time, end), event) for time, event in moved]
        # Notes that were cut are stopped a quarter note later, as they would be waited for.
        moved += [(end + division, bytes([0xB0 + channel, _ALL_OFF, 0])) for channel in range(16)]
        data, before = b"", 0
        for time, event in [*moved, (moved[-1][0], _END)]:
            data += _written_number(time - before) + event
            before = time
        chunks.append(b"MTrk" + len(data).to_bytes(4, "big") + data)
    return piece[:10] + len(chunks).to_bytes(2, "big") + piece[12:14] + b"".join(chunks)


class _Hand:
    """Moves notes a little, each end of a note as its beginning; ``spread`` is in ticks."""

    def __init__(self, spread: float, division: int) -> None:
        self._spread, self._division = spread, division
        self._drawn = random.Random(5)
        self._moves: dict[tuple[int, int], float] = {}

    def moved(self, time: int, event: bytes) -> tuple[int, bytes]:
        """The time at which an event comes."""
        if not self._spread:
            return time, event
        kind, channel = event[0] & 0xF0, event[0] & 0x0F
        later = 0.0
        if kind in (0x80, 0x90):
            key = channel, event[1]
            if kind == 0x90 and event[2]:
                self._moves[key] = self._drawn.gauss(0.0, self._spread)
            later = self._moves.get(key, 0.0)
        # Faster and slower by 5 % within 16 quarter notes.
        period = 16 * self._division / (2 * math.pi)
        return max(0, round(time + later + 0.05 * period * math.sin(time / period))), event


def _play_otherwise(event: bytes, performance: Performance) -> bytes:
    kind, channel = event[0] & 0xF0, event[0] & 0x0F
    if event[:3] == _TEMPO:
        quarter = round(int.from_bytes(event[3:6], "big") / performance.tempo)
        return _TEMPO + quarter.to_bytes(3, "big")
    if channel != _DRUMS and kind in (0x80, 0x90, 0xA0):
        return bytes([event[0], min(127, max(0, event[1] + performance.key)), *event[2:]])
    if channel != _DRUMS and kind == _PROGRAM and event[1] < 96:
        return bytes([event[0], (event[1] + performance.instruments) % 96])
    return event


def _pieces_in(content: bytes) -> Iterator[bytes]:
    """Every MIDI file in the content of a file."""
    first = content.find(b"MThd\0\0\0\6")
    while first >= 0:
        end = first + 14
        for _ in range(int.from_bytes(content[first + 10 : first + 12], "big")):
            end += 8 + int.from_bytes(content[end + 4 : end + 8], "big")
        yield content[first:end]
        first = content.find(b"MThd\0\0\0\6", end)


def _tracks(piece: bytes) -> Iterator[bytes]:
    place = 14
    while piece[place : place + 4] == b"MTrk":
        length = int.from_bytes(piece[place + 4 : place + 8], "big")
        yield piece[place + 8 : place + 8 + length]
        place += 8 + length


def _events(track: bytes) -> Iterator[tuple[int, bytes]]:
    """Ticks and event of all events but the end, each with its first byte."""
    place, time, status = 0, 0, 0
    while place < len(track):
        delta, place = _read_number(track, place)
        time += delta
        if track[place] >= 0x80:
            status = track[place]
            place += 1
        begin = place
        if status >= 0xF0:
            place += status == 0xFF
            length, place = _read_number(track, place)
            place += length
        else:
            place += 1 if status & 0xF0 in (0xC0, 0xD0) else 2
        event = bytes([status]) + track[begin:place]
        if event[:2] != _END[:2]:
            yield time, event


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    while True:
        value = value << 7 | data[place] & 0x7F
        place += 1
        if data[place - 1] < 0x80:
            return value, place


def _written_number(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F | 0x80)
    return bytes(reversed(digits))
