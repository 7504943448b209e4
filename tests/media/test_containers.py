"""Files that were cut off or lack bytes, found by the lengths that their containers state."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import av
import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.media import find_damage, iter_frames, probe, read_frames

# Name, codec, and whether bytes that are missing in the middle show.
FORMATS = {
    "a.mp4": ("libx264", False),
    "a.avi": ("mpeg4", True),
    "a.wmv": ("wmv2", True),
    "a.flv": ("flv", True),
    "a.mpg": ("mpeg2video", True),
    "a.gif": ("gif", False),
    "a.ts": ("mpeg2video", True),
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds in each format."""
    folder = tmp_path_factory.mktemp("films")
    frames = list(pan("coffee", 50, width=96, height=64))
    for name, (codec, _) in FORMATS.items():
        pixels = "rgb8" if codec == "gif" else "yuv420p"
        if name == "a.mp4":
            whole = encode(folder / "late.mp4", frames, rate=25)
            with (
                av.open(str(whole)) as given,
                av.open(str(folder / name), "w", options={"movflags": "faststart"}) as front,
            ):
                stream = front.add_stream_from_template(given.streams.video[0])
                for packet in given.demux(video=0):
                    if packet.dts is not None:
                        packet.stream = stream
                        front.mux(packet)
        else:
            encode(folder / name, frames, rate=25, codec=codec, pixel_format=pixels, options={"g": "10"})
    return folder


def damage(path: Path) -> str:
    return find_damage(path, probe(path).container)


@pytest.mark.parametrize("name", FORMATS)
def test_a_whole_file_has_no_damage_whatever_follows_it(films: Path, tmp_path: Path, name: str) -> None:
    assert damage(films / name) == ""
    if name in ("a.mp4", "a.avi", "a.gif"):  # what is behind their end is not read
        (tmp_path / name).write_bytes((films / name).read_bytes() + b"\1\2\3 anything \xff")
        assert damage(tmp_path / name) == ""


@pytest.mark.parametrize("share", [0.5, 0.77])
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_ends_early_is_cut_off(films: Path, tmp_path: Path, name: str, share: float) -> None:
    content = (films / name).read_bytes()
    # One byte into a packet of a transport stream: it has no other end than that of a packet.
    end = int(len(content) * share) // 188 * 188 + 1
    (tmp_path / name).write_bytes(content[:end])
    word = damage(tmp_path / name)
    found = re.fullmatch(r"the file is cut off: ([\d,]+) bytes or more are missing at its end", word)
    assert found is not None, word
    assert 1 <= int(found[1].replace(",", "")) <= len(content) - end
    if name in ("a.mp4", "a.avi"):
        assert int(found[1].replace(",", "")) == len(content) - end


@pytest.mark.parametrize("name", [name for name, (_, shows) in FORMATS.items() if shows])
def test_bytes_missing_in_the_middle_show(films: Path, tmp_path: Path, name: str) -> None:
    content = (films / name).read_bytes()
    with av.open(str(films / name)) as container:
        positions = [packet.pos for packet in container.demux(video=0) if packet.pos is not None]
    place = positions[len(positions) * 6 // 10] + 12
    (tmp_path / name).write_bytes(content[:place] + content[place + 17 :])
    word = damage(tmp_path / name)
    found = re.match(r"the file is damaged: [\d,]+( of about [\d,]+)? parts? changed .*, first at (\d\.\d) s", word)
    assert found is not None, word
    assert ("; it lacks 17 bytes or more" in word) == (name == "a.avi")
    # A packet of ASF holds many pictures, and the first one of it is the last before the damage.
    assert (0 if name == "a.wmv" else 0.8) <= float(found[2]) <= 1.5


def test_packets_of_a_transport_stream_that_lost_their_mark_are_counted(films: Path, tmp_path: Path) -> None:
    content = bytearray((films / "a.ts").read_bytes())
    total = len(content) // 188
    for packet in (total // 2, total // 2 + 1, total // 2 + 5):
        content[packet * 188] = 0
    (tmp_path / "a.ts").write_bytes(content)
    word = damage(tmp_path / "a.ts")
    assert re.fullmatch(rf"the file is damaged: 3 of about {total} parts changed .* first at [01]\.\d s", word), word


def _table(content: bytes, kind: bytes) -> int:
    """Where the content of the only table of this kind begins."""
    assert content.count(kind) == 1
    return content.index(kind) + 4


@pytest.mark.parametrize(
    ("kind", "at", "value", "clause"),
    [
        # stts: version, number of runs, then (samples, duration) of the first run; stsz: version, size, samples.
        (b"stts", 8, 49, "50 samples have a size, 49 a time"),
        (b"stsz", 8, 51, "51 samples are stated, 50 have a size"),
        (b"stsc", 12, 49, "50 samples have a size, 49 a place"),
        (b"stco", 8, 0x7FFFFFFF, "1 of 1 pieces of a track lie beyond the end of the file"),
    ],
)
def test_an_index_of_mp4_that_disagrees_with_itself_or_its_file_is_named(
    films: Path, tmp_path: Path, kind: bytes, at: int, value: int, clause: str
) -> None:
    content = bytearray((films / "late.mp4").read_bytes())
    place = _table(content, kind) + at
    content[place : place + 4] = value.to_bytes(4, "big")
    (tmp_path / "a.mp4").write_bytes(content)
    assert find_damage(tmp_path / "a.mp4", "mov,mp4") == f"the file's index is damaged: {clause}"


def test_an_index_of_avi_that_lists_a_frame_that_is_not_there_is_named(films: Path, tmp_path: Path) -> None:
    content = bytearray((films / "a.avi").read_bytes())
    place = content.index(b"00dc", content.index(b"movi") + 2000)
    content[place : place + 4] = b"07xx"
    (tmp_path / "a.avi").write_bytes(content)
    assert damage(tmp_path / "a.avi") == "the file's index is damaged: 50 frames are listed, 49 are there"


@pytest.mark.parametrize(("name", "codec"), [("a.webm", "libvpx"), ("a.webm", "libvpx-vp9"), ("a.mp4", "libx264")])
def test_zeros_inside_a_packet_are_a_frame_with_errors_and_those_at_its_end_are_padding(
    tmp_path: Path, name: str, codec: str
) -> None:
    """What a download leaves that did not come; VP8 and VP9 decode it without a word."""
    path = encode(tmp_path / name, pan("coffee", 50, width=96, height=64), rate=25, codec=codec, options={"g": "10"})
    with av.open(str(path)) as container:
        packet = [packet for packet in container.demux(video=0) if packet.is_keyframe and packet.size][2]
    assert packet.pos is not None
    content = path.read_bytes()
    begin = content.index(bytes(packet)) + 30
    path.write_bytes(content[:begin] + bytes(100) + content[begin + 100 :])
    words: list[str] = []
    read_all = list(iter_frames(path, rate=1.0, on_damage=words.append))
    assert read_all
    assert len(words) == 1
    assert re.fullmatch(r"the file is damaged: .*1 frames? with errors.*, first at 0\.8 s", words[0]), words
    end = content.index(bytes(packet)) + packet.size
    path.write_bytes(content[: end - 100] + bytes(100) + content[end:])
    words.clear()
    list(iter_frames(path, rate=0.1, on_damage=words.append))
    assert words == []


def test_a_length_that_no_file_has_is_not_believed(films: Path, tmp_path: Path) -> None:
    for name, place in (("a.avi", 4), ("a.flv", 14), ("a.mp4", 0)):
        content = bytearray((films / name).read_bytes())
        content[place : place + 3] = b"\xff\xff\xff"
        (tmp_path / name).write_bytes(content)
        find_damage(tmp_path / name, {"a.avi": "avi", "a.flv": "flv", "a.mp4": "mov,mp4"}[name])
    for container in ("mov", "avi", "asf", "flv", "mpeg", "mpegts", "gif", "matroska", "nut"):
        (tmp_path / "noise").write_bytes(np.random.default_rng(3).bytes(5000))
        find_damage(tmp_path / "noise", container)
        (tmp_path / "short").write_bytes(b"RIFF")
        assert find_damage(tmp_path / "short", container) == ""


def test_sound_that_begins_late_costs_no_picture(tmp_path: Path) -> None:
    """Its stream is not there when the header is read."""
    path = encode(tmp_path / "a.flv", pan("coffee", 100, width=96, height=64), rate=10, codec="flv")
    content = path.read_bytes()
    place, time = 13, 0
    while time < 8_000:
        size = int.from_bytes(content[place + 1 : place + 4], "big")
        place += 11 + size + 4
        time = int.from_bytes(content[place + 4 : place + 7], "big")
    sound = b"\xaf\x00\x12\x10"
    tag = b"\x08" + struct.pack(">I", len(sound))[1:] + struct.pack(">I", time)[1:] + bytes(4) + sound
    path.write_bytes(content[:place] + tag + struct.pack(">I", len(tag)) + content[place:])
    assert len(read_frames(path, rate=None)) == 100
    assert probe(path).duration == pytest.approx(10.0, abs=0.11)
    assert damage(path) == ""
