"""Which files of a group stay: the order of preference, and as few files as contain everything."""

from __future__ import annotations

from collections.abc import Collection
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin.errors import InvalidArgumentError
from vidkin.index import Difference, FileRecord, Traits, VideoRecord
from vidkin.index.duplicates.keeper import (
    COLUMNS,
    DEFAULT_ORDER,
    Candidate,
    Choice,
    check_preferences,
    choose_kept,
    rank_by_folders,
    sort_by_preference,
)


def candidate(
    name: str,
    *,
    traits: Traits | None = None,
    differences: tuple[Difference, ...] = (),
    links: tuple[str, ...] = (),
    **facts: object,
) -> Candidate:
    known = {"size": 1000, "mtime_ns": 5, "width": 64, "height": 48, "duration": 10.0, "codec": "h264"}
    path = name if name.startswith("/") else f"/v/{name}"
    record = VideoRecord(path=path, content_hash=name, **{**known, **facts})  # type: ignore[arg-type]
    return Candidate(FileRecord(record, links), traits or Traits(frame_rate=25.0), differences)


def order_of(*candidates: Candidate, prefer: Collection[str] = DEFAULT_ORDER) -> list[tuple[str, str]]:
    """Name and reason of each candidate in order of preference; checks that the input order does not matter."""
    orders = {
        tuple((Path(one.file.record.path).name, why) for one, why in sort_by_preference(given, tuple(prefer)))
        for given in permutations(candidates)
    }
    (order,) = orders
    return list(order)


def first_of(*candidates: Candidate, prefer: Collection[str] = DEFAULT_ORDER) -> tuple[str, str]:
    return order_of(*candidates, prefer=prefer)[0]


@pytest.mark.parametrize(
    ("better", "worse", "column", "reason"),
    [
        ({"width": 128, "height": 96}, {}, "picture", "best frames"),
        ({"traits": Traits(frame_rate=50.0)}, {}, "frame-rate", "highest frame rate"),
        (
            {"traits": Traits(25.0, "HDR10")},
            {"traits": Traits(25.0, "10 bit")},
            "dynamic-range",
            "highest dynamic range",
        ),
        ({"traits": Traits(25.0, "HLG")}, {}, "dynamic-range", "highest dynamic range"),
        ({"traits": Traits(25.0, "10 bit")}, {}, "dynamic-range", "highest dynamic range"),
        ({"traits": Traits(25.0, channels=6)}, {"traits": Traits(25.0, channels=2)}, "sound", "most audio channels"),
        ({"traits": Traits(25.0, streams=2)}, {}, "streams", "most subtitles and other tracks"),
        ({"traits": Traits(25.0, date="2020", camera="X")}, {}, "metadata", "most metadata"),
        ({"size": 1100}, {}, "bit-rate", "highest bit rate"),
        ({"size": 1001}, {}, "size", "largest file"),  # bit rates within a thousandth count as equal
        ({"mtime_ns": 4}, {}, "age", "oldest"),
        ({"mtime_ns": 6}, {}, "newest", "newest"),
        ({"duration": 10.2}, {}, "longest", "longest"),
        ({"size": 999}, {}, "smallest", "smallest file"),
    ],
)
def test_each_column_decides_with_its_reason(
    better: dict[str, object], worse: dict[str, object], column: str, reason: str
) -> None:
    good, bad = candidate("b.mp4", **better), candidate("a.mp4", **worse)  # type: ignore[arg-type]
    assert first_of(good, bad, prefer=check_preferences(column)) == ("b.mp4", reason)
    if column in DEFAULT_ORDER:
        assert first_of(good, bad) == ("b.mp4", reason)


def test_every_column_has_a_reason() -> None:
    files = [candidate(f"{number}.mp4", size=number + 1) for number in range(2)]
    for column in COLUMNS:
        assert len(order_of(*files, prefer=(column,))) == 2


def test_earlier_columns_outweigh_later_ones_and_can_be_moved_to_the_front() -> None:
    sharp = candidate("sharp.mp4", width=128, height=96)
    loud = candidate("loud.mp4", traits=Traits(25.0, channels=2), size=9000)
    assert order_of(sharp, loud) == [("sharp.mp4", "best frames"), ("loud.mp4", "first by name")]
    assert first_of(sharp, loud, prefer=check_preferences("sound")) == ("loud.mp4", "most audio channels")
    assert first_of(sharp, loud, prefer=check_preferences("smallest,picture")) == ("sharp.mp4", "smallest file")


@pytest.mark.parametrize(
    "edit",
    [
        Difference("caption", where="bottom"),
        Difference("logo", where="upper right"),
        Difference("without color"),
        Difference("bars added", 0.2),
        Difference("borders added", 0.4),
        Difference("inside another picture", 0.5),
    ],
    ids=lambda edit: edit.kind,
)
def test_copies_with_overlays_borders_or_lost_colors_rank_lower(edit: Difference) -> None:
    """A larger file does not compensate for the edit, and border pixels do not count as resolution."""
    plain, edited = candidate("plain.mp4"), candidate("edited.mp4", differences=(edit,), size=9000)
    assert first_of(plain, edited) == ("plain.mp4", "best frames")


def test_overlays_and_lost_colors_outweigh_resolution_but_borders_do_not() -> None:
    small = candidate("small.mp4")
    for edit in (Difference("caption", where="bottom"), Difference("without color")):
        assert first_of(small, candidate("large.mp4", differences=(edit,), width=640, height=480))[0] == "small.mp4"
    large = candidate("large.mp4", differences=(Difference("bars added", 0.25),), width=640, height=480)
    assert first_of(small, large)[0] == "large.mp4"


def test_slightly_underestimated_border_does_not_improve_the_rank() -> None:
    plain = candidate("plain.mp4", width=320, height=240)
    boxed = candidate("boxed.mp4", differences=(Difference("bars added", 0.236),), width=320, height=316, size=9000)
    assert first_of(plain, boxed) == ("plain.mp4", "best frames")


def test_slightly_different_frame_rates_count_as_equal() -> None:
    film, television = (
        candidate("film.mp4", traits=Traits(24.0), size=2000),
        candidate("tv.mp4", traits=Traits(25.0)),
    )
    assert first_of(film, television) == ("film.mp4", "highest bit rate")


def test_bit_rates_of_different_codecs_are_not_compared() -> None:
    first, second = candidate("h264.mp4", size=1500), candidate("av1.mp4", codec="av1", mtime_ns=1)
    assert first_of(first, second, prefer=("bit-rate", "age")) == ("av1.mp4", "oldest")
    assert first_of(first, second, prefer=("bit-rate", "size")) == ("h264.mp4", "largest file")


def test_slightly_different_durations_count_as_equal() -> None:
    first, second = candidate("a.mp4", duration=10.0), candidate("b.mp4", duration=10.05, mtime_ns=9)
    assert first_of(first, second, prefer=("longest", "age")) == ("a.mp4", "oldest")


def test_ties_are_broken_by_hard_links_and_then_by_name() -> None:
    """Removing a file with hard links would free no space."""
    linked = candidate("c.mp4", links=("/another/name.mp4",))
    assert order_of(candidate("b.mp4"), linked, candidate("a.mp4")) == [
        ("c.mp4", "has hard links"),
        ("a.mp4", "first by name"),
        ("b.mp4", "first by name"),
    ]


def test_files_in_preferred_folders_come_first_and_in_outside_folders_last(tmp_path: Path) -> None:
    (tmp_path / "masters").mkdir()
    masters = str(tmp_path / "masters")
    inside = candidate(f"{masters}/small.mp4", size=500)
    beside = candidate(f"{masters} too/large.mp4")  # a folder name with the same prefix is another folder
    assert first_of(inside, beside, prefer=check_preferences(masters)) == ("small.mp4", f"in {masters}")
    assert first_of(inside, beside, prefer=check_preferences(f"outside:{masters}")) == (
        "large.mp4",
        f"outside {masters}",
    )
    assert first_of(inside, beside, prefer=check_preferences(["size", masters])) == ("large.mp4", "largest file")
    order = check_preferences([masters, f"outside:{tmp_path}"])
    assert [rank_by_folders(one.file, order) for one in (inside, beside)] == [(True, False), (False, False)]
    assert rank_by_folders(inside.file, DEFAULT_ORDER) == ()


def test_preferences_are_completed_with_the_default_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_preferences(()) == check_preferences("") == DEFAULT_ORDER
    assert check_preferences(" age , newest ") == ("age", "newest", *(one for one in DEFAULT_ORDER if one != "age"))
    assert check_preferences(["sound", "."])[:2] == ("sound", str(tmp_path))
    assert check_preferences("outside:.")[0] == f"outside:{tmp_path}"


@pytest.mark.parametrize("wrong", ["prettiest", "outside:/no/such/folder", "best", "picture,prettiest"])
def test_invalid_preferences_are_refused(wrong: str) -> None:
    name = wrong.split(",")[-1]
    with pytest.raises(
        InvalidArgumentError,
        match=rf"prefer must be one of picture, .*, smallest, FOLDER or outside:FOLDER, got '{name}'",
    ):
        check_preferences([wrong])


def staying(
    count: int,
    held: set[tuple[int, int]],
    *,
    fixed: Collection[int] = (),
    ranks: tuple[tuple[bool, ...], ...] = (),
    impossible: Collection[tuple[int, int]] = (),
) -> tuple[Choice, list[tuple[int, int]]]:
    """Choose files, given which file contains which; return the choice and the pairs that were proven."""
    asked: list[tuple[int, int]] = []

    def holds(keeper: int, file: int) -> bool:
        asked.append((keeper, file))
        return (keeper, file) in held

    choice = choose_kept(count, holds, lambda *pair: pair not in impossible, fixed=fixed, ranks=ranks)
    assert len(set(asked)) == len(asked)
    return choice, asked


def test_first_file_that_contains_all_stays_alone_and_each_pair_is_proven_once() -> None:
    choice, asked = staying(3, {(0, 1), (0, 2), (1, 2)})
    assert choice == Choice(0, {1: 0, 2: 0})
    assert asked == [(0, 1), (0, 2)]


def test_pairs_decided_without_decoding_are_not_proven() -> None:
    """File 1 lacks nothing of the others; the preferred file 0 lacks their sound."""
    choice, asked = staying(3, {(1, 0), (1, 2)}, impossible={(0, 1), (0, 2), (2, 1)})
    assert choice == Choice(1, {0: 1, 2: 1})
    assert asked == [(1, 0), (1, 2)]


def test_as_few_files_as_possible_stay_if_none_contains_all() -> None:
    """File 0 contains 2, and file 1 contains 2 and 3: keeping 1 leaves two files of the first three."""
    choice, _ = staying(4, {(0, 2), (1, 2), (1, 3)}, impossible={(0, 1), (0, 3), (1, 0)})
    assert choice == Choice(1, {2: 1, 3: 1})
    # Another file that only file 0 contains.
    choice, _ = staying(5, {(0, 4), (1, 2), (1, 3)}, impossible={(0, 1), (0, 2), (0, 3), (1, 0), (1, 4)})
    assert choice == Choice(1, {2: 1, 3: 1, 4: 0})


def test_failed_proof_is_not_repeated_and_another_file_may_contain_it() -> None:
    choice, asked = staying(3, {(0, 1), (1, 2)})
    # File 1 is removed by then, so no remaining file contains file 2.
    assert choice == Choice(0, {1: 0})
    assert asked[:2] == [(0, 1), (0, 2)]
    choice, asked = staying(3, {(1, 2)})
    assert choice == Choice(1, {2: 1})
    assert (0, 1) in asked


def test_file_is_never_removed_in_favor_of_a_removed_one() -> None:
    """Two identical files are not both removed in favor of each other."""
    choice, _ = staying(2, {(0, 1), (1, 0)})
    assert choice == Choice(0, {1: 0})


def test_files_contained_in_no_other_stay() -> None:
    assert staying(3, set())[0] == Choice(0, {})
    assert staying(3, set(), impossible=set(permutations(range(3), 2))) == (Choice(0, {}), [])


def test_fixed_file_is_never_removed_and_may_contain_others() -> None:
    everything = set(permutations(range(3), 2))
    assert staying(3, everything, fixed={2})[0] == Choice(2, {0: 2, 1: 2})
    assert staying(3, {(0, 1), (0, 2)}, fixed={2})[0] == Choice(0, {1: 0})
    assert staying(3, everything, fixed=range(3)) == (Choice(0, {}), [])


def test_files_in_a_preferred_folder_are_not_removed_for_files_elsewhere() -> None:
    everything = set(permutations(range(3), 2))
    choice, _ = staying(3, {(1, 0), (1, 2)}, ranks=((True,), (False,), (False,)))
    assert choice == Choice(1, {2: 1})
    # Files of equal rank may replace each other.
    assert staying(3, everything, ranks=((True,), (True,), (False,)))[0] == Choice(0, {1: 0, 2: 0})
    # The first folder outweighs the second.
    choice, _ = staying(2, everything, ranks=((True, False), (False, True)))
    assert choice == Choice(0, {1: 0})


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]], set[int], tuple[tuple[bool, ...], ...]]:
    count = draw(st.integers(2, 6))
    pairs = list(permutations(range(count), 2))
    held = {pair for pair in pairs if draw(st.booleans())}
    fixed = {file for file in range(count) if draw(st.integers(0, 4)) == 0}
    ranks = tuple((draw(st.booleans()),) for _ in range(count)) if draw(st.booleans()) else ()
    return count, held, fixed, ranks


@given(groups())
def test_every_removed_file_is_contained_in_one_that_stays(
    group: tuple[int, set[tuple[int, int]], set[int], tuple[tuple[bool, ...], ...]],
) -> None:
    count, held, fixed, ranks = group
    choice, _ = staying(count, held, fixed=fixed, ranks=ranks)
    stay = set(range(count)) - set(choice.removable)
    assert choice.best in stay
    assert not fixed & set(choice.removable)
    for file, keeper in choice.removable.items():
        assert keeper in stay
        assert (keeper, file) in held
        assert not ranks or ranks[keeper] >= ranks[file]
    # Nothing else can be removed: no remaining file, unless it is fixed or another file depends on it, is contained in
    # a remaining file of equal or better rank.
    for file in stay - fixed - set(choice.removable.values()):
        for keeper in stay - {file}:
            assert (keeper, file) not in held or (ranks and ranks[keeper] < ranks[file])
