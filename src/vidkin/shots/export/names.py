"""Names of the files made from single shots: pieces and images, numbered as in every list."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["NAME_FIELDS", "NameTemplate"]

NAME_FIELDS = ("name", "shot", "shots", "image", "kind", "start", "end", "start_frame", "end_frame")
"""Fields of a template: the video, the number of the shot and of shots, the number of the image, the transition
that opens the shot, its times in seconds, its first frame and the first one after it."""

_SAMPLE = {"name": "film", "shot": 1, "shots": 1, "image": 1, "kind": "hard"}
_SAMPLE |= {"start": 0.5, "end": 1.5, "start_frame": 1, "end_frame": 2}
# Enough for widths and decimals, but not for a name of a million characters.
_SPEC = re.compile(r"[<>^=]?[+\- ]?0?\d{0,2}(\.\d)?[a-zA-Z]?")
_DIGITS = 3


class NameTemplate:
    """Names of pieces and images, without extension.

    Args:
        text: A Python format string, for example ``{name}-{shot:03d}``; None numbers shots with three digits or as
            many as needed, and the images of a shot if there are several.

    Raises:
        InvalidArgumentError: A field is unknown or cannot be written in this way, shots would share a name, or the
            pattern names a folder.
    """

    def __init__(self, text: str | None = None) -> None:
        self._text = text
        if text is not None:
            shown = f"template must be a pattern such as '{{name}}-{{shot:03d}}', got {text!r}"
            try:
                parts = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
            except ValueError as error:
                raise InvalidArgumentError(f"{shown}: {error}") from None
            for field, spec, conversion in parts:
                if field not in NAME_FIELDS:
                    raise InvalidArgumentError(
                        f"template has no field {field!r}; choose from {', '.join(NAME_FIELDS)}"
                    )
                if conversion is not None or not _SPEC.fullmatch(spec or ""):
                    raise InvalidArgumentError(
                        f"{shown}: {field} cannot be written as {spec or conversion!r}"
                    )
            if not {"shot", "start_frame"} & {str(field) for field, _, _ in parts}:
                raise InvalidArgumentError(
                    "template must hold {shot} or {start_frame}, or shots would share a name"
                )
            try:
                sample = text.format(**_SAMPLE)
            except ValueError as error:
                raise InvalidArgumentError(f"{shown}: {error}") from None
            if "/" in sample or "\\" in sample or "\0" in sample or sample.startswith("."):
                raise InvalidArgumentError(
                    "template must be the name of a file, without folders and not hidden, "
                    f"got {text!r}; name the folder with the option"
                )

    def uses(self, field: str) -> bool:
        """Whether names depend on this field of `NAME_FIELDS`."""
        return self._text is None or field in (part[1] for part in string.Formatter().parse(self._text))

    def format(self, detection: ShotDetection, number: int, *, image: int = 1, images: int = 1) -> str:
        """The name for a shot.

        Args:
            detection: All shots of the video.
            number: Number of the shot, counting from 1.
            image: Number of the image within the shot, counting from 1.
            images: Number of images per shot; names differ even if the template does not number images.
        """
        name, shot = Path(detection.path).stem, detection.shots[number - 1]
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
        return self._text.format(**values) + tail
