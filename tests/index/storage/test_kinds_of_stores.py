"""The store of an index is opened by the name in its manifest; a stand-in package provides another kind of store."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests.index.helpers import video
from vidkin.errors import (
    CollectionDamagedError,
    CollectionMismatchError,
    InvalidArgumentError,
    MissingPartError,
)
from vidkin.index import DiskStore, Index, Manifest, open_place, repair


def with_manifest(folder: Path, **values: object) -> None:
    """Change the manifest of an index in a way that vidkin never would."""
    path = folder / "collection.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_index_is_opened_with_its_own_store(tmp_path: Path) -> None:
    clip = video(tmp_path / "a.mp4")
    for name in (None, "disk", "stand-in", "stand-in:1"):
        folder = tmp_path / f"{name}.vidkin"
        with Index.open(folder, extractor="classical", create=True, store=name) as index:
            index.add(clip, workers=1)
        manifest = Manifest.read(open_place(folder))
        assert manifest.store == (name or "disk")
        with Index.open(folder) as index:
            assert type(index.store) is DiskStore
            assert [match.path for match in index.search(clip)] == [str(clip)]
        assert repair(open_place(folder)) == ()


def test_different_store_is_refused(tmp_path: Path) -> None:
    Index.open(tmp_path, extractor="classical", create=True).close()
    with pytest.raises(
        CollectionMismatchError, match="was created with store disk, got stand-in; omit the store, or create"
    ):
        Index.open(tmp_path, store="stand-in")


def test_missing_store_package_is_named_in_the_error(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(MissingPartError, match=r"made: an index with store shards:4 needs the package vidkin-scale"):
        Index.open(made, extractor="classical", create=True, store="shards:4")
    assert not made.exists()
    Index.open(made, extractor="classical", create=True).close()
    with_manifest(made, store="shards:4")
    with pytest.raises(MissingPartError, match=r'needs the package vidkin-scale, which .* pip install .*/scale"'):
        Index.open(made)


def test_unknown_stores_and_addresses_are_rejected_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    for name, message in (
        ("tape", "'tape' is not a store; choose from disk, stand-in"),
        ("disk:4", "store 'disk' must not have an address, got '4'"),
        ("stand-in:2", "a stand-in has one part, got 2"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^{message}$"):
            Index.open(tmp_path / "new", extractor="classical", create=True, store=name)
        Index.open(tmp_path / name, extractor="classical", create=True).close()
        with_manifest(tmp_path / name, store=name)
        with pytest.raises(CollectionDamagedError, match=rf"collection.json is damaged \({message}\); restore it"):
            Index.open(tmp_path / name)
