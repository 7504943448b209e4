"""Which place a path or an address refers to."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.index import open_place
from vidkin.index.storage.opening import folder_of


def test_path_opens_a_local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a:b/c.vidkin", Path("plain")):
        place = open_place(name)
        assert place.uri == str(tmp_path / name)
        assert folder_of(place) == tmp_path / name
        assert open_place(place) is place
    assert open_place("~/x").uri == str(Path.home() / "x")


def test_address_is_opened_by_the_package_for_its_scheme(tmp_path: Path) -> None:
    assert folder_of(open_place(f"StandIn:/{tmp_path}/films/")) == tmp_path / "films"


def test_address_without_a_package_says_what_to_install() -> None:
    for name in ("s3://bucket/x", "http://host/x"):
        with pytest.raises(
            MissingPartError,
            match=rf'^{name}: an index at a URL needs the package vidkin-scale, .* pip install .*/scale"',
        ):
            open_place(name)


@pytest.mark.parametrize("name", ["http://host/x", "file:///tmp/x", "standin://"])
def test_other_addresses_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(InvalidArgumentError, match=f"^index must be a folder or standin://BUCKET/PREFIX, got {name}$"):
        open_place(name)


def test_address_as_a_path_object_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must have two slashes, as in s3://bucket/x; pass URLs as str"):
        open_place(Path("s3://bucket/x"))
