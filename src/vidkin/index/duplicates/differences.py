"""Differences between a copy and another file, measured on packets and frames.

Every difference needs evidence: geometry comes from `place_frames`, colors and overlays from the aligned frames, and an
identical picture stream from the packets. If the frames do not agree, no difference in the picture is reported.

Shapes: N moments; H, W pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.index.duplicates.comparisons import FileRecord, PairResult, content_of, min_missing_seconds
from vidkin.index.duplicates.detail import block_means, find_overlays, measure_edges
from vidkin.index.duplicates.placement import PlacedFrames, fit_line, part_of, place_frames
from vidkin.match.lines import SPEED_LIMITS
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
"""Kind of difference between a copy and the other file."""

Where = Literal[
    "", "upper left", "top", "upper right", "left", "middle", "right", "lower left", "bottom", "lower right"
]
"""Position in the frame."""

# Minimum area of a crop or a border, as a fraction of the frame.
_MIN_AREA = 0.04
# Minimum deviation from speed 1.
_MIN_SPEED_CHANGE = 0.03
# Maximum ratios of pixel density and of frame size for a lower resolution.
_MAX_DENSITY_RATIO, _MAX_SIZE_RATIO = 0.87, 0.93
# Minimum difference of log aspect ratios of a squeezed copy.
_SQUEEZED = 0.06
# Maximum edge strength of a blurred border relative to the picture inside it, and maximum standard deviation in gray
# levels of a plain border.
_BLURRED, _PLAIN = 0.2, 6.0
# Maximum mean gray level of black bars.
_BLACK = 24.0
# Picture in picture: minimum ratio of the step at its outline to the steps nearby, and tolerance in pixels.
_FRAMED, _MARGIN = 2.5, 3
# Height and width at which the common regions of frames are compared.
_COMMON = (192, 256)
# Maximum colorfulness of a black-and-white copy relative to the copy in color, and minimum colorfulness of the latter.
_COLORLESS, _SOME_COLOR = 0.3, 6.0
# Minimum difference in gray levels of a brighter copy, and of colors after correcting for brightness.
_BRIGHTER, _RECOLORED = 14.0, 9.0
# Maximum height of a caption as a fraction of the frame height; it also covers the middle fifth of the width.
_MAX_CAPTION_HEIGHT = 0.4
# In a reordered copy, a later piece comes from an earlier time by at least this many seconds.
_MIN_BACKSTEP = 0.5


@check_constructor
@dataclass(frozen=True, slots=True)
class Difference(Result):
    """One difference between a file and the file it is compared with.

    Attributes:
        kind: Kind of difference. ``trimmed``, ``speed``, ``reordered`` and ``backwards`` concern time; ``no logo``,
            ``uncropped`` and similar kinds mean that the other file has the logo or the crop.
        amount: ``speed``: playback speed relative to the other file; ``cropped``: fraction of the other file's area
            that this file shows; ``uncropped``: fraction of this file's area that the other shows; ``bars added``,
            ``borders added``: fraction of this file's area that they cover; ``... removed``: fraction of the other
            file's area; ``lower resolution``, ``more pixels``: pixels of this file per pixel of the other file along a
            line in the scene; ``turned``: clockwise rotation in degrees that aligns it; None for other kinds.
        where: Position of a caption or logo in the frame; empty for other kinds.
        start, end: ``trimmed``: start and end in seconds of the part of the other file that this file shows; None for
            other kinds.
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
            raise InvalidArgumentError(f"amount must be positive and finite, got {self.amount}")
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
"""Kind of a difference as seen from the second file, keyed by its kind as seen from the first."""


def find_differences(first: FileRecord, second: FileRecord, result: PairResult) -> tuple[Difference, ...]:
    """List the differences between the first of two copies and the second; empty if none can be determined.

    Args:
        first, second: The files.
        result: Result of their comparison, with the first as the query; frames are read from the longest segment.

    Raises:
        MediaError: A file cannot be read.
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
            times = _find_time_differences(segment, result, lengths, same.start)
            return (Difference("cut without re-encoding"), *times)
    segment, placed = _place(first.record.path, second.record.path, segment, lengths)
    found: list[Difference] = []
    if not are_pictures:
        found += _find_time_differences(_fit_to_moments(segment, placed), result, lengths)
    if segment.mirrored:
        found.append(Difference("mirrored"))
    if segment.turned:
        found.append(Difference("turned", float(segment.turned)))
    if placed is not None:
        size = first.record.width, first.record.height
        upright = size[::-1] if segment.turned % 180 else size
        sizes = upright, (second.record.width, second.record.height)
        found += _find_geometry_differences(placed, sizes)
        found += _find_picture_differences(placed)
        # Any change to the picture implies re-encoding, so that is reported only if there is no other difference.
        if all(difference.kind == "trimmed" for difference in found):
            found.append(Difference("re-encoded"))
    return tuple(found)


def _place(
    first: str, second: str, segment: Segment, lengths: tuple[float, float]
) -> tuple[Segment, PlacedFrames | None]:
    """Return the segment and its aligned frames.

    If the durations differ, a match of both files from start to end at another speed is tried as well, because a line
    at normal speed crosses the true one for a few seconds. It is chosen if its frames differ less than half as much.
    """
    placed, speed = place_frames(first, second, segment, lengths), lengths[1] / max(lengths[0], 1e-3)
    is_other = abs(speed / segment.speed - 1) > _MIN_SPEED_CHANGE and SPEED_LIMITS[0] <= speed <= SPEED_LIMITS[1]
    if placed is not None and is_other:
        whole = replace(
            segment, query_start=0.0, query_end=lengths[0], target_start=0.0, target_end=lengths[1], speed=speed
        )
        other = place_frames(first, second, whole, lengths)
        if other is not None and 1 - other.agreement < (1 - placed.agreement) / 2:
            return whole, other
    return segment, placed


def _fit_to_moments(segment: Segment, placed: PlacedFrames | None) -> Segment:
    """Return the segment with its line fitted to the aligned moments."""
    if placed is None:
        return segment
    offset, speed = fit_line(placed, segment)
    start, end = (max(0.0, offset + speed * time) for time in (segment.query_start, segment.query_end))
    return replace(segment, target_start=start, target_end=max(start, end), speed=speed)


def _find_time_differences(
    segment: Segment, result: PairResult, lengths: tuple[float, float], start: float | None = None
) -> Iterator[Difference]:
    """Yield differences in time: trimmed ends, a different speed, a different order."""
    # Drop overlapping segments, because still footage also matches at other times.
    segments: list[Segment] = []
    for each in sorted(result.segments, key=lambda item: item.query_start - item.query_end):
        if not any(each.query_start < other.query_end and other.query_start < each.query_end for other in segments):
            segments.append(each)
    in_order = sorted(segments, key=lambda item: item.query_start)
    middles = [(each.target_start + each.target_end) / 2 for each in in_order]
    if any(late < early - _MIN_BACKSTEP for early, late in pairwise(middles)):
        yield Difference("reordered")
    elif start is not None or len(in_order) == 1:
        first = segment.target_start - segment.speed * segment.query_start if start is None else start
        first, last = max(0.0, first), min(lengths[1], first + segment.speed * lengths[0])
        # Derive trimmed parts from the line and the durations, because black ends have no matching frames.
        allowed = min_missing_seconds(lengths[1])
        if last - first < lengths[1] - allowed and max(first, lengths[1] - last) > allowed / 2:
            yield Difference("trimmed", start=first, end=last)
    if abs(segment.speed - 1) > _MIN_SPEED_CHANGE:
        yield Difference("speed", segment.speed)


def _find_geometry_differences(
    placed: PlacedFrames, sizes: tuple[tuple[int, int], tuple[int, int]]
) -> Iterator[Difference]:
    """Yield differences in geometry: crops, borders, aspect ratio and resolution."""
    placement = placed.placement
    shown, seen = placement.inside_box, placement.covered_box
    yield from _borders(placed.first, shown, placed.first_picture, added=True)
    yield from _borders(placed.second, seen, placed.second_picture, added=False)
    # Pixels of the first file per pixel of the second along a line in the scene.
    ratios = [
        sizes[0][axis] * (shown[axis + 2] - shown[axis]) / (sizes[1][axis] * (seen[axis + 2] - seen[axis]))
        for axis in (0, 1)
    ]
    if abs(math.log(ratios[0] / ratios[1])) > _SQUEEZED:
        yield Difference("other aspect ratio")
    # Use the denser axis: a squeezed copy has fewer pixels along the other, which was reported above.
    density = max(ratios)
    frame = math.sqrt(sizes[0][0] * sizes[0][1] / (sizes[1][0] * sizes[1][1]))
    if density < _MAX_DENSITY_RATIO and frame < _MAX_SIZE_RATIO:
        yield Difference("lower resolution", density)
    elif density > 1 / _MAX_DENSITY_RATIO and frame > 1 / _MAX_SIZE_RATIO:
        yield Difference("more pixels", density)


def _borders(images: NDArray[np.uint8], part: Box, picture: Box, *, added: bool) -> Iterator[Difference]:
    """Describe the area around the common region in the frames of one of the videos.

    Args:
        images: [N, H, W, 3] frames.
        part: The region that the other video also shows.
        picture: The region without bars.
        added: Whether these are frames of the copy; otherwise the copy lacks this area.
    """
    around = 1.0 - _area(part)
    if around < _MIN_AREA:
        return
    inside, bars = _overlap(part, picture), 1.0 - _area(picture)
    if bars >= _MIN_AREA / 2:
        if _area(part) - inside < _MIN_AREA / 2:  # the bars are outside the region that the other video shows
            outside = _outside(images, picture)
            if outside.any() and float(images[:, outside].mean()) < _BLACK:
                yield Difference("bars added" if added else "bars removed", bars)
            else:
                yield Difference("borders added" if added else "borders removed", bars)
        # Between the bars, the videos may still show different regions.
        around = 1.0 - inside / _area(picture)
        if around < _MIN_AREA:
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


def _outside(images: NDArray[Any], box: Box, margin: int = 0) -> NDArray[np.bool_]:
    """Mask [H, W] of the pixels outside a box enlarged by ``margin`` pixels."""
    height, width = images.shape[1:3]
    outside = np.ones((height, width), dtype=bool)
    rows = max(0, round(box[1] * height) - margin), round(box[3] * height) + margin
    outside[slice(*rows), max(0, round(box[0] * width) - margin) : round(box[2] * width) + margin] = False
    return outside


def _surroundings(images: NDArray[np.uint8], part: Box) -> Literal["border", "frame", "scene"]:
    """Classify the area around a region of frames [N, H, W, 3]: a border without detail, other footage ("frame"), or
    more of the same scene."""
    luma = images.mean(axis=-1, dtype=np.float32)
    outside, inside = _outside(luma, part, _MARGIN), ~_outside(luma, part, -_MARGIN)
    if not outside.any() or not inside.any() or _outline_strength(luma, part) < _FRAMED:
        return "scene"
    edges = measure_edges(luma).mean(axis=0)
    is_plain = float(luma[:, outside].std(axis=1).mean()) < _PLAIN
    return "border" if is_plain or edges[outside].mean() < _BLURRED * edges[inside].mean() else "frame"


def _outline_strength(luma: NDArray[np.float32], box: Box) -> float:
    """Ratio of the brightness step at the sides of a box to the steps nearby; the weakest side counts."""
    strengths = []
    for axis, images in ((0, luma), (1, luma.swapaxes(1, 2))):
        height, width = images.shape[1:]
        low, high = round(box[1 - axis] * height), round(box[3 - axis] * height)
        for at in (round(box[axis] * width), round(box[axis + 2] * width)):
            if 4 <= at <= width - 4 and high - low >= 8:
                # Step k is between k and k + 1.
                steps = np.abs(np.diff(images[:, low:high], axis=2)).mean(axis=(0, 1))
                nearby = np.median(steps[max(0, at - 24) : at + 24])
                strengths.append(float(steps[max(0, at - _MARGIN) : at + 2].max() / max(nearby, 0.5)))
    return min(strengths, default=0.0)


def _find_picture_differences(placed: PlacedFrames) -> Iterator[Difference]:
    """Yield differences in color and overlays, within the region that both videos show."""
    ones, others = (np.stack(images) for images in zip(*placed.common(_COMMON), strict=True))
    colors = [block_means(images) for images in (ones, others)]
    plain = np.ones(colors[0].shape[1:3], dtype=bool)
    for overlay in find_overlays(ones, others):
        plain &= _outside(colors[0], overlay.box)
        place = part_of(placed.placement.inside_box, overlay.box)
        kinds: tuple[DifferenceKind, DifferenceKind]
        kinds = ("caption", "no caption") if _is_caption(place) else ("logo", "no logo")
        yield Difference(kinds[overlay.side == "second"], where=_where(place))
    # Exclude overlays, so that a colored logo does not make a black-and-white video count as one in color.
    one, other = (blocks[:, plain if plain.any() else ~plain].reshape(-1, 3) for blocks in colors)
    colorful, colorful_there = (float(np.ptp(blocks, axis=1).mean()) for blocks in (one, other))
    if colorful_there >= _SOME_COLOR and colorful < _COLORLESS * colorful_there:
        yield Difference("without color")
    elif colorful >= _SOME_COLOR and colorful_there < _COLORLESS * colorful:
        yield Difference("in color")
    else:
        yield from _find_color_differences(one, other)


def _find_color_differences(one: NDArray[np.float32], other: NDArray[np.float32]) -> Iterator[Difference]:
    """Yield differences in brightness or color.

    Comparing mean block colors [blocks, 3] makes this robust to slight misalignment; medians over blocks make it robust
    to overlays.
    """
    change = one - other
    brighter = float(np.median(change.mean(axis=1)))
    # Fit one line through the levels of all channels, so that changes in brightness and contrast do not count as hue
    # changes.
    spread = float(other.std())
    gain = float(np.cov(other.reshape(-1), one.reshape(-1))[0, 1]) / spread**2 if spread > 2 else 1.0
    hues = (one - one.mean(axis=1, keepdims=True)) - gain * (other - other.mean(axis=1, keepdims=True))
    is_tinted = float(np.median(np.abs(hues), axis=0).max()) > _RECOLORED
    has_other_contrast = float(np.median(np.abs(change - np.median(change)))) > _RECOLORED
    if not is_tinted and abs(brighter) >= _BRIGHTER:
        yield Difference("brighter" if brighter > 0 else "darker")
    elif is_tinted or has_other_contrast:
        yield Difference("other colors")


def _is_caption(box: Box) -> bool:
    return box[0] <= 0.4 and box[2] >= 0.6 and box[3] - box[1] <= _MAX_CAPTION_HEIGHT


def _where(box: Box) -> Where:
    """Return which ninth of the frame contains the center of a box; a large box counts as centered."""
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
    """Area of the intersection of two boxes."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)
