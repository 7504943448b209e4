"""Where transitions can be, divided at plain backgrounds, and fades: one transition from picture to picture through a
plain background, with nothing inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.contract import DetectedCut

LEAST_PICTURE = 3.0
"""Least contrast of luma (deviation, of 255) of a frame that shows a picture rather than a plain background."""

SHORTEST = 3
"""Fewest frames of a fade or a dissolve."""

# Least answer of the network for a frame that can lie in a transition, and for one that certainly does.
_POSSIBLE, _SURELY = 0.25, 0.9

# Contrast of a plain background. A background longer than this many frames separates a fade-out from a fade-in; its
# first and last frames belong to them. A picture that is there at once has this share of the contrast that follows;
# one that comes and goes is there while it has the last share of its largest contrast.
_GROUND, _ONE_FADE, _AT_ONCE, _FULL = 1.0, 10, 0.75, 0.9

# Shorter stretches are noise, or the uncertain edge of a hard cut.
_MIN_FRAMES = 3

# Gaps of up to this many frames do not divide a transition.
_GAP = 2


def find_stretches(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last frames of the stretches that are long enough, across small gaps."""
    frames = np.flatnonzero(inside)
    if not len(frames):
        return []
    breaks = np.flatnonzero(np.diff(frames) > _GAP + 1)
    firsts = frames[np.concatenate([[0], breaks + 1])]
    lasts = frames[np.concatenate([breaks, [len(frames) - 1]])]
    return [
        (int(first), int(last)) for first, last in zip(firsts, lasts, strict=True) if last - first + 1 >= _MIN_FRAMES
    ]


def propose_stretches(answers: NDArray[np.float32], contrasts: NDArray[np.float32]) -> list[tuple[int, int]]:
    """First and last frames of stretches that can be transitions.

    Args:
        answers: [T] probability that each frame lies in a transition.
        contrasts: [T] deviation of luma, of 255.
    """
    parts = []
    for first, last in find_stretches(answers > _POSSIBLE):
        for start, end in _divide_at_dips(first, last, answers):
            for part in _divide_at_ground(start, end, answers, contrasts):
                parts += _divide_at_picture(*part, answers, contrasts)
    return parts


def _divide_at_dips(first: int, last: int, answers: NDArray[np.float32]) -> list[tuple[int, int]]:
    """Small gaps divide a stretch only if both sides are certainly separate transitions."""
    low = np.flatnonzero(answers[first : last + 1] <= _POSSIBLE) + first
    for frame in low.tolist():
        before = find_stretches(answers[first:frame] > _POSSIBLE)
        after = find_stretches(answers[frame + 1 : last + 1] > _POSSIBLE)
        if not before or not after:
            continue
        end, start = first + before[-1][1], frame + 1 + after[0][0]
        if answers[first : end + 1].max() >= _SURELY and answers[start : last + 1].max() >= _SURELY:
            return [(first, end), *_divide_at_dips(start, last, answers)]
    return [(first, last)]


def _divide_at_ground(
    first: int, last: int, answers: NDArray[np.float32], contrasts: NDArray[np.float32]
) -> list[tuple[int, int]]:
    """A plain background shown for long between pictures lies between two fades. Where the picture after it is there at
    once, the fade ends; what follows is only a transition if it certainly is one."""
    ground = np.flatnonzero(contrasts[first : last + 1] < _GROUND) + first
    runs = np.split(ground, np.flatnonzero(np.diff(ground) > 1) + 1) if len(ground) else []
    for run in runs:
        start, end = int(run[0]), int(run[-1])
        following = contrasts[end + 1 : last + 4]
        if start - first + 1 < SHORTEST or contrasts[max(0, first - 3) : start + 1].max() < LEAST_PICTURE:
            continue
        if last > end and following[0] >= max(LEAST_PICTURE, _AT_ONCE * following[:SHORTEST].max()):
            is_another = answers[end + 1 : last + 1].max() >= _SURELY
            return [(first, end), *(_divide_at_ground(end + 1, last, answers, contrasts) if is_another else ())]
        if len(run) > _ONE_FADE and last - end + 1 >= SHORTEST and contrasts[end : last + 4].max() >= LEAST_PICTURE:
            return [(first, start), *_divide_at_ground(end, last, answers, contrasts)]
    return [(first, last)]


def _divide_at_picture(
    first: int, last: int, answers: NDArray[np.float32], contrasts: NDArray[np.float32]
) -> list[tuple[int, int]]:
    """What leads from a plain background to a picture and back to one are two fades: a title that comes and goes."""
    shown = contrasts[first : last + 1]
    before, after = contrasts[max(0, first - 1) : first + 1].min(), contrasts[last : last + 2].min()
    if max(before, after) >= _GROUND:
        return [(first, last)]
    full = np.flatnonzero(shown >= _FULL * shown.max()) + first
    middle = int(full[0] + np.argmin(answers[full[0] : full[-1] + 1]))
    if shown.max() < LEAST_PICTURE or min(middle - first + 1, last - middle) < SHORTEST:
        return [(first, last)]
    return [(first, middle), (middle + 1, last)]


# Contrast below which an encoded frame shows a plain background, and the seconds up to which one divides neither a
# fade-out from a fade-in nor a cut to it from a cut away from it.
PLAIN, FADE_GAP, _CUT_GAP = 2.0, 1.0, 0.5

# Confidence from which a cut is one, wherever it lies.
_CERTAIN = 0.9


def settle_fades(
    cuts: Sequence[DetectedCut], contrasts: NDArray[np.float32], times: Sequence[float]
) -> tuple[DetectedCut, ...]:
    """Join what is divided only by a plain background of a moment, and drop sudden cuts inside fades.

    Two fades a second or less apart, or two sudden cuts half a second or less apart, are one fade if all frames
    between show a plain background. So are a fade and what else leads to that background in time: a transition of
    another kind, or a sudden cut of less than .9, which is a fade of a few frames. A fade that has only a second of
    such frames before or after it reaches the first or last frame. A sudden cut of less than .9 inside a fade is
    dropped where the picture has less than half of the contrast that it has around the fade. A cut of .9 or more to a
    plain background from which a fade leads within a second remains, and says so, and so does one away from a
    background to which a fade led.

    Args:
        cuts: Cuts in order of frames.
        contrasts: [T] deviation of luma, of 255.
        times: [T] times of frames in seconds.
    """
    joined: list[DetectedCut] = []
    for cut in cuts:
        before = joined[-1] if joined else None
        if before is not None and _is_one_fade(before, cut, contrasts, times):
            start = before.frame if before.start_frame is None else before.start_frame
            end = cut.frame - 1 if cut.end_frame is None else cut.end_frame
            sure = (min(before.confidence, cut.confidence), min(before.kind_confidence, cut.kind_confidence))
            middle = max(1, (start + end + 1) // 2)
            joined[-1] = DetectedCut(middle, "fade", sure[0], start, end, sure[1])
        else:
            joined.append(cut)
    for place in {0, len(joined) - 1} if joined else ():
        joined[place] = _reach_ends(joined[place], contrasts, times)
    fades = [cut for cut in joined if cut.kind == "fade"]
    left = (cut for cut in joined if cut.is_gradual or not any(_is_inside(cut, fade, contrasts) for fade in fades))
    settled = sorted(left, key=lambda cut: cut.frame)
    for place, (cut, after) in enumerate(pairwise(settled)):
        if not _is_plain_between(cut, after, contrasts, times):
            continue
        if _is_certain_cut(cut) and after.kind == "fade":
            settled[place] = replace(settled[place], is_to_ground=True)
        elif cut.kind == "fade" and _is_certain_cut(after):
            settled[place + 1] = replace(after, is_from_ground=True)
    return tuple(settled)


def _is_plain_between(
    one: DetectedCut, other: DetectedCut, contrasts: NDArray[np.float32], times: Sequence[float]
) -> bool:
    """Whether all frames between two transitions show a plain background, for a second at most."""
    first = one.frame if one.end_frame is None else one.end_frame + 1
    last = other.frame if other.start_frame is None else other.start_frame
    is_soon = first < last and times[last] - times[first] <= FADE_GAP
    return is_soon and bool((contrasts[first:last] < PLAIN).all())


def _is_one_fade(one: DetectedCut, other: DetectedCut, contrasts: NDArray[np.float32], times: Sequence[float]) -> bool:
    first = one.frame if one.end_frame is None else one.end_frame + 1
    last = other.frame if other.start_frame is None else other.start_frame
    is_sudden = not (one.is_gradual or other.is_gradual)
    if not is_sudden and ("fade" not in (one.kind, other.kind) or any(map(_is_certain_cut, (one, other)))):
        return False
    if times[last] - times[min(first, last)] > (_CUT_GAP if is_sudden else FADE_GAP):
        return False
    if last > first:
        return bool((contrasts[first:last] < PLAIN).all())
    # Two fades may meet in a frame that is not quite plain, but not in a picture that comes and goes.
    if not one.kind == other.kind == "fade":
        return False
    begin = one.frame if one.start_frame is None else one.start_frame
    end = other.frame if other.end_frame is None else other.end_frame
    return bool(contrasts[last - 1 : first + 1].min() < contrasts[begin : end + 1].max() / 2)


def _is_certain_cut(cut: DetectedCut) -> bool:
    return not cut.is_gradual and cut.confidence >= _CERTAIN


def _reach_ends(fade: DetectedCut, contrasts: NDArray[np.float32], times: Sequence[float]) -> DetectedCut:
    start, end = fade.start_frame, fade.end_frame
    if fade.kind != "fade" or start is None or end is None:
        return fade
    if (contrasts[:start] < PLAIN).all() and times[start] - times[0] <= FADE_GAP:
        start = 0
    if (contrasts[end + 1 :] < PLAIN).all() and times[-1] - times[end] <= FADE_GAP:
        end = len(contrasts) - 1
    return replace(fade, start_frame=start, end_frame=end, frame=max(1, (start + end + 1) // 2))


def _is_inside(cut: DetectedCut, fade: DetectedCut, contrasts: NDArray[np.float32]) -> bool:
    start, end = fade.start_frame, fade.end_frame
    if cut.confidence >= _CERTAIN or start is None or end is None or not start < cut.frame <= end:
        return False
    around = contrasts[[max(0, start - 1), min(end + 1, len(contrasts) - 1)]].max()
    return bool(contrasts[cut.frame - 1 : cut.frame + 1].min() < around / 2)
