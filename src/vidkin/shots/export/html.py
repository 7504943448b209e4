"""A contact sheet: one page with an image of every shot, which opens in any browser without other files."""

from __future__ import annotations

import base64
import html
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin._base.outputs import open_output
from vidkin.shots.export.images import iter_shot_images

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["write_contact_sheet"]

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


def write_contact_sheet(
    detection: ShotDetection, path: str | os.PathLike[str], *, short_side: int = 120
) -> None:
    """Write a page with the middle frame, the times and the transition of every shot; images are embedded in the page.

    Args:
        detection: The shots.
        path: The file to write.
        short_side: Length in pixels of the shorter side of the images.

    Raises:
        MediaError: The video cannot be read, or the file cannot be written.
    """
    from PIL import Image

    name = html.escape(Path(detection.path).name.encode("utf-8", "replace").decode())
    opening = {cut.frame: cut for cut in detection.cuts}
    with open_output(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Shots of {name}</title>\n'
            f"<style>{_STYLE}</style></head><body>\n<h1>{name}</h1>\n"
            f"<p>Shots: {len(detection.shots)}, transitions: {len(detection.cuts)}, "
            f"detector: {html.escape(detection.detector)}</p>\n<ol>\n"
        )
        for number, _, _, image in iter_shot_images(detection, short_side=short_side):
            shot = detection.shots[number - 1]
            transition = opening.get(shot.start_frame)
            begins = "" if transition is None else f" · {transition.kind} {transition.confidence:.2f}"
            held = io.BytesIO()
            Image.fromarray(image).save(held, "JPEG", quality=_JPEG_QUALITY)
            jpeg = base64.b64encode(held.getvalue()).decode("ascii")
            file.write(
                f'<li><img alt="shot {number}" src="data:image/jpeg;base64,{jpeg}">'
                f"<b>{number}</b> {shot.start:.2f} to {shot.end:.2f} s<br>"
                f"<small>frames {shot.start_frame} to {shot.end_frame - 1}{begins}</small></li>\n"
            )
        file.write("</ol></body></html>\n")
