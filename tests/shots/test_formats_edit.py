"""EDL, OTIO and chapters, checked against their rules and read back by other programs."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote, urlparse

import av
import pytest

from tests.support.detections import cut_video, detection
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.shots import write_chapters, write_edl, write_otio

EVENT = re.compile(r"^(\d{3})  AX       V     C        (\S{11}) (\S{11}) (\S{11}) (\S{11})$")


def events(path: Path) -> list[tuple[str, ...]]:
    return [match.groups() for line in path.read_text().splitlines() if (match := EVENT.match(line))]


def test_an_edit_decision_list(tmp_path: Path) -> None:
    write_edl(detection("/videos/film one.mp4", rate=24.0), tmp_path / "film.edl")
    assert (tmp_path / "film.edl").read_text() == (
        "TITLE: film one\n"
        "FCM: NON-DROP FRAME\n"
        "\n"
        "001  AX       V     C        00:00:00:00 00:00:00:20 00:00:00:00 00:00:00:20\n"
        "* FROM CLIP NAME: film one.mp4\n"
        "* VIDKIN: critical 0.10\n"
        "002  AX       V     C        00:00:00:20 00:00:01:21 00:00:00:20 00:00:01:21\n"
        "* FROM CLIP NAME: film one.mp4\n"
        "* VIDKIN: hard transition, confidence 0.90\n"
        "* VIDKIN: critical 0.80\n"
        "003  AX       V     C        00:00:01:21 00:00:02:12 00:00:01:21 00:00:02:12\n"
        "* FROM CLIP NAME: film one.mp4\n"
        "* VIDKIN: gradual transition, confidence 0.60\n"
        "* VIDKIN: critical 0.00\n"
    )


def test_time_code_at_29_97_counts_frames(tmp_path: Path) -> None:
    """Frame 45 of 29.97 a second is 1.5015 s on the clock and 00:00:01:15 in time code."""
    write_edl(detection(rate=30000 / 1001), tmp_path / "film.edl")
    assert [event[1] for event in events(tmp_path / "film.edl")] == [
        "00:00:00:00",
        "00:00:00:20",
        "00:00:01:15",
    ]


def test_drop_frame(tmp_path: Path) -> None:
    write_edl(detection(rate=30000 / 1001), tmp_path / "film.edl", drop_frame=True)
    assert "FCM: DROP FRAME" in (tmp_path / "film.edl").read_text()
    assert events(tmp_path / "film.edl")[2][1] == "00:00:01;15"
    with pytest.raises(InvalidArgumentError, match="got 24; omit drop-frame"):
        write_edl(detection(rate=24.0), tmp_path / "other.edl", drop_frame=True)
    assert not (tmp_path / "other.edl").exists()


def test_another_timeline_rate(tmp_path: Path) -> None:
    """Cuts at 2.0 and 4.5 s; at 25 frames a second 4.5 s is frame 112 (112.5 to even)."""
    write_edl(detection(), tmp_path / "film.edl", rate=Fraction(25))
    assert [event[1] for event in events(tmp_path / "film.edl")] == [
        "00:00:00:00",
        "00:00:02:00",
        "00:00:04:12",
    ]


def test_shots_without_a_frame_on_the_timeline_are_left_out(tmp_path: Path) -> None:
    write_edl(detection(rate=100.0), tmp_path / "film.edl", rate=Fraction(2))
    # 0, 0.2, 0.45 and 0.6 s are nearest to frames 0, 0, 1 and 1: the second shot alone has a frame.
    assert [event[:3] for event in events(tmp_path / "film.edl")] == [("002", "00:00:00:00", "00:00:00:01")]


def test_line_breaks_in_a_name_start_no_statement(tmp_path: Path) -> None:
    write_edl(detection("a\n002  AX.mp4"), tmp_path / "film.edl")
    assert len(events(tmp_path / "film.edl")) == 3
    assert "* FROM CLIP NAME: a_002  AX.mp4" in (tmp_path / "film.edl").read_text()


def test_opentimelineio_reads_what_was_written(tmp_path: Path) -> None:
    otio = pytest.importorskip("opentimelineio")
    source = tmp_path / "día 山 #1.mp4"
    write_otio(detection(source, rate=24.0), tmp_path / "film.otio")
    timeline = otio.adapters.read_from_file(str(tmp_path / "film.otio"))
    clips = list(timeline.find_clips())
    assert timeline.name == "día 山 #1"
    assert [clip.source_range.start_time.value for clip in clips] == [0, 20, 45]
    assert [clip.source_range.duration.value for clip in clips] == [20, 25, 15]
    assert {clip.source_range.start_time.rate for clip in clips} == {24.0}
    assert timeline.duration().value == 60
    address = urlparse(clips[0].media_reference.target_url)
    assert (address.scheme, unquote(address.path)) == ("file", str(source))
    assert clips[0].media_reference.available_range.duration.value == 60
    assert clips[1].metadata["vidkin"]["kind"] == "hard"
    assert clips[2].metadata["vidkin"]["confidence"] == 0.6
    assert [len(clip.markers) for clip in clips] == [0, 1, 0]


def test_opentimelineio_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentimelineio", None)
    with pytest.raises(MissingPartError, match=r"which is not installed; install it with: pip install .*\[otio\]\""):
        write_otio(detection(), tmp_path / "film.otio")
    assert list(tmp_path.iterdir()) == []


def test_ffmpeg_reads_the_chapters(tmp_path: Path) -> None:
    write_chapters(detection("a=b;c#d.mp4"), tmp_path / "chapters.txt")
    with av.open(str(tmp_path / "chapters.txt"), format="ffmetadata") as container:
        chapters = container.chapters()
        assert container.metadata["title"] == "a=b;c#d"
    found = [
        (float(chapter["start"] * chapter["time_base"]), float(chapter["end"] * chapter["time_base"]))
        for chapter in chapters
    ]
    assert found == [(0.0, 2.0), (2.0, 4.5), (4.5, 6.0)]
    assert [chapter["metadata"]["title"] for chapter in chapters] == ["Shot 1", "Shot 2 (critical)", "Shot 3"]


def test_chapters_go_into_a_file(tmp_path: Path) -> None:
    """As the docstring's command does it, with PyAV in the place of the program."""
    source = cut_video(tmp_path / "film.mp4")
    write_chapters(detection(source), tmp_path / "chapters.txt")
    with (
        av.open(str(source)) as video,
        av.open(str(tmp_path / "chapters.txt"), format="ffmetadata") as listed,
        av.open(str(tmp_path / "out.mkv"), "w") as output,
    ):
        output.set_chapters(listed.chapters())
        stream = output.add_stream_from_template(video.streams.video[0])
        for packet in video.demux(video=0):
            if packet.size:
                packet.stream = stream
                output.mux(packet)
    with av.open(str(tmp_path / "out.mkv")) as made:
        assert [chapter["metadata"]["title"] for chapter in made.chapters()][1] == "Shot 2 (critical)"
