"""Which place a path or an address names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vidkin.errors import CollectionError, InvalidArgumentError, MissingPartError
from vidkin.index.storage.opening import folder_of, open_place


def test_a_path_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a:b/c.vidkin", Path("plain")):
        place = open_place(name)
        assert place.uri == str(tmp_path / name)
        assert folder_of(place) == tmp_path / name
        assert open_place(place) is place
    assert open_place("~/x").uri == str(Path.home() / "x")


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_an_address_is_object_storage(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    place = open_place(f"{scheme.upper()}://Bucket.name/films/2024/")
    assert place.uri == f"{scheme}://Bucket.name/films/2024"
    assert place.address("videos.lance") == f"{scheme}://Bucket.name/films/2024/videos.lance"
    assert open_place(f"{scheme}://bucket").address("a") == f"{scheme}://bucket/a"
    with pytest.raises(CollectionError, match="is not a folder of this machine"):
        folder_of(place)


@pytest.mark.parametrize("name", ["http://host/x", "file:///tmp/x", "s3://", "azure://x/y"])
def test_other_addresses_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"a folder or s3://BUCKET/PREFIX or gs://.*, got {name}"):
        open_place(name)


def test_a_path_cannot_hold_an_address() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must have two slashes, s3://bucket/x: pass .* as text"):
        open_place(Path("s3://bucket/x"))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingPartError, match=r's3://bucket/x: .* pip install .*\[cloud\]"'):
        open_place("s3://bucket/x")
