"""Performances of MIDI music, rendered by FluidSynth with varied sounds, instruments, tempi, keys and timing."""

from __future__ import annotations

import math
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Number of quarter notes rendered, the MIDI drum channel, and the default length of a quarter note in microseconds.
_QUARTERS, _DRUMS, _USUAL_QUARTER = 48, 9, 500_000
_PROGRAM, _ALL_OFF, _TEMPO, _END = 0xC0, 120, b"\xff\x51\x03", b"\xff\x2f\x00"


@dataclass(frozen=True, slots=True)
class Performance:
    """Parameters of a performance.

    Attributes:
        font: Index of the soundfont.
        tempo: Tempo factor.
        key: Transposition in semitones.
        instruments: Offset added to program numbers, modulo the 96 pitched programs.
        hand: Standard deviation of the note timing, in seconds. If positive, the tempo also fluctuates by 5 %.
    """

    font: int = 0
    tempo: float = 1.0
    key: int = 0
    instruments: int = 0
    hand: float = 0.0


PLAYED = Performance()
"""The reference performance."""

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
"""Other performances by name. In the first four, every note is exactly on time; "by hand" adds timing variation."""


def find_pieces(paths: Sequence[Path]) -> tuple[list[bytes], list[Path]]:
    """Find the MIDI pieces (a game file may hold several) and the soundfonts in these folders, in path order."""
    files = [file for path in paths for file in sorted(path.rglob("*")) if file.is_file()]
    fonts = [file for file in files if file.suffix.lower() in {".sf2", ".sf3"}]
    pieces = dict.fromkeys(piece for file in files if file not in fonts for piece in _pieces_in(file.read_bytes()))
    return list(pieces), fonts


def play(piece: bytes, performance: Performance, fonts: Sequence[Path], target: Path) -> Path:
    """Render the first 48 quarter notes of a piece to a sound file.

    Raises:
        SystemExit: FluidSynth or the soundfonts are missing.
    """
    if shutil.which("fluidsynth") is None or len(fonts) < 2:
        raise SystemExit("--pieces requires the program fluidsynth and two soundfonts (.sf2, .sf3) in its folders")
    source = target.with_suffix(".mid")
    source.write_bytes(perform(piece, performance))
    settings = ["-ni", "-q", "-R", "0", "-C", "0", "-r", "22050", "-F", str(target)]
    command = ["fluidsynth", *settings, str(fonts[performance.font]), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def perform(piece: bytes, performance: Performance) -> bytes:
    """Apply a performance to the beginning of a piece."""
    division = int.from_bytes(piece[12:14], "big")
    hand = _Hand(performance.hand * division / (_USUAL_QUARTER / 1e6), division)
    chunks = []
    for number, track in enumerate(_tracks(piece)):
        events = [(time, _apply(event, performance)) for time, event in _events(track)]
        if number == 0:
            # Make defaults that pieces leave out explicit, so that they can be changed: the tempo and the program of
            # each channel.
            usual = [_TEMPO + _USUAL_QUARTER.to_bytes(3, "big")]
            usual += [bytes([_PROGRAM + channel, 0]) for channel in range(16) if channel != _DRUMS]
            events = [(0, _apply(event, performance)) for event in usual] + events
        end = _QUARTERS * division
        shifted = sorted((hand.move(*entry) for entry in events if entry[0] < end), key=lambda entry: entry[0])
        shifted = [(min(time, end), event) for time, event in shifted]
        # Stop the remaining notes a quarter note later; otherwise the synthesizer would wait for notes whose end was
        # cut.
        shifted += [(end + division, bytes([0xB0 + channel, _ALL_OFF, 0])) for channel in range(16)]
        data, before = b"", 0
        for time, event in [*shifted, (shifted[-1][0], _END)]:
            data += _encode_number(time - before) + event
            before = time
        chunks.append(b"MTrk" + len(data).to_bytes(4, "big") + data)
    return piece[:10] + len(chunks).to_bytes(2, "big") + piece[12:14] + b"".join(chunks)


class _Hand:
    """Shifts notes slightly, their start and end by the same amount; ``spread`` is in ticks."""

    def __init__(self, spread: float, division: int) -> None:
        self._spread, self._division = spread, division
        self._drawn = random.Random(5)
        self._moves: dict[tuple[int, int], float] = {}

    def move(self, time: int, event: bytes) -> tuple[int, bytes]:
        """Return the shifted event time and the event."""
        if not self._spread:
            return time, event
        kind, channel = event[0] & 0xF0, event[0] & 0x0F
        later = 0.0
        if kind in (0x80, 0x90):
            key = channel, event[1]
            if kind == 0x90 and event[2]:
                self._moves[key] = self._drawn.gauss(0.0, self._spread)
            later = self._moves.get(key, 0.0)
        # The tempo fluctuates by 5 % over a period of 16 quarter notes.
        period = 16 * self._division / (2 * math.pi)
        return max(0, round(time + later + 0.05 * period * math.sin(time / period))), event


def _apply(event: bytes, performance: Performance) -> bytes:
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
    """Yield every MIDI file embedded in the content of a file."""
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
    """Yield ticks and bytes of all events but the end event, with running status expanded."""
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


def _encode_number(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F | 0x80)
    return bytes(reversed(digits))
