"""Photographs included in scikit-image, and simulated camera flights over them."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from vidkin.datasets import PHOTOGRAPHS, camera_flight, photograph, photographs
from vidkin.errors import InvalidArgumentError, MissingPartError


def test_all_photographs_are_available_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a photograph was looked for on the network")

    monkeypatch.setattr(socket, "socket", refuse)
    photographs._open_original.cache_clear()
    for name in PHOTOGRAPHS:
        image = photograph(name)
        assert image.dtype == np.uint8
        assert image.ndim == 3
        assert image.shape[2] == 3
        assert min(image.shape[:2]) >= 300
        assert image.std() > 5


def test_returned_photograph_is_a_copy() -> None:
    photograph("coffee")[:] = 0
    assert photograph("coffee").max() > 0


def test_unknown_photograph_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"name must be one of astronaut, .*, got 'mona lisa'"):
        photograph("mona lisa")


def test_bundled_photographs_are_used_without_scikit_image(monkeypatch: pytest.MonkeyPatch) -> None:
    originals = {name: photograph(name) for name in PHOTOGRAPHS}
    photographs._open_original.cache_clear()
    monkeypatch.setattr(photographs.importlib.util, "find_spec", lambda name: None)
    for name, original in originals.items():
        shipped = photograph(name)
        if shipped.shape == original.shape:
            assert np.abs(shipped.astype(int) - original).mean() < 4
        else:  # the two large ones are downscaled
            assert name in ("hubble", "retina")
            assert shipped.shape[1] / shipped.shape[0] == pytest.approx(original.shape[1] / original.shape[0], abs=0.01)
    photographs._open_original.cache_clear()


def test_error_for_a_missing_file_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(photographs.PHOTOGRAPHS, "mona lisa", "mona_lisa.png")
    with pytest.raises(MissingPartError, match=r"does not ship mona_lisa\.png"):
        photograph("mona lisa")


def test_flights_depend_only_on_the_seed() -> None:
    first = np.stack(list(camera_flight("coffee", seconds=1, rate=5, width=64, height=48)))
    again = np.stack(list(camera_flight("coffee", seconds=1, rate=5, width=64, height=48)))
    other = np.stack(list(camera_flight("coffee", seconds=1, rate=5, width=64, height=48, seed=1)))
    assert first.shape == (5, 48, 64, 3)
    assert np.array_equal(first, again)
    assert np.abs(first.astype(int) - other).mean() > 5


def test_the_camera_is_always_moving() -> None:
    frames = np.stack(list(camera_flight("camera", seconds=10, rate=2, width=64, height=48))).astype(int)
    moves = np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2, 3))
    assert moves.min() > 1
    assert len(list(camera_flight("camera", seconds=0.01, rate=2))) == 1


@pytest.mark.parametrize("argument", ["seconds", "rate", "width", "height"])
def test_size_zero_is_rejected(argument: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{argument} must be above 0, got 0"):
        camera_flight("coffee", **{argument: 0})
