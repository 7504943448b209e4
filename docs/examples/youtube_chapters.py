"""A file made from shots, as your own format: chapters for the description of an upload.

In the ``pyproject.toml`` of your package::

    [project.entry-points."vidkin.shot_formats"]
    upload = "youtube_chapters:FORMAT"

Then ``vidkin shots film.mp4 -o film.upload.txt``.
"""

from __future__ import annotations

from pathlib import Path

from vidkin.shots import ShotDetection, ShotFormat


def write_chapters(detection: ShotDetection, path: Path) -> None:
    """Write a line for each shot of ten seconds or more: ``1:05 Shot 7``."""
    lines = []
    for number, shot in enumerate(detection.shots, start=1):
        if shot.end - shot.start >= 10:
            minutes, seconds = divmod(int(detection.offset + shot.start), 60)
            lines.append(f"{minutes}:{seconds:02d} Shot {number}")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


FORMAT = ShotFormat(".upload.txt", write_chapters, label="chapters for an upload", media_type="text/plain")
