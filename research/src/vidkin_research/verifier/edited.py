"""Copies of the training queries with mixed edits of all strengths, as used to train the frame encoder.

The copy benchmark has no such copies, because it applies one edit at a time.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.media import read_frames, write_video
from vidkin_research.copies.material import CopyMaterial, GalleryVideo
from vidkin_research.copies.recordings import QueryClip
from vidkin_research.frame_encoder.edits import edit_picture
from vidkin_research.frame_encoder.material import Material

__all__ = ["MIXED", "add_edited"]

logger = logging.getLogger(__name__)

MIXED = "mixed edits"
"""Name of the edit of these copies."""
# Copies per query, their frame rate and shorter side, and the minimum fraction of the query that a copy shows.
_COPIES, _RATE, _SHORT_SIDE, _MIN_SHOWN = 6, 4.0, 240, 0.6
# Maximum number of images overlaid on the frames of a copy.
_MAX_OVERLAYS = 12


def add_edited(material: CopyMaterial, pictures: Material, work: Path) -> CopyMaterial:
    """Add copies with mixed edits to the material, reusing existing files.

    Args:
        material: Queries and gallery.
        pictures: Images to overlay.
        work: Folder for the copies.
    """
    work.mkdir(parents=True, exist_ok=True)
    copies = []
    for query in material.queries:
        for number in range(_COPIES):
            name = hashlib.sha256(f"{query.name} {query.start} {number}".encode()).hexdigest()[:16]
            path = work / f"{name}.mp4"
            if not path.exists():
                _write_edited(query, path, [58, int(name[:8], 16)], pictures)
            copies.append(GalleryVideo(path, query.recording.family, query.recording.scene, MIXED, query))
    return CopyMaterial(material.queries, (*material.gallery, *copies), material.filler)


def _write_edited(query: QueryClip, path: Path, seed: list[int], pictures: Material) -> None:
    random = np.random.default_rng(seed)
    shown = float(random.uniform(_MIN_SHOWN, 1.0)) * (query.end - query.start)
    start = float(random.uniform(0.0, query.end - query.start - shown))
    frames = read_frames(query.path, rate=_RATE, start=start, end=start + shown, short_side=_SHORT_SIDE, threads=1)
    chosen = random.choice(pictures.training, _MAX_OVERLAYS, replace=False).tolist()
    supply = [pictures.pictures[each].read(pictures.work) for each in chosen]
    edited = []
    for image in frames.images:
        # Use the same seed for each frame, so that all frames of the copy have the same edit.
        changed, kinds = edit_picture(image, np.random.default_rng([*seed, 1]), _picture_source(supply))
        edited.append(changed)
    logger.info("%s: %s", path.name, ", ".join(kinds))
    write_video(path, edited, rate=_RATE, crf=int(random.integers(18, 38)), threads=1)


def _picture_source(pictures: list[NDArray[np.uint8]]) -> Callable[[], NDArray[np.uint8]]:
    """Return a function that returns these images in turn."""
    numbers = iter(range(10**6))
    return lambda: pictures[next(numbers) % len(pictures)]
