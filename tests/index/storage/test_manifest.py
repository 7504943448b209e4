"""The manifest of an index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.index.helpers import PLAIN
from vidkin import __version__
from vidkin.errors import (
    CollectionDamagedError,
    CollectionError,
    CollectionMismatchError,
    CollectionNotFoundError,
)
from vidkin.index import Manifest, open_place
from vidkin.index.storage.manifest import create_index


def test_manifest_round_trip(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "c.vidkin"
    create_index(open_place(folder), PLAIN)
    manifest = Manifest.read(open_place(folder))
    assert (manifest.extractor, manifest.fingerprint, manifest.sampling_rate) == ("plain", "plain-1", 1.0)
    assert (manifest.vidkin_version, manifest.format_version) == (__version__, 8)
    assert sorted(path.name for path in folder.iterdir()) == ["collection.json", "writer.lock"]


def test_creating_an_index_twice_keeps_the_first(tmp_path: Path) -> None:
    create_index(open_place(tmp_path), PLAIN)
    before = (tmp_path / "collection.json").read_bytes()
    create_index(open_place(tmp_path), PLAIN)
    assert (tmp_path / "collection.json").read_bytes() == before


def test_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.mp4").write_bytes(b"")
    with pytest.raises(
        CollectionError,
        match=r"is not an index and is not empty \(it contains 'holiday.mp4'\); choose",
    ):
        create_index(open_place(tmp_path), PLAIN)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.mp4"]


def test_file_at_the_path_of_an_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CollectionError, match=r"file: cannot create an index here \(file exists\)"):
        create_index(open_place(tmp_path / "file"), PLAIN)
    with pytest.raises(CollectionNotFoundError, match=r"there is no index at"):
        Manifest.read(open_place(tmp_path / "file"))


def test_damaged_and_newer_manifests_raise_different_errors(tmp_path: Path) -> None:
    path = tmp_path / "collection.json"
    with pytest.raises(CollectionNotFoundError, match=r"create one with `vidkin index FOLDER"):
        Manifest.read(open_place(tmp_path))
    good = {"format_version": 8, "extractor": "classical", "fingerprint": "classical-1"}
    wrong = [
        *({"extractor": 7}, {"fingerprint": None}, {"weights": 5}, {"sampling_rate": "fast"}),
        *({"sampling_rate": None}, {"sampling_rate": -1.0}, {"sampling_rate": True}, {"measure": "kind"}),
        *({"exclude": "*.mov"}, {"exclude": [3]}, {"exclude": ["/"]}, {"images": 1}, {"follow_links": None}),
    ]
    texts = ["[" * 100_000, "{", "[]", '{"extractor": "x"}', '{"format_version": 8}']
    for text in (*texts, *(json.dumps({**good, **change}) for change in wrong)):
        path.write_text(text)
        with pytest.raises(CollectionDamagedError, match=r"is damaged .*restore it .* in another folder"):
            Manifest.read(open_place(tmp_path))
    path.write_text(json.dumps(good))
    assert Manifest.read(open_place(tmp_path)).sampling_rate == 1.0


@pytest.mark.parametrize(("version", "age"), [(1, "an earlier"), (7, "an earlier"), (99, "a newer")])
def test_index_of_another_format_must_be_rebuilt(tmp_path: Path, version: int, age: str) -> None:
    (tmp_path / "collection.json").write_text(json.dumps({"format_version": version}))
    with pytest.raises(
        CollectionError,
        match=rf"was created by {age} version of vidkin \(format {version}, this version reads 8\); index the videos "
        "again: vidkin index FOLDER --index NEW_INDEX$",
    ):
        Manifest.read(open_place(tmp_path))


def test_index_without_its_manifest_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "videos.sqlite").touch()
    for call in (
        lambda: Manifest.read(open_place(tmp_path)),
        lambda: create_index(open_place(tmp_path), PLAIN),
    ):
        with pytest.raises(CollectionDamagedError, match=r"collection\.json is missing; restore it from a backup"):
            call()


def test_features_of_another_extractor_are_refused(tmp_path: Path) -> None:
    create_index(open_place(tmp_path), PLAIN)
    manifest = Manifest.read(open_place(tmp_path))
    manifest.check(open_place(tmp_path), "plain-1")
    with pytest.raises(
        CollectionMismatchError,
        match=r"was created with extractor plain-1, got other-2: a different .* create a new index in another folder",
    ):
        manifest.check(open_place(tmp_path), "other-2")
