"""Properties of a file, and those that another file lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.support.sounds import tune, write_sounds
from tests.support.streams import write_streams
from tests.support.videos import encode, pan
from vidkin.files.facts import FileFacts, SoundFacts, SubtitleFacts, compare_facts, read_facts

LINES = [(0.1, 0.9, "Hello there"), (1.0, 1.8, "Second line")]
PHONE = {
    "creation_time": "2019-07-03T10:00:00Z",
    "com.apple.quicktime.location.ISO6709": "+48.1000+011.5000/",
    "com.apple.quicktime.make": "Apple",
    "com.apple.quicktime.model": "iPhone 12",
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> FileFacts:
    return read_facts(write_streams(tmp_path_factory.mktemp("facts") / "plain.mp4"))


def kinds(kept: FileFacts, removed: FileFacts, speed: float = 1.0) -> list[str]:
    return [finding.kind for finding in compare_facts(kept, removed, speed=speed)]


def texts(kept: FileFacts, removed: FileFacts) -> list[str]:
    return [finding.text for finding in compare_facts(kept, removed)]


def test_streams_and_tags_are_read(tmp_path: Path, plain: FileFacts) -> None:
    full = read_facts(
        write_streams(
            tmp_path / "full.mkv",
            subtitles=[("ger", LINES), ("eng", LINES)],
            chapters=["Begin", "End"],
            attachments={"font.ttf": b"a font"},
            tags={"title": "My film", "creation_time": "2019-07-03T10:00:00Z", "comment": "At\nthe lake"},
            video_tags={"timecode": "01:00:00:00"},
        )
    )
    assert [track.language for track in full.subtitles] == ["ger", "eng"]
    assert full.chapters == ("Begin", "End")
    assert [attachment.name for attachment in full.attachments] == ["font.ttf"]
    assert (full.title, full.comment, full.date) == ("My film", "At the lake", "2019-07-03T10:00:00Z")
    assert full.time_code == "01:00:00:00"
    assert (full.width, full.height, full.frame_rate, full.bit_depth, full.transfer) == (96, 64, 10.0, 8, "SDR")
    assert texts(plain, full) == [
        "a subtitle track in German and a subtitle track in English, the kept file has none",
        "2 chapters, the kept file has none",
        "an attached file (font.ttf), which the kept file lacks",
        "time code 01:00:00:00, the kept file has none",
        "the date 2019-07-03T10:00:00Z, the kept file has no date",
        "title 'My film', the kept file has no title",
        "comment 'At the lake', the kept file has no comment",
    ]
    assert texts(full, plain) == texts(full, full) == []
    assert json.loads(json.dumps(full.to_dict()))["subtitles"][0]["codec"] == "subrip"


def test_phone_tags_are_read(tmp_path: Path, plain: FileFacts) -> None:
    phone = read_facts(write_streams(tmp_path / "phone.mov", tags=PHONE))
    assert (phone.date, phone.location, phone.camera) == (
        "2019-07-03T10:00:00Z",
        "+48.1000+011.5000",
        "Apple iPhone 12",
    )
    assert texts(plain, phone) == [
        "the date 2019-07-03T10:00:00Z, the kept file has no date",
        "taken at +48.1000+011.5000, the kept file has no location",
        "camera 'Apple iPhone 12', the kept file has no camera",
    ]


def test_tags_written_by_programs_are_ignored(tmp_path: Path, plain: FileFacts) -> None:
    tags = {"encoder": "HandBrake", "major_brand": "isom", "creation_time": "1904-01-01T00:00:00Z"}
    assert texts(plain, read_facts(write_streams(tmp_path / "tool.mkv", tags=tags))) == []


def test_a_second_video_track_is_reported_as_not_compared(tmp_path: Path, plain: FileFacts) -> None:
    double = read_facts(write_streams(tmp_path / "double.mkv", second_video=True))
    assert double.second_videos == ("96x64 h264",)
    assert kinds(plain, double) == kinds(double, double) == ["picture"]
    assert kinds(double, plain) == []


def test_audio_tracks_are_read(tmp_path: Path) -> None:
    path = write_sounds(
        tmp_path / "two.mkv", [tune(1, seed=1), tune(1, seed=2)], pictures="coffee", languages=["eng", "de"]
    )
    assert [(s.codec, s.channels, s.sample_rate, s.language) for s in read_facts(path).sounds] == [
        ("aac", 1, 16000, "eng"),
        ("aac", 1, 16000, "de"),
    ]


@pytest.mark.parametrize(
    ("pixel_format", "codec", "suffix", "expected"),
    [
        ("yuv420p10le", "libx264", ".mp4", ["dynamic-range"]),
        ("yuv444p", "libx264", ".mp4", ["resolution"]),
        ("rgba", "png", ".mov", ["resolution", "alpha"]),
    ],
)
def test_lost_bit_depth_chroma_or_alpha_is_found(
    tmp_path: Path, plain: FileFacts, pixel_format: str, codec: str, suffix: str, expected: list[str]
) -> None:
    frames = [np.dstack([image]) for image in pan("coffee", 5, width=96, height=64)]
    path = encode(tmp_path / f"deep{suffix}", frames, codec=codec, pixel_format=pixel_format)
    assert kinds(plain, read_facts(path)) == expected
    assert kinds(read_facts(path), plain) == []


def test_lost_high_dynamic_range_is_found_and_outweighs_bit_depth(tmp_path: Path, plain: FileFacts) -> None:
    options = {"x264-params": "transfer=arib-std-b67:colorprim=bt2020:colormatrix=bt2020nc"}
    frames = list(pan("coffee", 5, width=96, height=64))
    hdr = read_facts(encode(tmp_path / "hdr.mp4", frames, pixel_format="yuv420p10le", options=options))
    assert hdr.transfer == "HLG"
    assert texts(plain, hdr) == ["high dynamic range (HLG), the kept file has standard range"]
    assert kinds(replace(plain, bit_depth=10), hdr) == ["dynamic-range"]
    assert kinds(hdr, hdr) == kinds(hdr, plain) == []
    assert kinds(hdr, replace(hdr, dynamic_metadata=("Dolby Vision",))) == ["dynamic-range"]


@pytest.mark.parametrize(
    ("kept", "removed", "speed", "is_found"),
    [
        (30, 60, 1.0, True),
        (50, 60, 1.0, True),
        (25, 30, 1.0, True),
        (29.97, 30, 1.0, False),
        (23.976, 25, 1.0, False),
        (60, 30, 1.0, False),
        (25, 25, 0.5, True),
        (50, 25, 0.5, False),
    ],
)
def test_clearly_higher_frame_rate_is_found(
    plain: FileFacts, kept: float, removed: float, speed: float, is_found: bool
) -> None:
    rates = [replace(plain, frame_rate=rate, fast_rate=rate) for rate in (kept, removed)]
    assert kinds(*rates, speed=speed) == ["frame-rate"] * is_found


def test_bursts_in_a_variable_frame_rate_are_found(tmp_path: Path) -> None:
    """Simulates a screen recording: three seconds at 5 frames per second, one second at 50."""
    times = [*np.arange(0, 3, 0.2), *np.arange(3, 4, 0.02)]
    frames = list(pan("coffee", len(times), width=96, height=64))
    screen = read_facts(encode(tmp_path / "screen.mp4", frames, rate=Fraction(1000), times=times, options={"bf": "0"}))
    steady = read_facts(encode(tmp_path / "steady.mp4", frames, rate=Fraction(25)))
    assert screen.is_variable
    assert screen.frame_rate < 20
    assert screen.fast_rate == pytest.approx(50, rel=0.02)
    assert not steady.is_variable
    assert kinds(steady, screen) == ["frame-rate"]


def test_fields_of_interlaced_video_count_as_frames(plain: FileFacts) -> None:
    fields = replace(plain, is_interlaced=True)
    double = replace(plain, frame_rate=20.0, fast_rate=20.0)
    assert kinds(plain, fields) == ["frame-rate"]
    assert kinds(double, fields) == kinds(fields, double) == kinds(fields, plain) == []


def test_more_pixels_are_found_but_padding_is_ignored(plain: FileFacts) -> None:
    large, padded = (replace(plain, width=1920, height=height) for height in (1080, 1088))
    assert texts(plain, large) == ["1920x1080 pixels, the kept file has 96x64"]
    assert kinds(large, padded) == kinds(large, plain) == []


def test_surround_channels_are_found_in_each_language(plain: FileFacts) -> None:
    def add_sound_scores(*sounds: tuple[str, int, str]) -> FileFacts:
        tracks = (
            SoundFacts(n, "ac3", channels, layout, 48000, language)
            for n, (language, channels, layout) in enumerate(sounds)
        )
        return replace(plain, sounds=tuple(tracks))

    surround = add_sound_scores(("ger", 2, "stereo"), ("eng", 6, "5.1"))
    other_way = add_sound_scores(("de", 6, "5.1"), ("en", 2, "stereo"))
    assert texts(other_way, surround) == ["5.1 sound in English, the kept file has stereo"]
    assert texts(surround, surround) == texts(add_sound_scores(("", 6, "5.1")), surround) == []
    # Stereo and missing tracks are checked by the sound proof.
    assert texts(add_sound_scores(("eng", 1, "mono")), add_sound_scores(("eng", 2, "stereo"))) == []
    assert texts(plain, surround) == []


def test_telephone_sample_rate_is_reported_as_lower_quality(plain: FileFacts) -> None:
    low, full, opus = (
        replace(plain, sounds=(SoundFacts(0, codec, 1, "mono", rate),))
        for codec, rate in (("amr_nb", 8000), ("aac", 44100), ("opus", 48000))
    )
    assert texts(low, full) == ["sound at 44,100 samples a second, the kept file has 8,000"]
    assert texts(full, low) == texts(full, opus) == texts(low, opus) == []


def test_subtitles_without_a_language_match_any_language(plain: FileFacts) -> None:
    def with_subtitles(*languages: str) -> FileFacts:
        return replace(plain, subtitles=tuple(SubtitleFacts(n, "subrip", code) for n, code in enumerate(languages)))

    assert kinds(with_subtitles("deu"), with_subtitles("ger")) == []
    assert kinds(with_subtitles(""), with_subtitles("ger")) == []
    assert kinds(with_subtitles("eng"), with_subtitles("")) == []
    assert texts(with_subtitles(""), with_subtitles("ger", "eng")) == [
        "a subtitle track in English, the kept file has 1"
    ]
    assert texts(with_subtitles("ger"), with_subtitles("ger", "ger")) == [
        "a subtitle track in German, the kept file has 1"
    ]


@pytest.mark.parametrize(
    ("kept", "removed", "is_found"),
    [
        ("2021-05-01T09:00:00Z", "2019-07-03T10:00:00Z", True),  # kept file sent later
        ("2019-07-03T18:31:00Z", "2019-07-03T10:00:07Z", True),  # kept file sent on the same day
        ("2019-07-03T10:00:00Z", "2021-05-01T09:00:00Z", False),  # removed file copied later
        ("2019-07-03T10:00:00Z", "2019-07-03T10:00:00Z", False),
        ("2019-07-03T10:00:01Z", "2019-07-03T10:00:00Z", False),
        ("2019-07-03T10:00:00Z", "2019-07-03T12:00:00+0200", False),
        ("2019-07-03T12:00:00Z", "2019-07-03T10:00:00Z", False),  # camera that wrote local time as UTC
        ("2019-07-03", "2019-07-03T10:00:00Z", False),
        ("2020", "2019-07-03", True),
    ],
)
def test_clearly_earlier_date_is_found(plain: FileFacts, kept: str, removed: str, is_found: bool) -> None:
    assert kinds(replace(plain, date=kept), replace(plain, date=removed)) == ["metadata"] * is_found


def test_different_location_is_found_but_a_rounded_one_is_not(plain: FileFacts) -> None:
    here, rounded, elsewhere = (
        replace(plain, location=at) for at in ("+48.1000+011.5000", "+48.10+011.50", "+40.7-074.0")
    )
    assert kinds(here, rounded) == kinds(rounded, here) == []
    assert kinds(elsewhere, here) == ["metadata"]


def test_lost_covers_and_chapter_titles_are_found_and_numbered_chapters_are_counted(plain: FileFacts) -> None:
    numbered, named = (replace(plain, chapters=titles) for titles in (("Chapter 1", "Chapter 2"), ("Start", "Lake")))
    assert kinds(named, numbered) == []
    assert texts(numbered, named) == ["2 chapters, the kept file has chapters with other titles"]
    assert texts(plain, replace(plain, covers=1)) == ["a cover image, the kept file has none"]
    assert texts(plain, replace(plain, data=("GoPro data",))) == ["GoPro data, the kept file has none"]
