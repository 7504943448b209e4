"""Photographs from scikit-image's wheel and the camera over them."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from vidkin.datasets import PHOTOGRAPHS, camera_flight, photograph
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features import background


def test_all_photographs_are_there_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a photograph was looked for on the network")

    monkeypatch.setattr(socket, "socket", refuse)
    background.open_photograph.cache_clear()
    for name in PHOTOGRAPHS:
        image = photograph(name)
        assert image.dtype == np.uint8
        assert image.ndim == 3
        assert image.shape[2] == 3
        assert min(image.shape[:2]) >= 300
        assert image.std() > 5


def test_a_photograph_may_be_painted_over() -> None:
    photograph("coffee")[:] = 0
    assert photograph("coffee").max() > 0


def test_an_unknown_photograph_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"name must be one of astronaut, .*, got 'mona lisa'"):
        photograph("mona lisa")


def test_a_missing_wheel_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    background.open_photograph.cache_clear()
    monkeypatch.setattr(background.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match="pip install scikit-image"):
        photograph("coffee")
    monkeypatch.undo()
    monkeypatch.setitem(background.PHOTOGRAPHS, "mona lisa", "mona_lisa.png")
    with pytest.raises(MissingPartError, match=r"does not ship mona_lisa\.png"):
        background.open_photograph("mona lisa")


def test_a_flight_is_the_same_every_time_and_another_with_another_seed() -> None:
    first = np.stack(list(camera_flight("coffee", seconds=1, rate=5, width=64, height=48)))
    again = np.stack(list(camera_flight("coffee", seconds=1, rate=5, width=64, height=48)))
    other = np.stack(list(camera_flight("coffee", seconds=1, rate=5, width=64, height=48, seed=1)))
    assert first.shape == (5, 48, 64, 3)
    assert np.array_equal(first, again)
    assert np.abs(first.astype(int) - other).mean() > 5


def test_the_camera_never_stands_still() -> None:
    frames = np.stack(list(camera_flight("camera", seconds=10, rate=2, width=64, height=48))).astype(int)
    moves = np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2, 3))
    assert moves.min() > 1
    assert len(list(camera_flight("camera", seconds=0.01, rate=2))) == 1


@pytest.mark.parametrize("argument", ["seconds", "rate", "width", "height"])
def test_sizes_are_above_zero(argument: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{argument} must be above 0, got 0"):
        camera_flight("coffee", **{argument: 0})
