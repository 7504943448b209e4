"""Sound as independent evidence: stored with the features and reported with the frame score."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.sounds import tune, write_sounds
from vidkin import Index, compare
from vidkin.errors import CollectionDamagedError, InvalidArgumentError, MediaError
from vidkin.index import SoundFiles, find_offset, open_place, plan_removal, repair
from vidkin.index.query.sound import score_by


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two videos, copies and variants of them with other sound, and a silent video."""
    folder = tmp_path_factory.mktemp("sounds")
    one, other = tune(8, seed=1), tune(8, seed=2)
    write_sounds(folder / "rocket.mp4", [one], pictures="rocket")
    write_sounds(folder / "coffee with its sound.mkv", [one], pictures="coffee")
    write_sounds(folder / "coffee.mp4", [other], pictures="coffee")
    write_sounds(folder / "quiet.mp4", [], pictures="chelsea")
    with Index.open(folder / "library.vidkin", create=True) as index:
        index.add([folder], workers=1)
    return folder


def by_name(index: Index, query: Path, **options: str) -> dict[str, tuple[float | None, float | None, float]]:
    """Frame score, sound score and score of each match."""
    found = index.search(query, **options)  # type: ignore[arg-type]
    return {Path(match.path).name: (match.picture, match.sound, match.score) for match in found}


def test_search_reports_frame_and_sound_scores(library: Path) -> None:
    with Index.open(library / "library.vidkin") as index:
        found = by_name(index, library / "rocket.mp4")
    assert found["rocket.mp4"] == (1.0, pytest.approx(1.0, abs=0.01), 1.0)
    # By default, the score is the frame score, whatever the sound.
    assert all(score == picture for picture, _, score in found.values())


@pytest.mark.thorough
def test_search_by_frames_reads_no_sound(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are the same as with sound."""

    def refuse(*given: object, **options: object) -> None:
        raise AssertionError("the sound of the query is read")

    with Index.open(library / "library.vidkin") as index:
        beside = by_name(index, library / "rocket.mp4")
        monkeypatch.setattr("vidkin.index.query.sound.hear", refuse)
        found = by_name(index, library / "rocket.mp4", by="picture")
    assert {name: score for name, (_, _, score) in found.items()} == {
        name: score for name, (_, _, score) in beside.items()
    }
    assert all(sound is None for _, sound, _ in found.values())


@pytest.mark.thorough
@pytest.mark.parametrize(("by", "expected"), [("sound", 1.0), ("either", 1.0), ("both", 0.0)])
def test_rule_determines_the_score_of_the_same_sound_over_other_frames(library: Path, by: str, expected: float) -> None:
    with Index.open(library / "library.vidkin") as index:
        found = by_name(index, library / "rocket.mp4", by=by)
    if by == "both":
        assert found.get("coffee with its sound.mkv", (0, 0, 0.0))[2] < 0.2
        return
    assert found["coffee with its sound.mkv"][2] == pytest.approx(expected, abs=0.02)
    assert by == "either" or "coffee.mp4" not in found or found["coffee.mp4"][2] < 0.2


@pytest.mark.thorough
def test_text_says_whether_frames_or_sound_agree(library: Path) -> None:
    with Index.open(library / "library.vidkin") as index:
        found = {Path(match.path).name: match for match in index.search(library / "rocket.mp4", by="either")}
    assert found["rocket.mp4"].witnesses.endswith(": both")
    assert found["coffee with its sound.mkv"].witnesses.endswith(": same sound over another picture")
    with Index.open(library / "library.vidkin") as index:
        found = {Path(match.path).name: match for match in index.search(library / "coffee.mp4")}
    assert found["coffee with its sound.mkv"].witnesses.endswith(": picture only")


def test_song_is_found_by_its_sound(library: Path, tmp_path: Path) -> None:
    song = write_sounds(tmp_path / "song.mp3", [tune(8, seed=1)[32_000:96_000]], codec="libmp3lame")
    with Index.open(library / "library.vidkin") as index:
        found = index.search(song)
        assert {Path(match.path).name for match in found if match.score > 0.7} == {
            "rocket.mp4",
            "coffee with its sound.mkv",
        }
        assert all(match.picture is None and match.sound == match.score for match in found)
        segment = found[0].sound_segments[0]
        assert segment.target_start - segment.query_start == pytest.approx(2.0, abs=0.05)
        # A segment of the song.
        part = index.search(song, start=1.0, end=3.5)
        assert part[0].score > 0.7


def test_video_without_sound_is_compared_by_its_frames_alone(library: Path) -> None:
    with Index.open(library / "library.vidkin") as index:
        found = index.search(library / "quiet.mp4")
    assert Path(found[0].path).name == "quiet.mp4"
    assert all(match.sound is None and match.witnesses == "" for match in found)


@pytest.mark.thorough
def test_index_without_sound_works_until_sound_is_required(library: Path, tmp_path: Path) -> None:
    for name in ("rocket.mp4", "quiet.mp4"):
        shutil.copy(library / name, tmp_path / name)
    song = write_sounds(tmp_path / "song.mp3", [tune(5, seed=1)], codec="libmp3lame")
    with Index.open(tmp_path / "old.vidkin", create=True) as index:
        index.use_sound(False)
        index.add([tmp_path], workers=1)
        assert index.search(tmp_path / "rocket.mp4")[0].sound is None
        with pytest.raises(
            InvalidArgumentError, match="by='sound' needs audio fingerprints, which the index does not have"
        ):
            index.search(tmp_path / "rocket.mp4", by="sound")
        with pytest.raises(MediaError, match="only sound"):
            index.search(song)
        index.use_sound(True)
        report = index.add([tmp_path], workers=1)
        # Only the file with sound is read again.
        assert [Path(outcome.path).name for outcome in report.added] == ["rocket.mp4"]
        assert Path(index.search(song)[0].path).name == "rocket.mp4"
        assert not index.add([tmp_path], workers=1).added


def test_unknown_rule_is_refused(library: Path) -> None:
    with (
        Index.open(library / "library.vidkin") as index,
        pytest.raises(InvalidArgumentError, match="by must be picture, sound, either or both, got 'smell'"),
    ):
        index.search(library / "rocket.mp4", by="smell")  # type: ignore[arg-type]


@pytest.mark.thorough
def test_landmarks_are_deleted_with_the_last_copy_of_a_video(library: Path, tmp_path: Path) -> None:
    shutil.copy(library / "rocket.mp4", tmp_path / "one.mp4")
    shutil.copy(library / "rocket.mp4", tmp_path / "two.mp4")
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
        (content,) = SoundFiles(index.place).contents()
        index.remove(tmp_path / "one.mp4")
        assert SoundFiles(index.place).contents() == {content}
        assert index.search(tmp_path / "two.mp4", by="sound")[0].score > 0.9
        index.remove(tmp_path / "two.mp4")
        assert SoundFiles(index.place).contents() == set()


@pytest.mark.thorough
def test_damaged_landmarks_are_detected_removed_and_rebuilt(library: Path, tmp_path: Path) -> None:
    shutil.copy(library / "rocket.mp4", tmp_path / "rocket.mp4")
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
    (file,) = (tmp_path / "library.vidkin" / "sound").rglob("*.landmarks")
    whole = file.read_bytes()
    file.write_bytes(whole[:-7] + bytes(7))
    with Index.open(tmp_path / "library.vidkin") as index:
        with pytest.raises(CollectionDamagedError, match="its checksum is wrong"):
            SoundFiles(index.place).read(file.name.removesuffix(".landmarks"))
        # Damaged sound is ignored, and the frame score is unchanged.
        assert index.search(tmp_path / "rocket.mp4")[0].score == 1.0
    (part,) = repair(open_place(tmp_path / "library.vidkin"))
    assert part.part == str(tmp_path / "rocket.mp4")
    assert not file.exists()
    with Index.open(tmp_path / "library.vidkin") as index:
        index.add([tmp_path], workers=1)
        assert file.read_bytes() == whole
        assert index.search(tmp_path / "rocket.mp4")[0].sound == pytest.approx(1.0, abs=0.01)


@pytest.mark.thorough
def test_truncated_table_is_detected_and_rebuilt(library: Path, tmp_path: Path) -> None:
    shutil.copytree(library / "library.vidkin", tmp_path / "library.vidkin")
    (table,) = (tmp_path / "library.vidkin").rglob("*.pairs")
    table.write_bytes(table.read_bytes()[:-100])
    with Index.open(tmp_path / "library.vidkin") as index:
        with pytest.raises(CollectionDamagedError, match="its tables are corrupted"):
            index.search(library / "rocket.mp4", by="sound")
        index.add([library], workers=1)
        assert index.search(library / "rocket.mp4", by="sound")[0].score > 0.9


@pytest.mark.thorough
def test_match_and_compare_report_the_sound_score(library: Path) -> None:
    first, second = library / "rocket.mp4", library / "coffee with its sound.mkv"
    comparison = compare(first, second)
    assert comparison.score < 0.2
    assert comparison.sound is not None
    assert comparison.sound > 0.9
    with Index.open(library / "library.vidkin") as index:
        assert index.match(first, second).sound == pytest.approx(comparison.sound, abs=0.05)
    assert compare(first, library / "quiet.mp4").sound is None


@pytest.mark.thorough
def test_recordings_of_one_event_are_aligned_to_a_fiftieth_of_a_second(tmp_path: Path) -> None:
    event = tune(14, seed=3)
    first = write_sounds(tmp_path / "first.mkv", [event[: 10 * 16_000]], pictures="rocket")
    second = write_sounds(tmp_path / "second.mkv", [event[round(3.21 * 16_000) :]], pictures="coffee", bit_rate=32_000)
    found = find_offset(first, second)
    assert found.offset == pytest.approx(-3.21, abs=0.02)
    assert found.speed == 1.0
    assert find_offset(second, first).offset == pytest.approx(3.21, abs=0.02)
    other = write_sounds(tmp_path / "other.wav", [tune(9, seed=4)], codec="pcm_s16le")
    assert find_offset(first, other).offset is None


def test_rules_return_the_higher_the_lower_or_one_of_the_scores() -> None:
    assert [score_by(rule, 0.3, 0.9) for rule in ("picture", "sound", "either", "both")] == [0.3, 0.9, 0.9, 0.3]
    assert [score_by(rule, 0.3, None) for rule in ("picture", "sound", "either", "both")] == [0.3, 0.0, 0.3, 0.0]


@pytest.mark.thorough
def test_sound_distinguishes_two_takes_that_look_alike(tmp_path: Path) -> None:
    """Static title cards look the same, but different sound shows that the videos are not copies."""
    for name, seed in (("one.mkv", 1), ("two.mkv", 2)):
        write_sounds(tmp_path / name, [tune(8, seed=seed)], pictures="rocket", is_still=True)
    write_sounds(tmp_path / "three.mkv", [tune(8, seed=1)], pictures="rocket", is_still=True, bit_rate=48_000)
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
        (group,) = index.duplicates()
    doubts = {Path(member.path).name: member.doubt for member in group.members if not member.best}
    different = {name for name, doubt in doubts.items() if doubt == "different sound"}
    assert different == ({"two.mkv"} if "two.mkv" in doubts else {"one.mkv", "three.mkv"})
    assert not any(member.is_spare for member in group.members if Path(member.path).name in different)


@pytest.mark.large
def test_two_songs_over_one_still_are_never_planned_as_duplicates(tmp_path: Path) -> None:
    """For example, a channel may show the same album cover, encoded to the same bytes, for every song."""
    for name, seed in (("one.mkv", 1), ("two.mkv", 2)):
        write_sounds(tmp_path / name, [tune(8, seed=seed)], pictures="rocket", is_still=True)
    shutil.copy(tmp_path / "one.mkv", tmp_path / "same.mkv")
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
        plan = plan_removal(index.duplicates(prove=True), records=index.videos())
    pairs = {frozenset(Path(one.path).stem for one in (group.keep, *group.remove)) for group in plan.groups}
    assert pairs == {frozenset(("one", "same"))}
