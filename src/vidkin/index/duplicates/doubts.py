"""Signs that two videos that look alike are not copies: different motion, or hardly anything to see.

Shapes: T, U frames; H, W pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.features import frame_information
from vidkin.features.views import crop_box
from vidkin.index.duplicates.comparisons import FileRecord, PairResult
from vidkin.index.duplicates.pictures import cut_bars, read_stretch, turned_images
from vidkin.index.query.stages import is_photograph
from vidkin.similarity import WHOLE, Box, FrameFeatures, ScoreSettings, Segment
from vidkin.similarity.evidence import compare_changes, match_frames

_CANVAS = (48, 64)
_SHORT_SIDE = 128
# Seconds of the stretch compared, pictures per second, and the largest shift in pictures.
_LONGEST, _RATE, _LAGS = 6.0, 12.0, 8
# Edited copies of one recording still change together; two takes by the same camera do not.
_LEAST_AGREEMENT = 0.82
# The same for pictures of at least so many moments that were laid on each other.
_LEAST_OF_MOMENTS, _FEWEST_MOMENTS = 0.92, 3
# Copies of one photograph correlate even after changes of brightness and color; two photographs of one scene less.
_LEAST_ALIKE = 0.95
# Scales at which one picture is searched for in the other, and the size of the pictures searched.
_ZOOMS = tuple(share / 100 for share in range(60, 100, 3))
_TEMPLATE = (96, 128)
# The same at any size: height of the picture in which the other one is searched for, how much smaller each attempt is,
# and the smallest.
_FIELD, _SMALLER, _SMALLEST = 64, 0.95, 0.28
# Variances (of template and picture, multiplied) up to which one of the two is flat but for rounding.
_FLAT = 1e-12
# Gray levels (mean standard deviation over time) below which there is too little motion to compare.
_LEAST_CHANGE = 1.0
# Mean weight of the frames below which a match says little, such as a speck in a plain sky.
_LEAST_INFORMATION = 0.3
# Change of the descriptors that is half trusted, and how far the changes of two videos must confirm that they are the
# same. Before one camera the energy is .05 to .15, over several scenes .35 to .85; the changes of 166 edited copies of
# several scenes confirm each other by .44 or more.
_OF_SCENES = ScoreSettings(change_energy=0.3, change_least=0.0, change_full=1.0)
_CONFIRMED = 0.4


def find_doubt(first: FileRecord, second: FileRecord, result: PairResult) -> str:
    """Say why two videos may not be copies, in a few words; empty if there is no doubt.

    Args:
        first, second: The files.
        result: Result of their comparison; its longest segment determines which moments are compared.

    Raises:
        MediaError: One of the files cannot be read.
    """
    segment = longest_segment(result)
    if segment is None:
        return ""
    middle = (segment.query_start + segment.query_end) / 2
    start = max(segment.query_start, middle - _LONGEST / 2)
    end = min(segment.query_end, middle + _LONGEST / 2)
    there = segment.target_start + segment.speed * (start - segment.query_start)
    until = there + segment.speed * (end - start)
    one = read_stretch(first.record.path, start, end, rate=_RATE, short_side=_SHORT_SIDE, mirrored=segment.mirrored)
    # The box of a turned copy is in its picture as it is.
    # Turned after the flip, which is as good as turned the other way before it.
    degrees = -segment.turned % 360 if segment.mirrored else segment.turned
    shown = turned_images(crop_box(one, segment.query_box), degrees)
    other = read_stretch(second.record.path, there, until, rate=_RATE / segment.speed, short_side=_SHORT_SIDE)
    # Boxes refer to frames with their bars; not every extractor knows where the bars are.
    sides = cut_bars(shown), cut_bars(crop_box(other, segment.target_box))
    if min(float(frame_information(images).mean()) for images in sides) < _LEAST_INFORMATION:
        return "little detail"
    if is_photograph(first.record) and is_photograph(second.record):
        alike = max(picture_agreement(*pair) for pair in _placements(*sides))
        return "" if alike >= _LEAST_ALIKE else "another picture of one scene?"
    if change_agreement(*sides) is None:
        return "hardly anything moves"
    if any((change_agreement(*pair) or -1.0) >= _LEAST_AGREEMENT for pair in _placements(*sides)):
        return ""
    return "other takes of one scene?"


def longest_segment(result: PairResult) -> Segment | None:
    """The segment of a result that lasts longest; None if there is none."""
    return max(result.segments, key=lambda item: item.query_end - item.query_start, default=None)


def is_confirmed(first: FrameFeatures, second: FrameFeatures, segment: Segment) -> bool:
    """Whether stored features alone prove that two videos are the same recording, so that no file need be read.

    Before one camera all moments look alike, which is why other takes match. Where the moments of a stretch differ as
    scenes do, and each still looks like its counterpart, nothing else remains: the changes of both are correlated, see
    :func:`vidkin.similarity.evidence.compare_changes`.

    Args:
        first, second: Stored features of both, the first flipped if the segment is mirrored.
        segment: Where they match, the first as the query.
    """
    rows, columns = match_frames(first, second, segment)
    sides = []
    for features, frames, box in ((first, rows, segment.query_box), (second, columns, segment.target_box)):
        if not len(frames) or float(features.information[frames].mean()) < _LEAST_INFORMATION:
            return False
        sides.append(features.views([_nearest_view(features, frames, box)]).frames(frames))
    one, other = sides
    # Parts of the picture are described in some of the frames only.
    described = np.flatnonzero((one.whole != 0).any(axis=(1, 2)) & (other.whole != 0).any(axis=(1, 2)))
    if len(described) < 2:
        return False
    return compare_changes(one, other, described, described, _OF_SCENES).confirmation >= _CONFIRMED


def _nearest_view(features: FrameFeatures, frames: NDArray[np.int64], box: Box) -> int:
    """The view whose sides are nearest to those of a box."""
    if features.boxes is None:
        return 0
    boxes = np.median(features.boxes[frames].astype(np.float32), axis=0)
    return int(np.abs(boxes - np.array(box, np.float32)).max(axis=1).argmin())


def change_agreement(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float | None:
    """Correlation in [-1, 1] of what changes over time in two videos; None if hardly anything does.

    The mean over time is subtracted from every pixel of the luma at 48 x 64; the correlation is over all pixels and
    moments. The largest over shifts of up to eight frames counts, as the times of a match are not exact.

    Args:
        first: [T, H, W, 3], without bars.
        second: [U, H', W', 3], the other video at the same rate.
    """
    lumas = [np.stack([_canvas(image) for image in images]) for images in (first, second)]
    length = min(len(luma) for luma in lumas)
    if min(float(np.std(luma, axis=0).mean()) for luma in lumas) < _LEAST_CHANGE:
        return None
    best = -1.0
    for lag in range(-min(_LAGS, length - 2), min(_LAGS, length - 2) + 1):
        one = lumas[0][max(0, lag) : length + min(0, lag)]
        other = lumas[1][max(0, -lag) : length + min(0, -lag)]
        one, other = one - one.mean(axis=0), other - other.mean(axis=0)
        best = max(best, _correlation(one, other))
    return best


def show_one_recording(first: Sequence[NDArray[np.uint8]], second: Sequence[NDArray[np.uint8]]) -> bool:
    """Whether pictures of a few moments prove that two videos are the same recording, so that no more need be read.

    As in `change_agreement`, what changes between the moments must be the same, but closely: these pictures lie on each
    other to a pixel and a frame.

    Args:
        first: [H, W, 3] of three moments or more, the part that both show.
        second: The same moments of the other video.
    """
    if len(first) < _FEWEST_MOMENTS:
        return False
    if min(float(frame_information(np.stack(images)).mean()) for images in (first, second)) < _LEAST_INFORMATION:
        return False
    one, other = (np.stack([_canvas(image) for image in images]) for images in (first, second))
    if min(float(np.std(luma, axis=0).mean()) for luma in (one, other)) < _LEAST_CHANGE:
        return False
    return _correlation(one - one.mean(axis=0), other - other.mean(axis=0)) >= _LEAST_OF_MOMENTS


def _correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Correlation in [-1, 1] of values without their means; -1 if one of them is constant."""
    energy = float(np.sqrt(np.square(one).mean() * np.square(other).mean()))
    return float((one * other).mean()) / energy if energy > 0 else -1.0


def picture_agreement(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
    """Correlation in [-1, 1] of the luma at 48 x 64 of two pictures; 0 if one is flat.

    Args:
        first, second: [T, H, W, 3] each, of which the middle one is compared.
    """
    one, other = (_canvas(images[len(images) // 2]) for images in (first, second))
    one, other = one - one.mean(), other - other.mean()
    energy = float(np.sqrt(np.square(one).mean() * np.square(other).mean()))
    return float((one * other).mean()) / energy if energy > 0 else 0.0


def template_correlation(picture: NDArray[np.floating], template: NDArray[np.floating]) -> NDArray[np.float64]:
    """Correlation in [-1, 1] of a template with the picture under it, for every place where it fits.

    Args:
        picture: [H, W].
        template: [h, w], no larger than the picture.

    Returns:
        [H - h + 1, W - w + 1] by the place of the template's upper left corner; 0 where the picture or the template is
        flat.

    Source: Lewis, Fast Normalized Cross-Correlation (1995).
    """
    height, width = template.shape
    rows, columns = picture.shape[0] - height + 1, picture.shape[1] - width + 1
    # What both have in common cancels; without it rounding stays small.
    whole, part = (values - values.mean(dtype=np.float64) for values in (picture, template))
    spectrum = np.fft.rfft2(whole) * np.fft.rfft2(part, s=whole.shape).conj()
    # Where the template fits, the transform, which takes the picture for periodic, meets no edge.
    products = np.fft.irfft2(spectrum, s=whole.shape)[:rows, :columns]
    sums, squares = (_window_sums(values, height, width) for values in (whole, whole**2))
    variations = (squares - sums**2 / part.size) * np.square(part).sum()
    is_flat = variations <= _FLAT * part.size**2
    correlation: NDArray[np.float64] = np.where(is_flat, 0.0, products / np.sqrt(np.where(is_flat, 1.0, variations)))
    return correlation


def find_part(outer: NDArray[np.float32], inner: NDArray[np.float32]) -> tuple[float, Box]:
    """The box of a picture [H, W] in which another one is shown, at any size, and the correlation there."""
    field = _shrunk(outer, _FIELD)
    height, width = field.shape
    largest = min(height / inner.shape[0], width / inner.shape[1])
    best, size = -1.0, largest
    box: Box = WHOLE
    while size >= _SMALLEST * largest:
        rows, columns = max(8, round(inner.shape[0] * size)), max(8, round(inner.shape[1] * size))
        rows, columns = min(rows, height), min(columns, width)
        similar = template_correlation(field, _resized(inner, rows, columns))
        top, left = np.unravel_index(int(np.argmax(similar)), similar.shape)
        if similar[top, left] > best:
            best = float(similar[top, left])
            box = (
                float(left / width), float(top / height),
                float((left + columns) / width), float((top + rows) / height),
            )  # fmt: skip
        size *= _SMALLER
    return best, box


def _shrunk(picture: NDArray[np.float32], height: int) -> NDArray[np.float32]:
    rows, columns = picture.shape
    # No side is shorter than this: an upright picture keeps as many lines as a lying one.
    factor = height / min(rows, columns)
    return _resized(picture, max(8, round(rows * factor)), max(8, round(columns * factor)))


def _resized(picture: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR), np.float32)


def _window_sums(values: NDArray[np.float64], height: int, width: int) -> NDArray[np.float64]:
    """Sums over all windows of this size."""
    totals = np.pad(values.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    sums: NDArray[np.float64] = (
        totals[height:, width:] - totals[:-height, width:] - totals[height:, :-width] + totals[:-height, :-width]
    )
    return sums


def _placements(
    first: NDArray[np.uint8], second: NDArray[np.uint8]
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """The two as they are, cut to one shape, and with either one where it is in the other: boxes of a match are not
    exact."""
    yield first, second
    # The narrower pictures, and the middle of the wider ones in their shape.
    shapes = [images.shape[2] / images.shape[1] for images in (first, second)]
    share = min(shapes) / max(shapes)
    middle = ((1 - share) / 2, 0.0, (1 + share) / 2, 1.0)
    yield ((first, crop_box(second, middle)) if shapes[0] <= shapes[1] else (crop_box(first, middle), second))
    yield crop_box(first, _find_inside(first, second)), second
    yield first, crop_box(second, _find_inside(second, first))


def _find_inside(outer: NDArray[np.uint8], inner: NDArray[np.uint8]) -> Box:
    """The box of the outer pictures in which the middle one looks most like the middle inner one, as shares."""
    frame = _canvas(outer[len(outer) // 2], _TEMPLATE)
    height, width = _TEMPLATE
    best, box = -1.0, WHOLE
    for zoom in _ZOOMS:
        size = round(height * zoom), round(width * zoom)
        middle = _canvas(inner[len(inner) // 2], size)
        similar = template_correlation(frame, middle)
        top, left = np.unravel_index(np.argmax(similar), similar.shape)
        if similar[top, left] > best:
            best = float(similar[top, left])
            right, bottom = (left + size[1]) / width, (top + size[0]) / height
            box = (float(left / width), float(top / height), float(right), float(bottom))
    return box


def _canvas(image: NDArray[np.uint8], size: tuple[int, int] = _CANVAS) -> NDArray[np.float32]:
    """The luma at (H, W)."""
    small = Image.fromarray(image).convert("L").resize(size[::-1], Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32)
