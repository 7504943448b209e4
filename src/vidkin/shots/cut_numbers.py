"""Measurements of a frame that can begin a shot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.band import BAND_LAGS
from vidkin.shots.frame_vectors import FrameVectors
from vidkin.shots.motion import measure_anew
from vidkin.shots.regions import (
    NOISE,
    PictureStep,
    changed_blocks,
    compare_regions,
    measure_filled_rectangle,
    measure_uniform_change,
    region_change,
)

# Luma of black bars beside a narrow picture, at most.
_BLACK_BAR = 30.0


HARD_NUMBERS = (
    "distance", "contrast", "network", "across", "share", "structure", "brightness", "steady", "beside",
    "quiet", "gradual", "others", "motion", "stays", "stayed", "filled", "picture", "before", "after",
    "again", "alive", "rectangle", "frozen", "letters", "beside_it", "anew", "anew_filled",
)  # fmt: skip

"""Names of the numbers of `measure_cut`."""

SIDE = 3

"""Number of frames compared on either side of a cut."""

AROUND = 8

"""Number of frames to either side whose rows and answers count."""

# Frames in which movement before and after a cut is measured, at the places that change at the cut.
_MOVING = 6

# Columns of the band's rows.
_STRUCTURE, _CONTRAST, _BRIGHTNESS_CHANGE = 0, 4 * len(BAND_LAGS) + 1, 4 * len(BAND_LAGS) + 4

# Distances below this count as zero.
_LITTLE = 4e-3

# Answer of the network above which blocks are looked for in the other frame.
_CAN_BE = 0.02


def measure_cut(
    frame: int,
    vectors: FrameVectors,
    rows: NDArray[np.float32],
    answers: NDArray[np.float32],
    *,
    first_row: int,
    side: int,
) -> tuple[float, ...]:
    """Measure `HARD_NUMBERS` of a cut before this frame.

    Args:
        frame: First frame of the new shot, at least 1.
        vectors: Vectors of the film's last frames.
        rows: [N, 48] band features from frame ``first_row`` on.
        answers: [T, 5] answers of the network for all frames so far.
        first_row: Frame of the first row.
        side: Number of frames examined before and after; 0 assumes that nothing moves there.
    """
    count, place = vectors.count, frame - first_row
    distance = vectors.distance(frame - 1, frame)

    def step(one: int) -> float:
        return vectors.distance(one - 1, one) if 1 <= one < count else np.nan

    steps = np.array([step(one) for one in range(frame - side, frame + side + 1)])
    usual = usual_distance(np.r_[np.nan, steps], side + 1)
    before = range(max(0, frame - max(1, side)), frame)
    after = range(frame, min(count, frame + max(1, side)))
    across = min(vectors.distance(one, other) for one in before for other in after)
    # How far the shots themselves change before and after the cut, if they last three frames.
    steady = max(vectors.distance(before[0], before[-1]), vectors.distance(after[0], after[-1]))
    beside = np.nan_to_num([step(frame - 1), step(frame + 1)]) if side else np.zeros(2)
    others = np.delete(steps, side)
    others = np.sort(others[~np.isnan(others)])
    # The largest is left out because it can be the next cut.
    quiet = float(np.median(others)) + float(others[-2]) / 2 if len(others) > 1 else 0.0
    motion = np.r_[rows[max(1, place - AROUND) : place, _STRUCTURE], rows[place + 1 : place + 1 + AROUND, _STRUCTURE]]
    beyond = np.r_[answers[max(0, frame - 6) : frame - 1, 0], answers[frame + 2 : frame + 7, 0]]
    # Repeated or shaking frames change just as much again soon after.
    apart = [range(max(1, place - AROUND), max(1, place - 1)), range(place + 2, place + 1 + AROUND)]
    nearby = np.concatenate([rows[part.start : part.stop, _STRUCTURE] for part in apart])
    old, new = vectors.blocks(frame - 1), vectors.blocks(frame)
    changed = changed_blocks(old, new)
    stays, filled = region_change(changed)
    moving = changed_blocks(vectors.blocks(max(0, frame - 1 - _MOVING)), old)
    moving = moving | changed_blocks(new, vectors.blocks(frame + _MOVING))
    stayed = min(
        compare_regions(vectors.blocks(one - 1), vectors.blocks(one))[0] if 1 <= one < count else 1.0
        for one in (frame - 1, frame + 1)
    )
    graphic = PictureStep(vectors.luma(frame - 1), vectors.luma(frame))
    numbers = (
        np.log(distance + 1e-4),
        np.log(distance / usual + 1e-2),
        logit(answers[frame, 0]),
        np.log(across + 1e-3),
        across / distance,
        rows[place, _STRUCTURE],
        abs(rows[place, _BRIGHTNESS_CHANGE]) / 8,
        np.log((across + 1e-3) / (steady + _LITTLE)),
        np.log(distance / (beside.max() + _LITTLE)),
        np.log(distance / (quiet + _LITTLE)),
        logit(answers[frame, 1]),
        logit(beyond.max(initial=0.0)),
        np.log(np.median(motion) + 1e-2) if len(motion) else np.log(1e-2),
        stays,
        stayed,
        filled,
        np.log(rows[place - 1 : place + 1, _CONTRAST].min() * 128 + 1.0),
        np.log(beside[0] + 1e-3),
        np.log(beside[1] + 1e-3),
        np.log((rows[place, _STRUCTURE] + 0.02) / (nearby.max(initial=0.0) + 0.02)),
        (moving & changed).sum() / (changed.sum() + 1),
        measure_filled_rectangle(graphic),
        # A frame that was repeated is followed by all the motion that it left out.
        np.log((rows[max(0, place - 1), _STRUCTURE] + 2e-3) / (np.median(motion) + 2e-3)) if len(motion) else 0.0,
        measure_uniform_change(graphic),
        float((((old.variances > NOISE**2) | (old.means > _BLACK_BAR)) & ~changed.ravel()).mean()),
        *(measure_anew(vectors, frame) if answers[frame, 0] > _CAN_BE else (1.0, 0.0)),
    )
    return tuple(float(number) for number in numbers)


def stands_out(
    distances: NDArray[np.float64], frames: NDArray[np.intp], times: float, floor: float
) -> NDArray[np.bool_]:
    """Which of these frames have a distance above `usual_distance`; at every frame but 0 the distance is known.

    The same for many frames at once, [N]: NumPy's median takes longer than all the rest of a frame's measurements.
    """
    outside = (frames < SIDE + 1) | (frames >= len(distances) - SIDE)
    above = np.zeros(len(frames), bool)
    for place in np.flatnonzero(outside):
        frame = int(frames[place])
        above[place] = distances[frame] > usual_distance(distances, frame, times, floor)
    inside = frames[~outside, None]
    beside = np.array([*range(-SIDE, 0), *range(1, SIDE + 1)])
    around = np.sort(distances[inside + beside], axis=1)
    usual = times * ((around[:, SIDE - 1] + around[:, SIDE]) / 2 + around[:, -1] / 2 + floor)
    above[~outside] = distances[inside[:, 0]] > usual
    return above


def usual_distance(distances: NDArray[np.float64], frame: int, times: float = 2.0, floor: float = 0.004) -> float:
    """Reference for a distance: ``times * (median + maximum / 2 + floor)`` over three distances to either side.

    Near the ends fewer distances are used; NaN means an unknown distance.
    """
    around = np.concatenate([distances[max(1, frame - SIDE) : frame], distances[frame + 1 : frame + 1 + SIDE]])
    around = around[~np.isnan(around)]
    if not len(around):
        return times * floor
    return times * (float(np.median(around)) + float(around.max()) / 2 + floor)


def logit(share: float | np.floating) -> float:
    """Logarithm of the odds of a probability, which is limited to .001 through .999."""
    share = min(max(float(share), 1e-3), 1 - 1e-3)
    return float(np.log(share / (1 - share)))
