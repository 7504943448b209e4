"""Recurring segments by sound: a song that opens several files with different pictures."""

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
    """Three files that have nothing in common but a song of eight seconds."""
    folder = tmp_path_factory.mktemp("season")
    write_song_season(folder)
    with Index.open(folder / "library.vidkin", create=True) as index:
        index.add([folder], workers=1)
    return folder


def find(season: Path, by: By, **options: bool) -> list[RecurringGroup]:
    with Index.open(season / "library.vidkin") as index:
        return index.recurring(by=by, remember=False, **options)


@pytest.mark.parametrize("by", ["sound", "either"])
def test_a_song_over_other_pictures_recurs_by_its_sound(season: Path, by: By) -> None:
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
def test_a_song_over_other_pictures_does_not_recur_by_the_picture(season: Path, by: By) -> None:
    assert find(season, by) == []


def test_a_rule_of_recurring_is_checked(season: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="by must be picture, sound, either or both, got 'smell'"):
        find(season, "smell")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="with inside, by must be 'picture', got 'sound'"):
        find(season, "sound", inside=True)


def test_a_group_says_what_shows_it_and_one_that_the_pictures_show_is_not_told_twice(season: Path) -> None:
    (group,) = find(season, "either")
    assert (group.found_by, group.kind) == ("sound", "opening")
    assert describe_group(0, group) == f"A: opening, {clock(group.duration)} long, in 3 of 3 files, matched by sound"
    assert group.to_dict()["found_by"] == "sound"
    with pytest.raises(InvalidArgumentError, match="found_by must be one of 'picture', 'sound', got 'smell'"):
        replace(group, found_by="smell")  # type: ignore[arg-type]


def test_verdicts_on_what_is_heard_are_kept_apart_from_those_on_what_is_seen(season: Path, tmp_path: Path) -> None:
    shutil.copytree(season / "library.vidkin", tmp_path / "library.vidkin")
    with Index.open(tmp_path / "library.vidkin") as index:
        (group,) = index.recurring(by="sound")
        index.reject_recurring(group)
        assert index.recurring(by="sound") == index.recurring(by="either") == []
        (rejected,) = index.rejected_recurring()
        assert (rejected.found_by, len(rejected.occurrences)) == ("sound", 3)
        index.forget_recurring(rejected)
        # The user's ends and name; the scores by picture and by sound stay.
        first, *others = group.occurrences
        index.confirm_recurring(
            replace(group, name="Song", occurrences=(replace(first, start=first.start + 1), *others))
        )
        (confirmed,) = index.recurring(by="either")
        assert (confirmed.name, confirmed.is_confirmed, confirmed.found_by) == ("Song", True, "sound")
        assert confirmed.occurrences[0].start == pytest.approx(first.start + 1, abs=1e-6)
        assert confirmed.occurrences[0].sound == first.sound
        # The pictures have nothing in common: they show no group.
        assert index.recurring(by="picture") == index.recurring(by="both") == []


@pytest.mark.thorough
def test_a_jingle_of_four_seconds_recurs_with_its_ends_within_a_seventh_of_a_second(tmp_path: Path) -> None:
    """In the middle of files that show something else, twice in one of them."""
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
