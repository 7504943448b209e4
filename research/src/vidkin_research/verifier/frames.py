"""Frames for comparisons: cached vectors at one or two frames per second, with levels relative to a cohort."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.features import CROPS, make_thumbnails, small_luma
from vidkin.match import Sequenced, levels
from vidkin.media import read_frames
from vidkin.similarity import WHOLE, Box
from vidkin_research.frame_encoder.material import open_material
from vidkin_research.frame_encoder.raw_vectors import Vectors, VectorStore

__all__ = ["STORED_RATE", "FrameSource", "read_cohort", "sequence"]

STORED_RATE = 2.0
"""Frames per second in the cache; lower rates use every n-th frame."""
_SHORT_SIDE = 176
# Number of unrelated images for measuring levels, and batch size for reading them.
_COHORT, _AT_ONCE = 1000, 100


def sequence(
    vectors: Vectors,
    times: NDArray[np.float64],
    cohort: Vectors,
    information: NDArray[np.float32],
    *,
    box: Box = WHOLE,
    thumbnails: NDArray[np.uint8] | None = None,
) -> Sequenced:
    """Create the frame sequence for a comparison.

    Args:
        vectors: [T, D] unit vectors.
        times: [T] increasing times in seconds.
        cohort: [N, D] vectors of unrelated frames from the same network.
        information: [T] information of the frames, in [0, 1].
        box: The part of each frame that the vectors describe.
        thumbnails: [T, 8, 8] luma of that part.
    """
    exact = np.asarray(vectors, np.float32)
    own = levels(exact, cohort) if len(exact) else np.ones(0, np.float32)
    return Sequenced(exact, np.asarray(times, np.float64), own, np.asarray(information, np.float32), box, thumbnails)


class FrameSource:
    """Provides the frames of videos for comparisons.

    Args:
        store: Vectors at `STORED_RATE`.
        cohort: [N, D] vectors of unrelated images.
        folder: Folder for the thumbnails.
        step: Step between frames: 2 for one frame per second.
        crops: Whether to include crops, as for queries.
        backwards: Whether to reverse the frames.
    """

    def __init__(
        self,
        store: VectorStore,
        cohort: Vectors,
        folder: Path,
        *,
        step: int = 1,
        crops: bool = False,
        backwards: bool = False,
    ) -> None:
        self._store, self._cohort, self._step, self._folder = store, cohort, step, folder / "thumbnails"
        self._crops = CROPS if crops else ()
        self._order = slice(None, None, -1 if backwards else 1)
        self._known: dict[Path, tuple[Sequenced, ...]] = {}

    def __call__(self, path: Path) -> tuple[Sequenced, ...]:
        """Return the frames of a video, and of boxes in it that may contain another video."""
        if path not in self._known:
            vectors, times = self._store.vectors(path)
            information = self._store.information(path)[:: self._step][self._order]
            parts: list[tuple[Box, Vectors]] = [(WHOLE, vectors), *self._store.parts(path)]
            parts += [(box, self._store.vectors(path, view=box)[0]) for box in self._crops]
            at = np.asarray(times[:: self._step])
            small = self._thumbnails(path, [box for box, _ in parts])[:: self._step][: len(at)][self._order]
            self._known[path] = tuple(
                sequence(
                    each[:: self._step][self._order], at, self._cohort, information, box=box, thumbnails=small[:, view]
                )
                for view, (box, each) in enumerate(parts)
            )
        return self._known[path]

    def _thumbnails(self, path: Path, boxes: list[Box]) -> NDArray[np.uint8]:
        """Return thumbnails [T, V, 8, 8] of boxes in the frames of a video, from the cache if possible."""
        name = hashlib.sha256(repr((str(path.resolve()), path.stat().st_size, boxes)).encode()).hexdigest()[:16]
        file = self._folder / f"{name}.npy"
        if not file.exists():
            frames = read_frames(path, rate=STORED_RATE, short_side=_SHORT_SIDE, threads=1)
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".partial.npy")
            np.save(partial, make_thumbnails(small_luma(frames.images), np.array(boxes, np.float32)))
            partial.rename(file)
        stored: NDArray[np.uint8] = np.load(file)
        return stored


def read_cohort(pictures: Path, folder: Path, store: VectorStore) -> Vectors:
    """Return the vectors of images that the frame encoder was trained on, computing them only once.

    Args:
        pictures: Work folder of the frame encoder.
        folder: Folder for the cached vectors.
        store: Computes the vectors.
    """
    file = folder / f"cohort_{store.network.key()}.npy"
    if file.exists():
        stored: Vectors = np.load(file)
        return stored
    random = np.random.default_rng(0)
    material = open_material(pictures)
    chosen = np.sort(random.choice(material.training, min(_COHORT, len(material.training)), replace=False)).tolist()
    parts = [chosen[first : first + _AT_ONCE] for first in range(0, len(chosen), _AT_ONCE)]
    vectors = np.concatenate(
        [store.encode([material.pictures[each].read(pictures) for each in part]) for part in parts]
    )
    folder.mkdir(parents=True, exist_ok=True)
    np.save(file, vectors)
    return vectors
