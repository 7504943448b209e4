"""EDL, OTIO and chapters are checked against their specifications and read back by other programs."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import av
import pytest

from tests.support.detections import cut_video, detection
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.media import probe
from vidkin.shots import (
    find_shot_format,
    write_chapters,
    write_edl,
    write_fcpxml,
    write_otio,
    write_scene_cuts,
    write_shots_csv,
)

EVENT = re.compile(r"^(\d{3})  AX       V     C        (\S{11}) (\S{11}) (\S{11}) (\S{11})$")


def events(path: Path) -> list[tuple[str, ...]]:
    return [match.groups() for line in path.read_text().splitlines() if (match := EVENT.match(line))]


def test_edit_decision_list_has_the_shots(tmp_path: Path) -> None:
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
    """Frame 45 at 29.97 fps is 1.5015 s on the clock and 00:00:01:15 in time code."""
    write_edl(detection(rate=30000 / 1001), tmp_path / "film.edl")
    assert [event[1] for event in events(tmp_path / "film.edl")] == [
        "00:00:00:00",
        "00:00:00:20",
        "00:00:01:15",
    ]


def test_drop_frame_time_code_is_written(tmp_path: Path) -> None:
    write_edl(detection(rate=30000 / 1001), tmp_path / "film.edl", drop_frame=True)
    assert "FCM: DROP FRAME" in (tmp_path / "film.edl").read_text()
    assert events(tmp_path / "film.edl")[2][1] == "00:00:01;15"
    with pytest.raises(InvalidArgumentError, match="got 24; omit drop-frame"):
        write_edl(detection(rate=24.0), tmp_path / "other.edl", drop_frame=True)
    assert not (tmp_path / "other.edl").exists()


def test_timeline_rate_can_be_set(tmp_path: Path) -> None:
    """Cuts are at 2.0 and 4.5 s; at 25 frames per second, 4.5 s is frame 112 (112.5 rounded to even)."""
    write_edl(detection(), tmp_path / "film.edl", rate=Fraction(25))
    assert [event[1] for event in events(tmp_path / "film.edl")] == [
        "00:00:00:00",
        "00:00:02:00",
        "00:00:04:12",
    ]


def test_shots_without_a_frame_on_the_timeline_are_omitted(tmp_path: Path) -> None:
    write_edl(detection(rate=100.0), tmp_path / "film.edl", rate=Fraction(2))
    # 0, 0.2, 0.45 and 0.6 s are nearest to frames 0, 0, 1 and 1, so only the second shot has a frame.
    assert [event[:3] for event in events(tmp_path / "film.edl")] == [("002", "00:00:00:00", "00:00:00:01")]


def test_line_breaks_in_a_name_do_not_start_a_statement(tmp_path: Path) -> None:
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


def test_opentimelineio_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_chapters_can_be_written_into_a_file(tmp_path: Path) -> None:
    """Runs the command in the docstring, with PyAV instead of the ffmpeg program."""
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


def with_time_code(path: Path, code: str, *, rate: Fraction | int = 25, first: int = 0) -> Path:
    """Write a film of 60 frames whose file states a time code for the first one."""
    film = cut_video(path.with_name(f"plain{path.suffix}"), rate=rate)
    with av.open(str(film)) as source, av.open(str(path), "w") as target:
        target.metadata["timecode"] = code
        video = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = video
                target.mux(packet)
    return path


@pytest.mark.parametrize(
    ("ending", "rate", "code", "expected"),
    [
        ("mov", 25, "10:00:00:00", "10:00:00:20"),
        ("mp4", 25, "10:00:00:10", "10:00:01:05"),
        ("mkv", 24, "09:59:59:23", "10:00:00:19"),
        ("mov", Fraction(30000, 1001), "00:59:59;15", "01:00:00;05"),
        ("mov", 15, "10:00:00:14", "10:00:02:08"),
    ],
)
def test_time_code_of_a_file_is_its_source_time(
    tmp_path: Path, ending: str, rate: Fraction | int, code: str, expected: str
) -> None:
    """The shots begin at frames 0, 20 and 45."""
    film = with_time_code(tmp_path / f"film.{ending}", code, rate=rate)
    found = replace(detection(film, rate=float(rate)), time_code=probe(film).time_code)
    assert found.time_code == code
    write_edl(found, tmp_path / "film.edl")
    lines = events(tmp_path / "film.edl")
    assert (lines[0][2], lines[1][1]) == (expected, expected)
    assert lines[0][3].replace(";", ":") == "00:00:00:00"
    assert ("FCM: DROP FRAME" in (tmp_path / "film.edl").read_text()) is (";" in code)
    write_scene_cuts(found, tmp_path / "film.scenes.edl")
    assert [event[1:3] for event in events(tmp_path / "film.scenes.edl")] == [line[1:3] for line in lines]
    assert all(event[1:3] == event[3:5] for event in events(tmp_path / "film.scenes.edl"))
    write_shots_csv([found], tmp_path / "film.csv")
    with (tmp_path / "film.csv").open(newline="") as file:
        assert [row["start_timecode"] for row in csv.DictReader(file)] == [line[1] for line in lines]
    write_otio(found, tmp_path / "film.otio")
    otio = pytest.importorskip("opentimelineio")
    clips = list(otio.adapters.read_from_file(str(tmp_path / "film.otio")).tracks[0])
    first = clips[0].source_range.start_time.value
    assert [clip.source_range.start_time.value - first for clip in clips] == [0, 20, 45]
    assert clips[0].media_reference.available_range.start_time.value == first == found.clock().first > 0


@pytest.mark.parametrize(
    "rate", [10, 12, 15, 24, 25, 30, 48, 50, 60, *(Fraction(each, 1001) for each in (24000, 60000))]
)
def test_time_code_is_counted_at_a_standard_rate(tmp_path: Path, rate: Fraction | int) -> None:
    """OpenTimelineIO's EDL reader supports only these rates; each frame gets a different number."""
    otio = pytest.importorskip("opentimelineio")
    write_edl(detection(rate=float(rate)), tmp_path / "film.edl")
    text = (tmp_path / "film.edl").read_text()
    stated = re.search(r"time code counts (\d+) frames", text)
    counted = float(stated[1] if stated else rate)
    starts = [otio.opentime.from_timecode(event[1], counted).value for event in events(tmp_path / "film.edl")]
    times = round(counted / float(rate))
    assert starts == [0, 20 * times, 45 * times]


def test_exported_times_include_the_time_before_the_first_frame(tmp_path: Path) -> None:
    """The sound begins 3 s before the first frame, so players show that frame at 3 s."""
    film = cut_video(tmp_path / "film.mkv", rate=25)
    found = replace(detection(film, rate=25.0), offset=3.0)
    write_edl(found, tmp_path / "film.edl")
    assert [event[1] for event in events(tmp_path / "film.edl")] == ["00:00:03:00", "00:00:03:20", "00:00:04:20"]
    write_shots_csv([found], tmp_path / "film.csv")
    with (tmp_path / "film.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["start"]) for row in rows] == pytest.approx([3.0, 3.8, 4.8])
    assert float(rows[2]["transition_start"]) == pytest.approx(4.72)
    write_chapters(found, tmp_path / "film.txt")
    assert "START=3000\nEND=3800\n" in (tmp_path / "film.txt").read_text()
    find_shot_format("stats").write(found, tmp_path / "stats.csv")
    assert (tmp_path / "stats.csv").read_text().splitlines()[1].startswith("0,3.000000,")
    find_shot_format("html").write(found, tmp_path / "film.html")
    assert "<b>2</b> 3.80 to 4.80 s" in (tmp_path / "film.html").read_text()
    write_fcpxml(found, tmp_path / "film.fcpxml")
    (asset,) = ElementTree.parse(tmp_path / "film.fcpxml").iter("asset")
    assert (asset.get("start"), asset.get("duration")) == ("0/25s", "135/25s")


def test_final_cut_pro_project_has_the_shots(tmp_path: Path) -> None:
    film = with_time_code(tmp_path / "film & <1>.mov", "01:00:00:00", rate=Fraction(24000, 1001))
    found = replace(detection(film, rate=24000 / 1001), time_code="01:00:00:00")
    write_fcpxml(found, tmp_path / "film.fcpxml")
    root = ElementTree.parse(tmp_path / "film.fcpxml").getroot()
    assert (root.tag, root.get("version")) == ("fcpxml", "1.9")
    (form,) = root.iter("format")
    assert (form.get("frameDuration"), form.get("width"), form.get("height")) == ("1001/24000s", "192", "128")
    (media,) = root.iter("media-rep")
    assert Path(unquote(urlparse(media.get("src")).path)) == film
    clips = list(root.iter("asset-clip"))
    frame, hour = Fraction(1001, 24000), 86_400
    shown = [
        [Fraction(clip.get(name, "").removesuffix("s")) / frame for name in ("offset", "start", "duration")]
        for clip in clips
    ]
    assert shown == [[0, hour, 20], [20, hour + 20, 25], [45, hour + 45, 15]]
    assert [clip.findtext("note") for clip in clips] == [
        None,
        "hard transition, confidence 0.90",
        "gradual transition, confidence 0.60",
    ]
    assert [clip.find("marker") is not None for clip in clips] == [False, True, False]
