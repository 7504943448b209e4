"""What kind of copy a file is: each way in which it differs from another one, measured on packets and pictures.

Nothing is said without evidence: places come from `place_frames`, colors and overlays from the pictures in their
places, "the same picture" from the packets. Where the frames of both agree nowhere, nothing is said of them.

Shapes: N moments; H, W pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.index.duplicates.comparisons import FileRecord, PairResult, content_of
from vidkin.index.duplicates.detail import colorfulness, find_overlays, measure_edges
from vidkin.index.duplicates.placement import PlacedFrames, fit_line, part_of, place_frames
from vidkin.media.packets import compare_packets
from vidkin.similarity import Box, Segment

DifferenceKind = Literal[
    "identical", "other container", "other sound or tags", "cut without re-encoding", "re-encoded",
    "trimmed", "speed", "reordered", "backwards",
    "mirrored", "turned", "cropped", "uncropped", "other aspect ratio", "lower resolution", "more pixels",
    "bars added", "bars removed", "borders added", "borders removed", "inside another picture",
    "contains it as a part",
    "caption", "no caption", "logo", "no logo", "without color", "in color", "brighter", "darker", "other colors",
]  # fmt: skip
"""In which way a copy differs."""

Where = Literal[
    "", "upper left", "top", "upper right", "left", "middle", "right", "lower left", "bottom", "lower right"
]
"""Where in the picture."""

# Shares of the picture: what is smaller is no crop and no border.
_SLIGHT = 0.04
# Ratio of speeds from which one is another, and of pixels for a length of the scene.
_OTHER_SPEED, _FEWER, _MORE_PIXELS, _FEWER_LINES = 0.03, 0.87, 1.15, 0.93
# How much wider one of two pictures must be than its height tells.
_SQUEEZED = 0.06
# A blurred border has less than this share of the edges of the picture inside it; one of a single color deviates by
# fewer gray levels.
_BLURRED, _PLAIN = 0.2, 6.0
# Mean gray level of black bars at most.
_BLACK = 24.0
# A frame within a frame: how much stronger the line around it is than others beside it.
_FRAMED = 2.5
# Parts of pictures are compared at this size.
_COMMON = (192, 256)
# A black and white copy has less than this share of the colorfulness of one in color, which has at least so much.
_COLORLESS, _SOME_COLOR = 0.3, 6.0
# Gray levels by which a copy is brighter, and by which its colors differ once its brightness is taken into account.
_BRIGHTER, _RECOLORED = 14.0, 9.0
# Share of the width that a caption takes, in the middle, and of the height that it does not exceed.
_WIDE, _HIGH = 0.38, 0.4
# Seconds by which a later piece must come from an earlier time.
_EARLIER = 0.5
# Seconds, and share of the other one, that must be missing at an end.
_TRIMMED, _TRIMMED_SHARE = 1.0, 0.05


@check_constructor
@dataclass(frozen=True, slots=True)
class Difference(Result):
    """One way in which a file differs from the one that it is compared with.

    Attributes:
        kind: What it is. ``trimmed``, ``speed``, ``reordered``, ``backwards`` are about time; ``no logo``,
            ``uncropped`` and the like say that the other one has the logo or the crop.
        amount: ``speed``: how many times as fast it runs; ``cropped``: share of the other picture's area that it
            shows, ``uncropped``: share of its own that the other one shows; ``bars added``, ``borders added``: share of
            its own area that they take, ``... removed``: of the other's; ``lower resolution``, ``more pixels``: its
            pixels for each of the other one along a line of the scene; ``turned``: degrees by which it has to be turned
            clockwise; None for other kinds.
        where: Where in the picture a caption or a logo is; empty for other kinds.
        start, end: ``trimmed``: the seconds of the other one that it shows; None for other kinds.
    """

    kind: DifferenceKind
    amount: float | None = None
    where: Where = ""
    start: float | None = None
    end: float | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(DifferenceKind))
        check_choice("where", self.where, get_args(Where))
        if self.amount is not None and not (math.isfinite(self.amount) and self.amount > 0):
            raise InvalidArgumentError(f"amount must be above 0, got {self.amount}")
        if self.start is not None and self.end is not None and self.end < self.start:
            raise InvalidArgumentError(f"end must not be before start, got {self.start} and {self.end}")


INVERSE: Mapping[DifferenceKind, DifferenceKind] = {
    "no caption": "caption",
    "no logo": "logo",
    "in color": "without color",
    "bars removed": "bars added",
    "borders removed": "borders added",
    "contains it as a part": "inside another picture",
}
"""What the second of two files has, by what the first one lacks."""


def find_differences(first: FileRecord, second: FileRecord, result: PairResult) -> tuple[Difference, ...]:
    """In which ways the first of two copies differs from the second; empty if nothing can be told.

    Args:
        first, second: The files.
        result: Their comparison, with the first as the query; the longest segment is where the frames are from.

    Raises:
        MediaError: One of the files cannot be read.
    """
    if content_of(first.record) == content_of(second.record):
        return (Difference("identical"),)
    segment = max(result.segments, key=lambda item: item.query_end - item.query_start, default=None)
    if segment is None:
        return ()
    if segment.backwards:
        return (Difference("backwards"),)
    lengths = first.record.duration, second.record.duration
    are_pictures = first.record.is_photograph or second.record.is_photograph
    is_upright = not (segment.mirrored or segment.turned)
    if not are_pictures and is_upright and first.record.codec == second.record.codec:
        same = compare_packets(first.record.path, second.record.path)
        if same is not None:
            if same.is_whole:
                kind: DifferenceKind = "other container" if same.other_container else "other sound or tags"
                return (Difference(kind),)
            times = _of_times(segment, result, lengths, same.start)
            return (Difference("cut without re-encoding"), *times)
    placed = place_frames(first.record.path, second.record.path, segment, lengths)
    found: list[Difference] = []
    if not are_pictures:
        found += _of_times(_exact(segment, placed), result, lengths)
    if segment.mirrored:
        found.append(Difference("mirrored"))
    if segment.turned:
        found.append(Difference("turned", float(segment.turned)))
    if placed is not None:
        size = first.record.width, first.record.height
        upright = size[::-1] if segment.turned % 180 else size
        sizes = upright, (second.record.width, second.record.height)
        found += _of_place(placed, sizes)
        pairs = list(placed.common(_COMMON))
        ones, others = [one for one, _ in pairs], [other for _, other in pairs]
        found += _of_pictures(placed, ones, others)
        # Whatever changes the picture was encoded again; it is said only where nothing else is.
        if all(difference.kind == "trimmed" for difference in found):
            found.append(Difference("re-encoded"))
    return tuple(found)


def _exact(segment: Segment, placed: PlacedFrames | None) -> Segment:
    """The segment with its line through the moments that were found to be the same."""
    if placed is None:
        return segment
    offset, speed = fit_line(placed, segment)
    start, end = (max(0.0, offset + speed * time) for time in (segment.query_start, segment.query_end))
    return replace(segment, target_start=start, target_end=max(start, end), speed=speed)


def _of_times(
    segment: Segment, result: PairResult, lengths: tuple[float, float], start: float | None = None
) -> Iterator[Difference]:
    """What is missing at the ends, another speed, another order."""
    in_order = sorted(result.segments, key=lambda item: item.query_start)
    middles = [(each.target_start + each.target_end) / 2 for each in in_order]
    if any(late < early - _EARLIER for early, late in pairwise(middles)):
        yield Difference("reordered")
    elif start is not None or len(in_order) == 1:
        first = segment.target_start - segment.speed * segment.query_start if start is None else start
        first, last = max(0.0, first), min(lengths[1], first + segment.speed * lengths[0])
        # What lacks is told by the lengths: ends that are black match nothing.
        allowed = max(_TRIMMED, _TRIMMED_SHARE * lengths[1])
        if last - first < lengths[1] - allowed and max(first, lengths[1] - last) > allowed / 2:
            yield Difference("trimmed", start=first, end=last)
    if abs(segment.speed - 1) > _OTHER_SPEED:
        yield Difference("speed", segment.speed)


def _of_place(placed: PlacedFrames, sizes: tuple[tuple[int, int], tuple[int, int]]) -> Iterator[Difference]:
    """Crops, borders, sizes and shapes."""
    placement = placed.placement
    shown, seen = placement.inside_box, placement.covered_box
    yield from _borders(placed.first, shown, placed.first_picture, added=True)
    yield from _borders(placed.second, seen, placed.second_picture, added=False)
    # Pixels of the first for each of the second along a line of the scene.
    ratios = [
        sizes[0][axis] * (shown[axis + 2] - shown[axis]) / (sizes[1][axis] * (seen[axis + 2] - seen[axis]))
        for axis in (0, 1)
    ]
    if abs(math.log(ratios[0] / ratios[1])) > _SQUEEZED:
        yield Difference("other aspect ratio")
    # One side of a squeezed picture has fewer lines, which is said already.
    density = max(ratios)
    frame = math.sqrt(sizes[0][0] * sizes[0][1] / (sizes[1][0] * sizes[1][1]))
    if density < _FEWER and frame < _FEWER_LINES:
        yield Difference("lower resolution", density)
    elif density > _MORE_PIXELS and frame > 1 / _FEWER_LINES:
        yield Difference("more pixels", density)


def _borders(images: NDArray[np.uint8], part: Box, picture: Box, *, added: bool) -> Iterator[Difference]:
    """What is around the common part of the pictures of one of the videos.

    Args:
        images: [N, H, W, 3].
        part: The part that the other one shows, too.
        picture: The part without bars.
        added: Whether these are pictures of the copy; otherwise it lacks what is found.
    """
    around = 1.0 - _area(part)
    if around < _SLIGHT:
        return
    inside, bars = _overlap(part, picture), 1.0 - _area(picture)
    if bars >= _SLIGHT / 2:
        if _area(part) - inside < _SLIGHT / 2:  # they are outside of what the other one shows
            if _is_black_outside(images, picture):
                yield Difference("bars added" if added else "bars removed", bars)
            else:
                yield Difference("borders added" if added else "borders removed", bars)
        # Between the bars both may still show different parts.
        around = 1.0 - inside / _area(picture)
        if around < _SLIGHT:
            return
    what = _surroundings(images, part)
    if what == "border":
        yield Difference("borders added" if added else "borders removed", around)
    elif what == "frame":
        yield Difference("inside another picture" if added else "contains it as a part")
    elif added:
        yield Difference("uncropped", inside / _area(picture))
    else:
        yield Difference("cropped", inside / _area(picture))


def _is_black_outside(images: NDArray[np.uint8], picture: Box) -> bool:
    height, width = images.shape[1:3]
    outside = np.ones((height, width), dtype=bool)
    outside[
        round(picture[1] * height) : round(picture[3] * height), round(picture[0] * width) : round(picture[2] * width)
    ] = False
    return bool(outside.any()) and float(images[:, outside].mean()) < _BLACK


def _surroundings(images: NDArray[np.uint8], part: Box) -> Literal["border", "frame", "scene"]:
    """What is around a part of pictures [N, H, W, 3]: a border without detail, other footage, or more of the scene."""
    luma = images.astype(np.float32).mean(axis=-1)
    height, width = luma.shape[1:]
    left, right = round(part[0] * width), round(part[2] * width)
    top, bottom = round(part[1] * height), round(part[3] * height)
    edges = np.mean([measure_edges(image) for image in luma], axis=0)
    margin = 3
    outside = np.ones((height, width), dtype=bool)
    outside[max(0, top - margin) : bottom + margin, max(0, left - margin) : right + margin] = False
    inner = edges[top + margin : bottom - margin, left + margin : right - margin]
    if not outside.any() or not inner.size:
        return "scene"
    if _strength_of_lines(luma, (left, top, right, bottom)) < _FRAMED:
        return "scene"
    if float(luma[:, outside].std(axis=1).mean()) < _PLAIN:
        return "border"
    return "border" if float(edges[outside].mean()) < _BLURRED * float(inner.mean()) else "frame"


def _strength_of_lines(luma: NDArray[np.float32], box: tuple[int, int, int, int]) -> float:
    """How much stronger the steps across the sides of a box are than those beside them; the weakest side counts."""
    height, width = luma.shape[1:]
    left, top, right, bottom = box
    strengths = []
    for at, size, low, high, axis in (
        (left, width, top, bottom, 2),
        (right, width, top, bottom, 2),
        (top, height, left, right, 1),
        (bottom, height, left, right, 1),
    ):
        if not 4 <= at <= size - 4 or high - low < 8:
            continue
        lines = luma[:, low:high] if axis == 2 else luma[:, :, low:high].swapaxes(1, 2)
        steps = np.abs(np.diff(lines, axis=2)).mean(axis=(0, 1))  # [size - 1], step k is between k and k + 1
        near = steps[max(0, at - 3) : at + 2].max()
        beside = np.median(steps[max(0, at - 24) : at + 24])
        strengths.append(float(near / max(beside, 0.5)))
    return min(strengths, default=0.0)


def _of_pictures(
    placed: PlacedFrames, ones: Sequence[NDArray[np.uint8]], others: Sequence[NDArray[np.uint8]]
) -> Iterator[Difference]:
    """Colors, and what is laid over one of the two, by the part of the pictures that both show."""
    plain = np.ones(_COMMON, dtype=bool)
    for overlay in find_overlays(ones, others):
        left, top, right, bottom = overlay.box
        rows = slice(round(top * _COMMON[0]), round(bottom * _COMMON[0]))
        plain[rows, round(left * _COMMON[1]) : round(right * _COMMON[1])] = False
        place = part_of(placed.placement.inside_box, overlay.box)
        kinds: tuple[DifferenceKind, DifferenceKind]
        kinds = ("caption", "no caption") if _is_caption(place) else ("logo", "no logo")
        yield Difference(kinds[overlay.side == "second"], where=_where(place))
    # A colored logo does not make a gray picture one in color. To choose pixels costs more than to count all of them.
    if plain.any() and not plain.all():
        colors = colorfulness([one[plain] for one in ones]), colorfulness([other[plain] for other in others])
    else:
        colors = colorfulness(ones), colorfulness(others)
    if colors[1] >= _SOME_COLOR and colors[0] < _COLORLESS * colors[1]:
        yield Difference("without color")
    elif colors[0] >= _SOME_COLOR and colors[1] < _COLORLESS * colors[0]:
        yield Difference("in color")
    else:
        yield from _of_colors(np.stack(ones), np.stack(others))


def _of_colors(ones: NDArray[np.uint8], others: NDArray[np.uint8]) -> Iterator[Difference]:
    """Another brightness, or other colors.

    Blocks of 16 pixels are compared, so that edges that do not lie exactly on each other do not count; medians over
    them, so that an overlay does not.
    """
    one, other = (_blocks(images) for images in (ones, others))
    change = one - other
    brighter = float(np.median(change.mean(axis=1)))
    # What brightness and contrast explain is no change of hue: one line through the levels of all channels.
    levels, target = other.reshape(-1), one.reshape(-1)
    spread = float(levels.std())
    gain = float(np.cov(levels, target)[0, 1]) / spread**2 if spread > 2 else 1.0
    hues = (one - one.mean(axis=1, keepdims=True)) - gain * (other - other.mean(axis=1, keepdims=True))
    is_tinted = float(np.median(np.abs(hues), axis=0).max()) > _RECOLORED
    has_other_contrast = float(np.median(np.abs(change - np.median(change)))) > _RECOLORED
    if is_tinted:
        yield Difference("other colors")
    elif abs(brighter) >= _BRIGHTER:
        yield Difference("brighter" if brighter > 0 else "darker")
    elif has_other_contrast:
        yield Difference("other colors")


def _blocks(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Mean colors [blocks, 3] of 16 x 16 pixels."""
    count, height, width, _ = images.shape
    # Sums of whole numbers, lines first: a tenth of the time of a mean over two axes at once.
    lines = images.reshape(count, height // 16, 16, width * 3).sum(axis=2, dtype=np.uint16)
    sums = lines.reshape(count, height // 16, width // 16, 16, 3).sum(axis=3, dtype=np.uint32)
    return np.asarray(sums.reshape(-1, 3) / np.float32(256), np.float32)


def _is_caption(box: Box) -> bool:
    return box[2] - box[0] >= _WIDE and box[3] - box[1] <= _HIGH and 1 / 3 <= (box[0] + box[2]) / 2 <= 2 / 3


def _where(box: Box) -> Where:
    """Third of the picture in which the middle of a box is; what is as wide as the picture is in its middle."""
    across, down = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    column = 1 if box[2] - box[0] > 0.6 else min(2, int(3 * across))
    row = 1 if box[3] - box[1] > 0.6 else min(2, int(3 * down))
    names: tuple[Where, ...] = (
        *("upper left", "top", "upper right", "left", "middle", "right", "lower left", "bottom", "lower right"),
    )
    return names[3 * row + column]


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _overlap(one: Box, other: Box) -> float:
    """Area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)
