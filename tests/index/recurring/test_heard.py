"""What recurs by its sound: a song that opens several files over other pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.sounds import RATE, tune, write_sounds
from vidkin import Index
from vidkin.errors import InvalidArgumentError
from vidkin.index import RecurringGroup
from vidkin.index.query.sound import By

SONG = tune(8, seed=1)
# Seconds before the song, and the picture of each file.
FILES = {"one": (2.0, "rocket"), "two": (5.0, "coffee"), "three": (3.5, "chelsea")}


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files that have nothing in common but a song of eight seconds."""
    folder = tmp_path_factory.mktemp("season")
    for number, (name, (before, picture)) in enumerate(FILES.items()):
        own = tune(12, seed=10 + number)
        sound = np.concatenate([own[: round(before * RATE)], SONG, own[round(before * RATE) :]])
        write_sounds(folder / f"{name}.mkv", [sound], pictures=picture)
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
    assert set(found) == set(FILES)
    for name, (before, _) in FILES.items():
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
    with pytest.raises(InvalidArgumentError, match="inside looks at pictures only; by must be 'picture', got 'sound'"):
        find(season, "sound", inside=True)
