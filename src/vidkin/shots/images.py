"""Save images of shots: choose frames that are not black, name the files, and write contact sheets."""

from __future__ import annotations

import base64
import html
import io
import math
import re
import string
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike, create_folder, safe_name
from vidkin._base.outputs import check_free, describe_source, open_output
from vidkin._base.values import check_at_least, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.media import iter_frames_at
from vidkin.media.frames import LUMINANCE, first_at

if TYPE_CHECKING:
    from vidkin.shots.contract import ShotDetection

ImageFormat = Literal["jpg", "png", "webp"]

IMAGE_FORMATS: tuple[ImageFormat, ...] = ("jpg", "png", "webp")
"""Image formats, by extension."""

_QUALITY = 88
# Positions to try within the range of an image, as fractions; the first frame that is not nearly black is used.
_POSITIONS = (0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875, 0.0625, 0.9375, 0.0, 1.0)
# A frame is nearly black if less than this percentage of its pixels is brighter than this level (of 255).
_BRIGHT_SHARE, _BLACK = 2, 40
_LUMA = np.array(LUMINANCE, np.float32)


class ShotImage(NamedTuple):
    """An image of a shot.

    Attributes:
        shot: Number of the shot, counting from 1.
        image: Number of the image within the shot, counting from 1.
        frame: Number of the frame in the video, counting from 0.
        pixels: [H, W, 3] uint8 RGB image.
    """

    shot: int
    image: int
    frame: int
    pixels: NDArray[np.uint8]


@check_arguments
def write_thumbnails(
    detection: ShotDetection,
    folder: PathLike,
    *,
    short_side: int | None = 160,
    count: int = 1,
    form: ImageFormat = "jpg",
    template: NameTemplate | None = None,
) -> tuple[Path, ...]:
    """Save images of every shot as ``<name>-001.jpg`` etc., in a single pass over the video.

    Args:
        detection: The shots.
        folder: Output folder; created if missing.
        short_side: Shorter side of the images in pixels, at most that of the video; None for the video's size.
        count: Number of images per shot, evenly spaced; a shot with fewer visible frames gets fewer.
        form: Image format.
        template: Template for the file names.

    Returns:
        Paths of the images, in shot order.

    Raises:
        InvalidArgumentError: The count is below 1, or the format is unknown.
        MediaError: The video cannot be read, or an image cannot be written.
    """
    from PIL import Image

    check_choice("image format", form, IMAGE_FORMATS)
    names = template or NameTemplate()
    check_at_least(1, count=count)
    target = create_folder(folder)
    source = describe_source("images of shots", detection.path)

    def path_of(shot: int, image: int) -> Path:
        return target / f"{names.format(detection, shot, image=image, images=count)}.{form}"

    # Report existing files before the video is read.
    for number in range(1, len(detection.shots) + 1):
        begin, end = detection.seen(number - 1)
        for part in range(1, min(count, end - begin) + 1):
            check_free(path_of(number, part), source=source)
    paths: list[Path] = []
    for image in iter_shot_images(detection, short_side=short_side, count=count):
        paths.append(path_of(image.shot, image.image))
        with open_output(paths[-1], source=source) as partial:
            Image.fromarray(image.pixels).save(partial, quality=_QUALITY)
    return tuple(paths)


def iter_shot_images(detection: ShotDetection, *, short_side: int | None = 160, count: int = 1) -> Iterator[ShotImage]:
    """Yield the images of every shot, in order.

    The visible part of a shot (without black and transitions) is split into equal ranges, one per image. Each image is
    the middle frame of its range or, if that is nearly black, the first of several alternatives that is not. If all are
    nearly black, the one with the highest contrast is used, to prefer a short title over the last gray of a fade.

    Raises:
        InvalidArgumentError: The count is below 1.
        MediaError: The video cannot be read.
    """
    check_at_least(1, count=count)
    # Shot, image and rank for each candidate frame.
    choices: dict[int, tuple[int, int, int]] = {}
    for number in range(1, len(detection.shots) + 1):
        begin, end = detection.seen(number - 1)
        parts = min(count, end - begin)
        for part in range(parts):
            first, last = (begin + (end - begin) * border // parts for border in (part, part + 1))
            for rank, position in enumerate(_POSITIONS):
                choices.setdefault(first + int((last - first - 1) * position), (number, part + 1, rank))
    if not choices:
        return
    frames = sorted(choices)
    times = np.asarray(detection.frame_times)
    candidates = (
        (choices[frame], frame, image)
        for batch in iter_frames_at(
            detection.path, times[frames].tolist(), short_side=short_side, stream=detection.stream
        )
        for image, time in zip(batch.images, batch.timestamps, strict=True)
        if (frame := int(first_at(times, time))) in choices
    )
    for (number, part), group in groupby(candidates, key=lambda entry: entry[0][:2]):
        _, frame, image = min(group, key=lambda entry: _merit(entry[2], entry[0][2]))
        yield ShotImage(number, part, frame, image)


def _merit(image: NDArray[np.uint8], rank: int) -> tuple[float, int]:
    """Return a sort key (lowest is best): frames that are not nearly black by rank, then the others by contrast."""
    luma = image[::2, ::2] @ _LUMA
    if float(np.percentile(luma, 100 - _BRIGHT_SHARE)) >= _BLACK:
        return -math.inf, rank
    return -round(float(luma.std()), 1), rank


NAME_FIELDS = ("name", "shot", "shots", "image", "kind", "start", "end", "start_frame", "end_frame")
"""Fields of a template: name of the video, number of the shot, number of shots, number of the image, opening
transition, start and end of the shot in seconds, its first frame, and the first frame after it."""

_SAMPLE = {"name": "film", "shot": 1, "shots": 1, "image": 1, "kind": "hard"}
_SAMPLE |= {"start": 0.5, "end": 1.5, "start_frame": 1, "end_frame": 2}
# Format specifications with a width or decimals, but without widths that would give names of a million characters.
_SPEC = re.compile(r"[<>^=]?[+\- ]?0?\d{0,2}(\.\d)?[a-zA-Z]?")
_DIGITS = 3
# Maximum number of bytes in a name without its extension; file systems allow 255 in total.
_MAX_BYTES = 240


@check_constructor
class NameTemplate:
    """Template for the names of pieces and images, without extension.

    Args:
        text: Python format string, for example ``{name}-{shot:03d}``; None numbers the shots with at least three
            digits, and the images of a shot if there are several.

    Raises:
        InvalidArgumentError: A field or its format is invalid, shots would share a name, or the template includes a
            folder.
    """

    def __init__(self, text: str | None = None) -> None:
        self._text = text
        if text is not None:
            problem = f"template must be a pattern such as '{{name}}-{{shot:03d}}', got {text!r}"
            try:
                parts = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
            except ValueError as error:
                raise InvalidArgumentError(f"{problem}: {error}") from None
            for field, spec, conversion in parts:
                if field not in NAME_FIELDS:
                    raise InvalidArgumentError(f"template has no field {field!r}; choose from {', '.join(NAME_FIELDS)}")
                if conversion is not None or not _SPEC.fullmatch(spec or ""):
                    raise InvalidArgumentError(f"{problem}: {field} cannot have the format {spec or conversion!r}")
            if not {"shot", "start_frame"} & {str(field) for field, _, _ in parts}:
                raise InvalidArgumentError("template must include {shot} or {start_frame}, or shots would share a name")
            try:
                sample = text.format(**_SAMPLE)
            except ValueError as error:
                raise InvalidArgumentError(f"{problem}: {error}") from None
            if "/" in sample or "\\" in sample or "\0" in sample or sample.startswith("."):
                raise InvalidArgumentError(
                    f"template must be a file name without folders that does not begin with a dot, got {text!r}; set "
                    "the folder with the output option"
                )

    def uses(self, field: str) -> bool:
        """Whether names depend on this field of `NAME_FIELDS`."""
        return self._text is None or field in (part[1] for part in string.Formatter().parse(self._text))

    def format(self, detection: ShotDetection, number: int, *, image: int = 1, images: int = 1) -> str:
        """Return the name for a shot.

        Args:
            detection: All shots of the video.
            number: Number of the shot, counting from 1.
            image: Number of the image within the shot, counting from 1.
            images: Number of images per shot; if there are several, names are unique even if the template does not
                number images.
        """
        name, shot = safe_name(Path(detection.path).stem), detection.shots[number - 1]
        tail = f"-{image}" if images > 1 and (self._text is None or not self.uses("image")) else ""
        if self._text is None:
            digits = max(_DIGITS, len(str(len(detection.shots))))
            return f"{name}-{number:0{digits}d}{tail}"
        values: dict[str, Any] = {
            "name": name,
            "shot": number,
            "shots": len(detection.shots),
            "image": image,
            "kind": shot.kind,
            "start": shot.start,
            "end": shot.end,
            "start_frame": shot.start_frame,
            "end_frame": shot.end_frame,
        }
        return safe_name(self._text.format(**values) + tail, longest=_MAX_BYTES)


_JPEG_QUALITY = 80
_STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; }
ol { display: grid; grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); gap: 1rem; padding: 0; }
li { list-style: none; }
img { width: 100%; border-radius: 4px; display: block; }
small { opacity: .7; }
"""


@check_arguments
def write_contact_sheet(detection: ShotDetection, path: PathLike, *, short_side: int = 120) -> None:
    """Write an HTML page with an embedded image, the times and the opening transition of every shot.

    Gradual transitions, including fades at the very start and end, are listed with their start and end times. Times are
    relative to the start of the file.

    Args:
        detection: The shots.
        path: Output file.
        short_side: Shorter side of the images in pixels.

    Raises:
        MediaError: The video cannot be read, or the file cannot be written.
    """
    from PIL import Image

    name = html.escape(Path(detection.path).name.encode("utf-8", "replace").decode())
    last, offset = len(detection.frame_times) - 1, detection.offset
    closing = [cut for cut in detection.cuts[-1:] if cut.kind == "fade" and cut.end_frame >= last]
    source = describe_source("shots as html", detection.path)
    with open_output(path, source=source) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Shots of {name}</title>\n'
            f"<style>{_STYLE}</style></head><body>\n<h1>{name}</h1>\n"
            f"<p>Shots: {len(detection.shots)}, transitions: {len(detection.cuts)}, "
            f"detector: {html.escape(detection.detector)}</p>\n<ol>\n"
        )
        for number, _, _, image in iter_shot_images(detection, short_side=short_side):
            shot = detection.shots[number - 1]
            begins = "" if shot.kind == "start" else f" · {shot.kind} {shot.confidence:.2f}"
            begins += _extent(offset + shot.transition_start, offset + shot.transition_end)
            if closing and number == len(detection.shots):
                begins += f" · ends with {closing[0].kind} {closing[0].confidence:.2f}"
                begins += _extent(offset + closing[0].start, offset + closing[0].end)
            buffer = io.BytesIO()
            Image.fromarray(image).save(buffer, "JPEG", quality=_JPEG_QUALITY)
            jpeg = base64.b64encode(buffer.getvalue()).decode("ascii")
            file.write(
                f'<li><img alt="shot {number}" src="data:image/jpeg;base64,{jpeg}">'
                f"<b>{number}</b> {offset + shot.start:.2f} to {offset + shot.end:.2f} s<br>"
                f"<small>frames {shot.start_frame} to {shot.end_frame - 1}{begins}</small></li>\n"
            )
        file.write("</ol></body></html>\n")


def _extent(start: float, end: float) -> str:
    """Format the start and end of a gradual transition, preceded by a comma; empty for a hard cut or a jump."""
    return f", {start:.2f} to {end:.2f} s" if end > start else ""
