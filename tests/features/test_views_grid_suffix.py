"""The grid of views is part of the fingerprint of the extractors that use it."""

from __future__ import annotations

import pytest

from vidkin.features import GRID, open_extractor, views
from vidkin.features.views import grid_suffix


def test_first_grid_keeps_the_fingerprint_of_existing_indexes() -> None:
    assert [grid_suffix(name) for name in ("none", "query", "both")] == ["", "", ""]
    assert open_extractor("vidkin", device="cpu").fingerprint == "frame-encoder-1-fbee4693b83d"


@pytest.mark.parametrize("name", ["vidkin", "vidkin?views=query", "classical?views=both"])
def test_new_grid_changes_the_fingerprint_of_extractors_with_views(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_extractor(name, device="cpu").fingerprint
    monkeypatch.setattr(views, "GRID", (*GRID, (0.1, 0.1, 0.9, 0.9)))
    after = open_extractor(name, device="cpu").fingerprint
    assert after.startswith(f"{before}-grid-")


@pytest.mark.parametrize("name", ["vidkin?views=none", "classical"])
def test_new_grid_keeps_the_fingerprint_without_views(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_extractor(name, device="cpu").fingerprint
    monkeypatch.setattr(views, "GRID", GRID[:-1])
    assert open_extractor(name, device="cpu").fingerprint == before
