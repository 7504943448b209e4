"""Still pages and photographs with edited copies: footage that only image content can identify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.features import frame_information, make_thumbnails, small_luma
from vidkin.match import Sequenced
from vidkin.similarity import WHOLE
from vidkin_research.frame_encoder.drawn import draw_page
from vidkin_research.frame_encoder.edits import edit_picture
from vidkin_research.frame_encoder.material import Material
from vidkin_research.frame_encoder.raw_vectors import Vectors, VectorStore
from vidkin_research.verifier.frames import sequence

__all__ = ["StillVectors", "encode_stills", "hold"]

# Number of synthetic pages, of photographs that the encoders were not trained on, and of edited copies per image.
_PAGES, _PHOTOGRAPHS, _COPIES = 40, 40, 5
# Range of the duration of a still in seconds.
_SECONDS = (1.0, 6.0)


@dataclass(frozen=True, slots=True, eq=False)
class StillVectors:
    """Vectors of stills and their copies.

    Attributes:
        plain: [N, D] vectors of the unedited images.
        copies: [N, C, D] vectors of edited copies of each image.
        information: [N, 1 + C] information of the images and their copies.
        thumbnails: [N, 1 + C, 8, 8] thumbnails of the images and their copies.
    """

    plain: Vectors
    copies: Vectors
    information: Vectors
    thumbnails: NDArray[np.uint8]

    def queries(self, rate: float, cohort: Vectors) -> list[tuple[Sequenced]]:
        """Return the images as videos of a few seconds."""
        return self._described(
            self.plain, self.information[:, 0], self.thumbnails[:, 0], self._lengths(0), rate, cohort
        )

    def videos(self, rate: float, cohort: Vectors) -> list[tuple[Sequenced]]:
        """Return the copies as videos, ordered by image."""
        vectors = self.copies.reshape(-1, self.copies.shape[-1])
        small = self.thumbnails[:, 1:].reshape(-1, *self.thumbnails.shape[2:])
        return self._described(vectors, self.information[:, 1:].ravel(), small, self._lengths(1), rate, cohort)

    def _described(
        self,
        vectors: Vectors,
        information: Vectors,
        thumbnails: NDArray[np.uint8],
        lengths: NDArray[np.float64],
        rate: float,
        cohort: Vectors,
    ) -> list[tuple[Sequenced]]:
        every = zip(vectors, information.tolist(), thumbnails, lengths.tolist(), strict=True)
        return [(hold(vector, seconds, rate, cohort, small, weight),) for vector, weight, small, seconds in every]

    def is_copy(self) -> NDArray[np.bool_]:
        """Return whether each copy was made from each image, [N, N C]."""
        return np.repeat(np.eye(len(self.plain), dtype=np.bool_), self.copies.shape[1], axis=1)

    def _lengths(self, seed: int) -> NDArray[np.float64]:
        count = self.copies.shape[0] * (self.copies.shape[1] if seed else 1)
        return np.asarray(np.random.default_rng([58, seed]).uniform(*_SECONDS, count), np.float64)


def hold(
    vector: Vectors,
    seconds: float,
    rate: float,
    cohort: Vectors,
    thumbnail: NDArray[np.uint8],
    information: float = 1.0,
) -> Sequenced:
    """Create a video that shows one image for this many seconds."""
    times = np.arange(max(1, round(seconds * rate))) / rate
    weights = np.full(len(times), information, np.float32)
    small = np.repeat(thumbnail[None], len(times), axis=0)
    return sequence(np.repeat(vector[None], len(times), axis=0), times, cohort, weights, thumbnails=small)


def encode_stills(store: VectorStore, pictures: Material, folder: Path) -> StillVectors:
    """Create and encode the stills, only once.

    Args:
        store: Computes vectors.
        pictures: Images that provide validation photographs and overlays.
        folder: Folder for the cached vectors.
    """
    file = folder / f"stills_{store.network.key()}_shapes.npz"
    if not file.exists():
        random = np.random.default_rng(58)
        photographs = random.choice(pictures.validation, _PHOTOGRAPHS, replace=False).tolist()
        images = [draw_page(random) for _ in range(_PAGES)]
        images += [pictures.pictures[number].read(pictures.work) for number in photographs]
        others = _picture_source(pictures, random)
        copies = [edit_picture(image, random, others)[0] for image in images for _ in range(_COPIES)]
        plain, edited = store.encode(images), store.encode(copies)
        folder.mkdir(parents=True, exist_ok=True)
        weights = [
            float(frame_information(image[None])[0])
            for number, first in enumerate(images)
            for image in (first, *copies[number * _COPIES : (number + 1) * _COPIES])
        ]
        information = np.array(weights, np.float32).reshape(len(images), 1 + _COPIES)
        whole = np.array([WHOLE], np.float32)
        small = [
            make_thumbnails(small_luma(image[None]), whole)[0, 0]
            for number, first in enumerate(images)
            for image in (first, *copies[number * _COPIES : (number + 1) * _COPIES])
        ]
        thumbnails = np.stack(small).reshape(len(images), 1 + _COPIES, *small[0].shape)
        np.savez(
            file,
            plain=plain,
            copies=edited.reshape(len(images), _COPIES, -1),
            information=information,
            thumbnails=thumbnails,
        )
    with np.load(file) as stored:
        return StillVectors(stored["plain"], stored["copies"], stored["information"], stored["thumbnails"])


def _picture_source(pictures: Material, random: np.random.Generator) -> Callable[[], NDArray[np.uint8]]:
    return lambda: pictures.pictures[int(random.choice(pictures.training))].read(pictures.work)
