"""The sample film for the demo: five shots over photographs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin.datasets.photographs import camera_flight
from vidkin.media import write_video

# Source that is recorded in the film, so that a film of an earlier version may be replaced.
_MADE_OF = "samples of vidkin"

SAMPLE_SHOTS = (("coffee", 3.0), ("rocket", 2.4), ("chelsea", 2.8), ("motorcycle", 3.2), ("hubble", 2.2))

"""(photograph, seconds) of each shot; all transitions are hard cuts except the last, a dissolve."""

_DISSOLVE = 0.8


@check_arguments
def write_sample_film(
    path: PathLike, *, rate: int = 15, width: int = 320, height: int = 240, seed: int = 1
) -> tuple[float, ...]:
    """Write a film that consists of camera flights over photographs.

    Args:
        path: The video file to write.
        rate: Frames per second.
        width: Width of the frames in pixels, an even number.
        height: Height of the frames in pixels, an even number.
        seed: Seed of the flights.

    Returns:
        Start of each shot except the first, in seconds: its first frame, or the middle of the dissolve.

    Raises:
        MissingPartError: The scikit-image wheel lacks a photograph.
        MediaError: The file cannot be written.
    """
    shots = [
        np.stack(list(camera_flight(name, seconds=seconds, rate=rate, width=width, height=height, seed=seed)))
        for name, seconds in SAMPLE_SHOTS
    ]
    overlap = round(_DISSOLVE * rate)
    write_video(path, _join(shots, overlap), rate=rate, made_of=_MADE_OF)
    lengths = np.cumsum([len(shot) for shot in shots[:-1]]).astype(float)
    lengths[-1] -= overlap / 2
    return tuple(float(length) / rate for length in lengths)


def _join(shots: list[NDArray[np.uint8]], overlap: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames of all shots, with a dissolve of ``overlap`` frames between the last two."""
    *before, first, second = shots
    for shot in before:
        yield from shot
    yield from first[:-overlap]
    for index in range(overlap):
        share = (index + 1) / (overlap + 1)
        mixed = (1 - share) * first[len(first) - overlap + index] + share * second[index]
        yield mixed.round().astype(np.uint8)
    yield from second[overlap:]
