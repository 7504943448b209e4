"""File operations of a place. Packages with their own places run these tests with another ``place`` fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.index import Place, open_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = open_place(tmp_path / "index")
    made.prepare()
    return made


def test_place_reads_writes_and_deletes_files(place: Place) -> None:
    assert place.read("a.json") is None
    assert place.version("a.json") is None
    assert not place.has_file("a.json")
    place.write("a.json", b"one")
    first = place.version("a.json")
    assert place.read("a.json") == b"one"
    place.write("a.json", b"other")
    assert place.read("a.json") == b"other"
    place.delete(["a.json"])
    assert place.read("a.json") is None
    place.write("a.json", b"again")
    place.delete(["a.json"])
    place.write("a.json", b"third")
    assert place.version("a.json") != first
    assert place.has_file("a.json")


def test_place_lists_and_deletes_folders(place: Place) -> None:
    names = ["features/000000/1.x", "features/000001/2.x", "features2/3.x", "top"]
    for size, name in enumerate(names):
        place.write(name, b"." * size, sync=False)
    assert place.names() == {"features", "features2", "top"}
    assert place.sizes("features") == {names[0]: 0, names[1]: 1}
    assert place.sizes() == dict(zip(names, range(4), strict=True))
    assert place.sizes("none") == {}
    assert place.has_folder()
    assert place.has_folder("features/000000")
    assert not place.has_folder("feat")
    assert not place.has_folder("none")
    place.delete([names[0], "features/000000/9.x"])
    assert place.sizes("features") == {names[1]: 1}
    place.delete_folder("features")
    assert place.names() - {"features"} == {"features2", "top"}
    assert place.sizes("features") == {}


def test_map_returns_results_in_order(place: Place) -> None:
    def double(number: int) -> int:
        return 2 * number

    assert place.map(double, range(50)) == list(range(0, 100, 2))
