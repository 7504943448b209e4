"""What a camera shows that moves: the picture is found again a moment later, a little elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.between import PARTS, REACH, SHIFTS, SMALL, search_blocks
from vidkin.shots.frame_vectors import FrameVectors
from vidkin.shots.regions import (
    halved_sums,
    measure_filled,
)

# Frames beyond a stretch at which the shots are examined.
BEYOND = 2


# Steps within a stretch in which blocks are followed, the part of it that a step takes, and its fewest and most
# frames: a camera that goes over a photograph must not go farther than blocks are looked for.
_FOLLOWED_STEPS, _STEP_PART, _STEP_FRAMES = 5, 10, (2, 4)

# Variance of noise in a picture of 32 x 32: what fades in slowly or moves little shows at all, and what a screen shows
# is another picture.
_LITTLE_NOISE, _MUCH_NOISE = 6.0, 36.0


def measure_motion(vectors: FrameVectors, first: int, last: int) -> tuple[float, float, float, float, float]:
    """How much of the picture's inside comes from nowhere in a stretch and beside it, and how far it moves.

    A camera that goes over a photograph brings new things in at an edge of the picture alone; a wipe shows them
    anywhere, and what is pushed away moves faster than before and after.

    Args:
        vectors: The film's last frames.
        first, last: First and last frame of the stretch.

    Returns:
        The mean and the least share, over steps of two to four frames, of inner blocks that are not found in the frame
        before, and how far all blocks move in a step, in shares of the picture; then the mean share and the
        largest movement over the steps just before and after the stretch.
    """
    span = last - first + 1
    step = min(max(_STEP_FRAMES[0], round(span / _STEP_PART)), _STEP_FRAMES[1])
    starts = np.linspace(first - 1, max(first - 1, last - step), _FOLLOWED_STEPS).round().astype(int)
    inside = [_follow(vectors, start, start + step) for start in np.unique(starts).tolist()]
    outside = [_follow(vectors, start, start + step) for start in (first - BEYOND - step, last + BEYOND)]
    lost, moved = np.array(inside).T
    return (
        float(lost.mean()),
        float(lost.min()),
        float(moved.mean()),
        float(np.mean([share for share, _ in outside])),
        max(way for _, way in outside),
    )


def measure_anew(vectors: FrameVectors, frame: int) -> tuple[float, float]:
    """The share of blocks that are nowhere near in the frame before or after a cut, and how well they fill one upright
    rectangle: however the camera moves, a screen in the picture is one, and the rest is found again."""
    old, new = (_small_picture(vectors.luma(one)) for one in (frame - 1, frame))
    gone, come = (search_blocks(*pair, noise=_MUCH_NOISE) for pair in ((new, old), (old, new)))
    anew = ~(gone.found & come.found)
    return float(anew.mean()), measure_filled(anew.astype(np.float32))


def _follow(vectors: FrameVectors, one: int, other: int) -> tuple[float, float]:
    """The share of inner blocks of a frame that are nowhere near in an earlier one, and the way that most blocks went,
    in shares of the picture."""
    one, other = vectors.hold(one), vectors.hold(other)
    if one == other:
        return 0.0, 0.0
    search = search_blocks(*(_small_picture(vectors.luma(frame)) for frame in (one, other)), noise=_LITTLE_NOISE)
    lost = float(1 - search.found[1:-1, 1:-1].mean())
    # Blocks that show something, are found again and do not fit where they were.
    if np.count_nonzero(search.moved) < PARTS // 2:
        return lost, 0.0
    best = search.best[search.moved]
    down, across = np.median(best // SHIFTS) - REACH, np.median(best % SHIFTS) - REACH
    return lost, float(np.hypot(down, across)) / SMALL


def _small_picture(luma: NDArray[np.uint8]) -> NDArray[np.float32]:
    """[32, 32] means of luma [128, 128]."""
    sums = halved_sums(luma)
    quarter = sums[::2, ::2] + sums[::2, 1::2] + sums[1::2, ::2] + sums[1::2, 1::2]
    return quarter.astype(np.float32) / np.float32(16)
