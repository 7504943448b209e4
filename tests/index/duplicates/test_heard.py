"""Groups of copies by sound; sound alone never makes a file removable."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.support.sounds import Samples, tune, write_sounds
from vidkin import Index
from vidkin.errors import InvalidArgumentError
from vidkin.index import By, plan_removal
from vidkin.index.duplicates.heard import ONLY_SOUND, select_pieces
from vidkin.media import iter_sound
from vidkin.rendering import describe_member
from vidkin.similarity import SOUND_RATE, SoundFeatures


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video, a copy with the same sound, one with different sound, and its sound over other frames."""
    folder = tmp_path_factory.mktemp("heard")
    one, other = tune(9, seed=1), tune(9, seed=2)
    write_sounds(folder / "rocket.mkv", [one], pictures="rocket")
    write_sounds(folder / "rocket copy.mkv", [one], pictures="rocket", bit_rate=48_000)
    write_sounds(folder / "rocket dubbed.mkv", [other], pictures="rocket")
    write_sounds(folder / "coffee with its sound.mkv", [one], pictures="coffee")
    write_sounds(folder / "quiet.mkv", [], pictures="chelsea")
    with Index.open(folder / "library.vidkin", create=True) as index:
        index.add([folder], workers=1)
    return folder


def names_by(library: Path, by: By) -> list[set[str]]:
    with Index.open(library / "library.vidkin") as index:
        return [{Path(member.path).stem for member in group.members} for group in index.duplicates(by=by)]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("picture", {"rocket", "rocket copy", "rocket dubbed"}),
        ("sound", {"rocket", "rocket copy", "coffee with its sound"}),
        ("either", {"rocket", "rocket copy", "rocket dubbed", "coffee with its sound"}),
        ("both", {"rocket", "rocket copy"}),
    ],
)
def test_rule_determines_which_videos_are_grouped(library: Path, by: By, expected: set[str]) -> None:
    assert names_by(library, by) == [expected]


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["sound", "either"])
def test_same_sound_alone_makes_no_file_removable(library: Path, tmp_path: Path, by: By) -> None:
    for name in ("rocket.mkv", "coffee with its sound.mkv"):
        shutil.copy(library / name, tmp_path / name)
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
        (group,) = index.duplicates(by=by)
        (member,) = (member for member in group.members if not member.best)
        assert member.score > 0.9
        assert member.doubt == ONLY_SOUND
        assert not member.is_spare
        assert "same sound as" in describe_member(member, group)
        assert plan_removal([group], records=index.videos()).groups == ()


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["sound", "either", "both"])
def test_copy_by_frames_is_removable_under_any_rule(library: Path, tmp_path: Path, by: By) -> None:
    shutil.copy(library / "rocket.mkv", tmp_path / "one.mkv")
    shutil.copy(library / "rocket copy.mkv", tmp_path / "two.mkv")
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
        by_picture, (group,) = index.duplicates(), index.duplicates(by=by)
        assert [member.is_spare for member in group.members] == [False, True]
        assert [member.is_spare for group in by_picture for member in group.members] == [False, True]


def test_members_have_frame_and_sound_scores(library: Path) -> None:
    with Index.open(library / "library.vidkin") as index:
        (group,) = index.duplicates()
    said = {Path(member.path).stem: (member.picture, member.sound) for member in group.members if not member.best}
    assert all(picture is not None and picture > 0.7 for picture, _ in said.values())
    heard = [sound for _, sound in said.values() if sound is not None]
    assert len(heard) == 2
    assert min(heard) < 0.2
    assert max(member.sound or 0.0 for member in group.members) > 0.9
    assert group.best.picture == max(picture or 0.0 for picture, _ in said.values())


def test_sound_scores_are_stored_for_the_next_search(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.open(library / "library.vidkin") as index:
        first = index.duplicates()

    def refuse(*tracks: object) -> None:
        raise AssertionError("a known pair is compared again")

    monkeypatch.setattr("vidkin.index.duplicates.heard.best_of_tracks", refuse)
    with Index.open(library / "library.vidkin") as index:
        assert index.duplicates() == first


def test_rule_that_uses_sound_needs_an_index_with_sound(library: Path, tmp_path: Path) -> None:
    shutil.copy(library / "quiet.mkv", tmp_path / "quiet.mkv")
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.use_sound(False)
        index.add([tmp_path], workers=1)
        with pytest.raises(
            InvalidArgumentError, match="by='both' needs audio fingerprints, which the index does not have"
        ):
            index.duplicates(by="both")
        with pytest.raises(InvalidArgumentError, match="by must be picture, sound, either or both, got 'smell'"):
            index.duplicates(by="smell")  # type: ignore[arg-type]


def test_lookup_of_a_long_track_samples_half_a_minute_of_its_loud_parts() -> None:
    times = np.sort(np.random.default_rng(0).integers(0, 600 * 62, 12_000)).astype(np.int32)
    times = times[(times < 62 * 100) | (times > 62 * 200)]  # a silent segment
    sound = SoundFeatures(times, np.full(len(times), 60, np.uint8), np.ones(len(times), np.bool_), 600.0)
    asked = select_pieces(sound)
    seconds = asked.times / 62.5
    assert seconds.min() < 10
    assert seconds.max() > 580
    assert len(asked) == pytest.approx(len(sound) * 32 / 500, rel=0.1)
    assert not ((seconds > 99.3) & (seconds < 199)).any()


def real_samples(path: Path, first: float, seconds: float) -> Samples:
    """Read a segment of the sound of a file at 8 kHz."""
    found = np.zeros(round((first + seconds) * SOUND_RATE), np.float32)

    def listen(place: int, part: Samples) -> None:
        end = min(place + len(part), len(found))
        found[place:end] = part[: max(end - place, 0)]

    iter_sound(path, lambda track: listen if track.number == 0 else lambda place, part: None, end=first + seconds)
    return found[round(first * SOUND_RATE) :]


def write_take(path: Path, camera: Path, first: float, sound: Samples, *, bit_rate: int = 400_000) -> None:
    """Write twelve seconds of a camera recording, from this second on, with other sound."""
    with av.open(str(camera)) as source, av.open(str(path), "w") as target:
        video = target.add_stream("libx264", rate=10, options={"preset": "ultrafast", "threads": "1"})
        video.width, video.height, video.pix_fmt, video.bit_rate = 256, 144, "yuv420p", bit_rate
        audio = target.add_stream("aac", rate=SOUND_RATE, layout="mono")
        assert isinstance(audio, av.AudioStream)
        shown = 0
        for frame in source.decode(video=0):
            if frame.time is None or frame.time - first < shown / 10 or shown == 120:
                continue
            scaled = frame.reformat(256, 144, "yuv420p")
            scaled.pts, scaled.time_base = shown, Fraction(1, 10)
            target.mux(video.encode(scaled))
            shown += 1
        target.mux(video.encode(None))
        for place in range(0, len(sound), 1024):
            part = av.AudioFrame.from_ndarray(sound[place : place + 1024][None], format="fltp", layout="mono")
            part.sample_rate, part.pts, part.time_base = SOUND_RATE, place, Fraction(1, SOUND_RATE)
            target.mux(audio.encode(part))
        target.mux(audio.encode(None))


@pytest.mark.large
def test_of_two_real_takes_and_a_copy_of_one_only_a_copy_is_removed(shared_data: Path, tmp_path: Path) -> None:
    """The takes show a road at two times, fifteen seconds apart, with the sound of two films."""
    camera = shared_data / "videos" / "intel" / "car-detection.mp4"
    one = real_samples(shared_data / "odd" / "nasa_13013.mp4.audio.mp3", 0, 12)
    other = real_samples(shared_data / "shots" / "sintel_trailer.mp4", 28, 12)
    write_take(tmp_path / "take.mkv", camera, 0, one)
    write_take(tmp_path / "other take.mkv", camera, 15, other)
    write_take(tmp_path / "take copy.mkv", camera, 0, one, bit_rate=100_000)
    for sound in (False, True):
        with Index.open(tmp_path / f"{sound}.vidkin", create=True) as index:
            index.use_sound(sound)
            index.add([tmp_path], workers=1)
            (group,) = index.duplicates(prove=True)
        (removed,) = (Path(member.path).stem for member in group.members if member.kept_by)
        assert removed in {"take", "take copy"}
