"""Recurring segments by sound: a song at the start of several files with different frames."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.sounds import RATE, SONG_FILES, tune, write_song_season, write_sounds
from vidkin import Index
from vidkin.errors import InvalidArgumentError
from vidkin.index import By, RecurringGroup
from vidkin.rendering import clock, describe_group


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files that have only a song of eight seconds in common."""
    folder = tmp_path_factory.mktemp("season")
    write_song_season(folder)
    with Index.open(folder / "library.vidkin", create=True) as index:
        index.add([folder], workers=1)
    return folder


def find(season: Path, by: By, **options: bool) -> list[RecurringGroup]:
    with Index.open(season / "library.vidkin") as index:
        return index.recurring(by=by, remember=False, **options)


@pytest.mark.parametrize("by", ["sound", "either"])
def test_song_over_different_frames_recurs_by_its_sound(season: Path, by: By) -> None:
    (group,) = find(season, by)
    found = {Path(one.path).stem: one for one in group.occurrences}
    assert set(found) == set(SONG_FILES)
    for name, (before, _) in SONG_FILES.items():
        one = found[name]
        assert (one.start, one.end) == (pytest.approx(before, abs=0.3), pytest.approx(before + 8, abs=0.3))
        assert one.sound == one.score > 0.7
        assert one.picture is not None
        assert one.picture < 0.2
        assert one.speed == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize("by", ["picture", "both"])
def test_song_over_different_frames_does_not_recur_by_frames(season: Path, by: By) -> None:
    assert find(season, by) == []


def test_invalid_rules_are_refused(season: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="by must be picture, sound, either or both, got 'smell'"):
        find(season, "smell")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="with inside, by must be 'picture', got 'sound'"):
        find(season, "sound", inside=True)


def test_group_states_the_evidence_that_it_was_found_by(season: Path) -> None:
    (group,) = find(season, "either")
    assert (group.found_by, group.kind) == ("sound", "opening")
    assert describe_group(0, group) == f"A: opening, {clock(group.duration)} long, in 3 of 3 files, matched by sound"
    assert group.to_dict()["found_by"] == "sound"
    with pytest.raises(InvalidArgumentError, match="found_by must be one of 'picture', 'sound', got 'smell'"):
        replace(group, found_by="smell")  # type: ignore[arg-type]


def test_decisions_about_sound_and_frames_are_separate(season: Path, tmp_path: Path) -> None:
    shutil.copytree(season / "library.vidkin", tmp_path / "library.vidkin")
    with Index.open(tmp_path / "library.vidkin") as index:
        (group,) = index.recurring(by="sound")
        index.reject_recurring(group)
        assert index.recurring(by="sound") == index.recurring(by="either") == []
        (rejected,) = index.rejected_recurring()
        assert (rejected.found_by, len(rejected.occurrences)) == ("sound", 3)
        index.forget_recurring(rejected)
        # The name and start come from the user, the scores from the search.
        first, *others = group.occurrences
        index.confirm_recurring(
            replace(group, name="Song", occurrences=(replace(first, start=first.start + 1), *others))
        )
        (confirmed,) = index.recurring(by="either")
        assert (confirmed.name, confirmed.is_confirmed, confirmed.found_by) == ("Song", True, "sound")
        assert confirmed.occurrences[0].start == pytest.approx(first.start + 1, abs=1e-6)
        assert confirmed.occurrences[0].sound == first.sound
        # The frames have nothing in common and form no group.
        assert index.recurring(by="picture") == index.recurring(by="both") == []


@pytest.mark.thorough
def test_jingle_of_four_seconds_is_found_to_a_seventh_of_a_second(tmp_path: Path) -> None:
    """It is in the middle of files that show different footage, twice in one of them."""
    jingle = tune(4, seed=50)
    places = {"one": [3.0], "two": [6.5], "three": [1.25, 9.0]}
    for number, (name, begins) in enumerate(places.items()):
        sound = tune(14, seed=60 + number)
        for begin in begins:
            first = round(begin * RATE)
            sound[first : first + len(jingle)] = jingle
        write_sounds(tmp_path / f"{name}.mkv", [sound], pictures=["rocket", "coffee", "chelsea"][number])
    with Index.open(tmp_path / "library.vidkin", create=True) as index:
        index.add([tmp_path], workers=1)
        groups = index.recurring(by="sound")
    found = sorted((Path(one.path).stem, one.start, one.end) for group in groups for one in group.occurrences)
    expected = sorted((name, begin, begin + 4) for name, begins in places.items() for begin in begins)
    assert [name for name, *_ in found] == [name for name, *_ in expected]
    for (_, start, end), (_, begin, stop) in zip(found, expected, strict=True):
        assert (start, end) == (pytest.approx(begin, abs=0.15), pytest.approx(stop, abs=0.15))
