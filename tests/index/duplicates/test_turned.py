"""Rotated copies of real files are found, distinguished from upright copies, and reported in every output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.index import Comparisons, DuplicateGroup, Index, SerialExecutor
from vidkin.rendering import describe_member, duplicate_cells

pytestmark = pytest.mark.thorough

RATE = 5
SIZE = {"width": 192, "height": 128}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Three scenes with copies rotated by 90 and 180 degrees, a mirrored copy, and one both rotated and mirrored."""
    folder = tmp_path_factory.mktemp("turned")
    for name in ("coffee", "chelsea", "rocket"):
        encode(folder / f"{name}.mp4", pan(name, 60, **SIZE), rate=RATE)
    coffee, chelsea = (list(pan(name, 60, **SIZE)) for name in ("coffee", "chelsea"))
    encode(folder / "coffee clockwise.mp4", [np.rot90(image, -1) for image in coffee], rate=RATE, options={"crf": "30"})
    encode(folder / "chelsea upside down.mp4", [np.rot90(image, 2) for image in chelsea], rate=RATE)
    encode(folder / "chelsea flipped.mp4", [image[:, ::-1] for image in chelsea], rate=RATE, options={"crf": "28"})
    rocket = list(pan("rocket", 60, **SIZE))
    both = [np.rot90(image, -1)[:, ::-1] for image in rocket]
    encode(folder / "rocket clockwise and flipped.mp4", both, rate=RATE, options={"crf": "30"})
    with Index.open(folder / "i", create=True) as opened:
        opened.add(folder, executor=SerialExecutor(opened.worker_spec))
        yield opened


@pytest.fixture(scope="module")
def groups(index: Index) -> list[DuplicateGroup]:
    return index.duplicates()


def test_rotated_copies_are_found_with_their_angle(groups: list[DuplicateGroup]) -> None:
    found = [
        {Path(member.path).stem: (member.best, member.turned, member.mirrored) for member in group.members}
        for group in groups
    ]
    coffee = {"coffee": (True, 0, False), "coffee clockwise": (False, 270, False)}
    # Rotating by 90 degrees and then flipping is its own inverse.
    rocket = {"rocket": (True, 0, False), "rocket clockwise and flipped": (False, 90, True)}
    for expected in (coffee, rocket):
        assert expected in found
        found.remove(expected)
    # The file size decides which of two equal copies is kept; the flipped one is compared with it.
    (chelsea,) = found
    assert set(chelsea) == {"chelsea", "chelsea upside down", "chelsea flipped"}
    turned = {chelsea[name][1] for name in ("chelsea", "chelsea upside down")}
    assert turned == {0, 180}
    is_upside_down = chelsea["chelsea upside down"][0]
    assert chelsea["chelsea flipped"] == (False, 180 if is_upside_down else 0, True)


def test_rotation_is_reported_in_text_and_table_cells(groups: list[DuplicateGroup]) -> None:
    group = next(group for group in groups if "coffee" in group.best.path)
    (copy,) = (member for member in group.members if not member.best)
    assert f"turned {copy.turned} degrees" in describe_member(copy, group)
    head, *rows = duplicate_cells([group])
    row = dict(zip(head, next(row for row in rows if row[head.index("path")] == copy.path), strict=True))
    assert row["turned"] == str(copy.turned)
    assert f"turned {copy.turned} degrees" in row["differences"]
    assert copy.to_dict()["turned"] == copy.turned != 0
    assert not any("other aspect ratio" in difference.kind for difference in copy.differences)
    assert copy.doubt == ""


def test_rotated_copies_are_not_read_again(
    index: Index, groups: list[DuplicateGroup], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError(f"{arguments} is read again")

    monkeypatch.setattr("av.open", fail)
    assert index.duplicates() == groups
    known = json.loads((index.path / Comparisons.FILE).read_text())
    assert len(known["searched"]) == len(index.videos())
