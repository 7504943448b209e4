"""Recurring segments of a real season: frame-accurate openings, look-alikes, copies and stored results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.index.helpers import Noted
from tests.support.seasons import OPENING, RATE, black, shots, still, write_season
from tests.support.sounds import tune, write_sounds
from tests.support.videos import Image, encode
from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.features import describe_sound
from vidkin.index import Index, Occurrence, RecurringGroup, SerialExecutor, VideoRecord, open_place
from vidkin.index.recurring import find, stretches
from vidkin.index.recurring.find import Findings, RecurringOptions
from vidkin.index.recurring.heard import add_sound_scores
from vidkin.media import read_frames
from vidkin.similarity import SoundFeatures


def create_index(path: Path, folder: Path) -> Index:
    index = Index.open(path, create=True)
    index.add(folder, executor=SerialExecutor(index.worker_spec))
    return index


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("season")
    write_season(folder)
    return folder


@pytest.fixture(scope="module")
def index(season: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with create_index(tmp_path_factory.mktemp("index") / "c.vidkin", season) as opened:
        yield opened


def places(group: RecurringGroup) -> dict[str, tuple[float, float]]:
    return {Path(one.path).name: (one.start, one.end) for one in group.occurrences}


def test_opening_of_two_episodes_is_found_to_the_frame(index: Index) -> None:
    groups = index.recurring()
    assert "1 result<" in groups._repr_html_()  # notebook display
    (group,) = groups
    assert (group.kind, group.files) == ("opening", 2)
    found = places(group)
    assert found["e1.mp4"] == pytest.approx((4.5, 11.0), abs=1e-6)
    assert found["e2.mp4"] == pytest.approx((2.8, 9.3), abs=1e-6)
    assert [one.speed for one in group.occurrences] == [1.0, 1.0]
    assert group.to_dict()["kind"] == "opening"


def refuse(*_: object) -> None:
    raise AssertionError("what was found is remembered")


def test_second_call_reads_no_video(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    first = index.recurring()
    monkeypatch.setattr(find, "try_fit", refuse)
    monkeypatch.setattr(stretches, "find_stretches", refuse)
    assert index.recurring() == first


def test_comparing_and_fitting_on_other_machines_gives_the_same_result(index: Index) -> None:
    options: list[dict[str, Any]] = [{}, {"inside": True, "shortest": 2.0}]
    here = [index.recurring(remember=False, **each) for each in options]
    index._mapper = mapper = Noted(index)
    try:
        there = [index.recurring(remember=False, **each) for each in options]
    finally:
        index._mapper = None
    assert len(here[0]) == 1
    assert there == here
    assert mapper.methods == {"track", "shared", "fit"}


def test_limits_choose_groups(index: Index) -> None:
    assert index.recurring(least=3) == []
    assert index.recurring(shortest=6.6) == []
    assert index.recurring(longest=6.4) == []
    assert len(index.recurring(shortest=6.4, longest=6.6)) == 1


def test_arguments_are_checked(index: Index, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="least must be at least 2, got 1"):
        index.recurring(least=1)
    with pytest.raises(InvalidArgumentError, match="shortest"):
        index.recurring(shortest=1.0)
    with pytest.raises(InvalidArgumentError, match=r"longest must be at least shortest \(9 s\), got 5 s"):
        index.recurring(shortest=9, longest=5)
    with pytest.raises(NotIndexedError):
        index.recurring(tmp_path)


def test_single_video_has_no_recurring_segments(index: Index, season: Path) -> None:
    assert index.recurring(season / "e1.mp4", remember=False) == []


def test_title_card_black_and_repeated_take_make_no_group(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    encode(folder / "a.mp4", [*shots(("coffee", 0, 40)), *still(50), *black(40)], rate=RATE)
    encode(folder / "b.mp4", [*black(40), *still(50), *shots(("rocket", 0, 40))], rate=RATE)
    with create_index(tmp_path / "c.vidkin", folder) as index:
        assert index.recurring() == []


def make_static_scene(count: int, seed: int) -> list[Image]:
    """A static camera, and a bright ball that takes a different path each time."""
    random = np.random.default_rng(seed)
    room = shots(("brick", 2, 1))[0]
    down, across = np.ogrid[: room.shape[0], : room.shape[1]]
    (top, bottom), left = random.uniform(10, 98, 2), random.uniform(-40, 0)
    made = []
    for share in np.linspace(0, 1, count):
        image = room.copy()
        y, x = top + (bottom - top) * share, left + 230 * share
        image[(down - y) ** 2 + (across - x) ** 2 < 18**2] = (250, 240, 200)
        made.append(image)
    return made


@pytest.mark.thorough
def test_static_camera_does_not_recur(tmp_path: Path) -> None:
    """Recordings of one camera at other times, and files that show only one card, are neither copies nor a group.

    The same recording at a lower bit rate is a copy.
    """
    folder = tmp_path / "videos"
    folder.mkdir()
    for name, images, quality in (
        *(("card 1", still(60), 20), ("card 2", still(80), 34)),
        *(
            ("noon", make_static_scene(90, 1), 20),
            ("noon again", make_static_scene(90, 1), 32),
            ("night", make_static_scene(90, 2), 20),
        ),
        *(
            ("film", [*shots(("coffee", 0, 30)), *make_static_scene(40, 3), *shots(("grass", 0, 20))], 20),
            ("other film", [*shots(("rocket", 1, 25)), *make_static_scene(40, 4), *shots(("astronaut", 0, 20))], 20),
        ),
    ):
        encode(folder / f"{name}.mp4", images, rate=RATE, options={"crf": str(quality)})
    with create_index(tmp_path / "c.vidkin", folder) as index:
        (group,) = index.recurring()
        assert (group.kind, set(places(group))) == ("copy", {"noon.mp4", "noon again.mp4"})


def test_new_episode_is_compared_once_and_removed_files_are_left_out(
    season: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "season"
    shutil.copytree(season, folder)
    with create_index(tmp_path / "c.vidkin", folder) as index:
        index.recurring()
        encode(folder / "e3.mp4", [*shots(("grass", 2, 33)), *shots(*OPENING), *shots(("brick", 4, 60))], rate=RATE)
        # The same content under another name.
        shutil.copy(folder / "e1.mp4", folder / "e1 copy.mp4")
        index.add(folder, executor=SerialExecutor(index.worker_spec))
        compared = []
        search = stretches.find_stretches

        def count(first: object, second: object, *rest: object) -> object:
            compared.append((first, second))
            return search(first, second, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(stretches, "find_stretches", count)
        opening, copies = index.recurring()
        assert len(compared) == 2
        assert places(opening)["e3.mp4"] == pytest.approx((3.3, 9.8), abs=1e-6)
        assert (copies.kind, len(opening.occurrences)) == ("copy", 3)
        assert set(places(copies)) == {"e1.mp4", "e1 copy.mp4"}
        (folder / "e1 copy.mp4").unlink()
        (folder / "e1.mp4").unlink()
        (left,) = index.recurring()
        assert set(places(left)) == {"e2.mp4", "e3.mp4"}


def test_both_versions_of_an_episode_have_the_opening(season: Path, tmp_path: Path) -> None:
    """Two episodes, each in two versions; the other version of the first begins a second later and has fewer bits."""
    folder = tmp_path / "season"
    shutil.copytree(season, folder)
    for name, first in (("e1", 10), ("e2", 0)):
        images = read_frames(folder / f"{name}.mp4", rate=None).images[first:]
        encode(folder / f"{name} small.mp4", list(images), rate=RATE, options={"crf": "30"})
    with create_index(tmp_path / "c.vidkin", folder) as index:
        opening, *copies = index.recurring()
        assert index.recurring(least=3) == copies  # versions of one episode count once
    assert places(opening) == {
        "e1.mp4": pytest.approx((4.5, 11.0), abs=1e-6),
        "e1 small.mp4": pytest.approx((3.5, 10.0), abs=1e-6),
        "e2.mp4": pytest.approx((2.8, 9.3), abs=1e-6),
        "e2 small.mp4": pytest.approx((2.8, 9.3), abs=1e-6),
    }
    assert (opening.kind, opening.files, [group.kind for group in copies]) == ("opening", 4, ["copy", "copy"])


@pytest.mark.thorough
def test_shortened_opening_is_part_of_the_group_and_reports_the_missing_duration(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    encode(folder / "1.mp4", [*shots(("astronaut", 0, 30), *OPENING), *shots(("chelsea", 0, 60))], rate=RATE)
    encode(folder / "2.mp4", [*shots(("brick", 1, 20), *OPENING), *shots(("grass", 0, 70))], rate=RATE)
    encode(folder / "3.mp4", [*shots(("chelsea", 8, 40), *OPENING[:2]), *shots(("astronaut", 6, 60))], rate=RATE)
    with create_index(tmp_path / "c.vidkin", folder) as index:
        (group,) = index.recurring()
    assert places(group) == {
        "1.mp4": pytest.approx((3.0, 9.5)),
        "2.mp4": pytest.approx((2.0, 8.5)),
        "3.mp4": pytest.approx((4.0, 9.0)),
    }
    assert [one.shorter for one in group.occurrences] == [0.0, 0.0, pytest.approx(1.5)]


def test_segment_repeated_within_one_recording_is_found(tmp_path: Path) -> None:
    bumper = shots(("coffee", 0, 25), ("rocket", 0, 15))
    parts = [*shots(("astronaut", 0, 50)), *bumper, *shots(("chelsea", 0, 60)), *bumper, *shots(("brick", 0, 30))]
    (tmp_path / "videos").mkdir()
    encode(tmp_path / "videos" / "long.mp4", parts, rate=RATE)
    with create_index(tmp_path / "c.vidkin", tmp_path / "videos") as index:
        assert index.recurring() == []
        (group,) = index.recurring(inside=True)
    times = [time for one in group.occurrences for time in (one.start, one.end)]
    assert times == pytest.approx([5.0, 9.0, 15.0, 19.0])
    assert (group.kind, group.files) == ("inside", 1)


def test_interrupted_search_is_resumed(index: Index, tmp_path: Path) -> None:
    expected = index.recurring()
    (index.path / Findings.FILE).unlink()

    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.recurring(on_progress=interrupt)
    kept = json.loads((index.path / Findings.FILE).read_text())
    assert [len(held) for held in kept["searched"]] == [2]
    assert index.recurring() == expected


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"state": 1}', b"\xff", b"[" * 100_000])
def test_damaged_findings_are_discarded(tmp_path: Path, content: bytes) -> None:
    (tmp_path / Findings.FILE).write_bytes(content)
    findings = Findings.open(open_place(tmp_path), "state")
    assert (list(findings.pairs()), findings.searched) == ([], [])


@pytest.mark.parametrize("number", ["-1", "1e999", '"x"', "null", "9"])
def test_findings_with_impossible_times_are_discarded(tmp_path: Path, number: str) -> None:
    row = f"[[[{number}, 8, 1, 3, 0.9, 0.5], [1, 3, 1, 3, 0.9, 1]]]"
    table = (
        f'{{"state": "s {find._REVISION}", "contents": ["a"], "searched": [], "searched_inside": [], "pairs": [[0, 0, '
    )
    (tmp_path / Findings.FILE).write_text(f"{table}{row}]]}}")
    assert list(Findings.open(open_place(tmp_path), "s").pairs()) == []


def test_sets_of_compared_videos_are_merged(tmp_path: Path) -> None:
    findings = Findings()
    findings.begin("ab").update("ab")
    findings.begin("cd").update("cd")
    # Among a, c and d, only c and d have been compared with each other, so a is new.
    assert findings.begin("acd") == {"c", "d"}


def test_minimum_counts_occurrences_within_a_file_and_files_otherwise() -> None:
    assert RecurringOptions(inside=True).least == 2


@pytest.mark.thorough
def test_occurrence_with_other_sound_than_the_majority_is_marked(tmp_path: Path) -> None:
    """Two files share the same 8 s of a tune, and the third has another tune; segments of 3 s are too short to tell."""
    same, other = tune(8, seed=1), tune(8, seed=2)
    tracks = {
        str(number): describe_sound(write_sounds(tmp_path / f"{number}.m4a", [np.concatenate([before, part])]))
        for number, (before, part) in enumerate(
            [(tune(6, seed=3), same), (tune(9, seed=4), same), (tune(6, seed=3), other)]
        )
    }

    class Sound:
        def tracks(self, content: str) -> tuple[SoundFeatures, ...]:
            return tracks[content]

    spans = {"0": (6.0, 14.0), "1": (9.0, 17.0), "2": (6.0, 14.0)}
    records = [VideoRecord(path=f"e{number}", size=1, mtime_ns=1, content_hash=number) for number in spans]
    opening = RecurringGroup(tuple(Occurrence(f"e{n}", *times, 0.9) for n, times in spans.items()), "opening", 3)
    (heard,) = add_sound_scores([opening], records, Sound())  # type: ignore[arg-type]
    assert [one.other_sound for one in heard.occurrences] == [False, False, True]
    assert [one.sound is not None and one.sound > 0.7 for one in heard.occurrences] == [True, True, False]
    short = replace(opening, occurrences=tuple(replace(one, end=one.start + 3) for one in opening.occurrences))
    assert add_sound_scores([short], records, Sound()) == [short]  # type: ignore[arg-type]
    assert add_sound_scores([opening], records, None) == [opening]
