"""How the windows of an index are whitened: written once, before the manifest that says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import CollectionDamagedError
from vidkin.index.storage.files import REMEDY, WHITENING_FILE, read_units, reading, write_whole
from vidkin.index.storage.opening import LocalPlace
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import (
    WindowWhitening,
)

# Windows of new indexes are whitened by the root of the covariance.
WHITENING_POWER = 0.5

# Vectors of the background that a covariance needs for each dimension.
_VECTORS_A_DIMENSION = 8

_SHIPPED = LocalPlace(Path(__file__).with_name("data"))


def fit_whitening(fingerprint: str) -> WindowWhitening | None:
    """How windows of a new index are whitened: by the root of the covariance of the background photographs.

    None where nobody measured what it does: for extractors whose background does not ship, which includes those with a
    whitening of their own, and where it has too few vectors for a covariance.
    """
    background = shipped_background(fingerprint)
    if background is None or background.shape[1] != 1:
        return None
    count, _, dimension = background.shape
    return WindowWhitening.fit(background[:, 0], WHITENING_POWER) if count >= _VECTORS_A_DIMENSION * dimension else None


def shipped_background(fingerprint: str) -> NDArray[np.floating] | None:
    """Descriptors [N, R, D] of the background photographs, measured once for our own extractors; else None."""
    # Photographs are described alike whichever side of a comparison is cut into parts.
    names = dict.fromkeys([fingerprint, fingerprint.replace("-query", "", 1)])
    found = (read_units(_SHIPPED, f"{name}.safetensors", "background") for name in names)
    return next((background for background in found if background is not None), None)


def read_whitening(place: Place) -> WindowWhitening:
    """How the windows of this index are whitened.

    Raises:
        CollectionDamagedError: The file is missing or damaged; nothing can be searched without it.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    address = place.address(WHITENING_FILE)
    with reading(address):
        content = place.read(WHITENING_FILE)
        if content is None:
            raise CollectionDamagedError(f"{address} is missing; {REMEDY}")
        try:
            arrays = load(content)
        except SafetensorError as error:
            raise ValueError(str(error)) from error
        mean, turn = arrays["mean"], arrays["turn"]
        if mean.dtype != np.float32 or turn.dtype != np.float32 or turn.shape != (len(mean),) * 2:
            raise ValueError("its values are not what was written")
        if not (mean @ mean < 1 and np.isfinite(turn).all() and np.linalg.matrix_rank(turn) == len(mean)):
            raise ValueError("its values are not what was written")
        return WindowWhitening(mean, turn)


def write_whitening(place: Place, whitening: WindowWhitening) -> None:
    """Write what :func:`read_whitening` reads, whole or not at all."""
    from safetensors.numpy import save

    arrays = {"mean": whitening.mean, "turn": np.ascontiguousarray(whitening.turn)}
    write_whole(place, WHITENING_FILE, save(arrays))
