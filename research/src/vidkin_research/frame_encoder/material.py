"""Training data of a student: images with the teacher's vectors, and batches of edited views.

A batch has two newly edited views of each of its moments. Some are pairs of moments of one scene, so that every batch
has three levels: the same moment, another moment of the same location, and other locations.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.edits import edit_picture
from vidkin_research.frame_encoder.pictures import Picture, read_pictures, read_sources, squared
from vidkin_research.frame_encoder.teacher import PixelEncoder, vectors_file

__all__ = ["Batch", "Material", "Witness", "open_material", "to_input"]

# One in this many groups is used for validation, by the checksum of its name.
_VALIDATION = 50
# Minimum seconds between two moments of one scene in a batch: a search must distinguish moments a second apart.
_MIN_DISTANCE = 1.0
# Share of moments with one unedited view, because an index stores unedited frames.
_PLAIN = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Views of moments, with the targets of the student.

    Attributes:
        images: [N, side, side, 3] uint8.
        moments: [N] number of the moment of each view.
        groups: [N] number of the scene.
        plain: [N, D] the teacher's vectors of the unedited moments.
        shown: [K] rows of the edited views that the teacher describes as well; K is 0 without a teacher.
        seen: [K, D] its vectors of these views.
    """

    images: NDArray[np.uint8]
    moments: torch.Tensor
    groups: torch.Tensor
    plain: torch.Tensor
    shown: torch.Tensor
    seen: torch.Tensor


@dataclass(frozen=True, slots=True)
class Witness:
    """A teacher that describes some of the edited views of each batch, exactly as the student gets them.

    Attributes:
        encode: The teacher.
        side: Side of its input squares in pixels.
        count: Number of views per batch that it describes.
    """

    encode: PixelEncoder
    side: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Training and validation images, and pairs of images of one scene.

    Attributes:
        work: The work folder.
        pictures: All images.
        groups: [P] number of the scene of each image.
        vectors: [P, D] the teacher's unit vectors of the images.
        training: Rows of the training images.
        validation: Rows of the validation images, from other groups.
        pairs: For each training image, other images of the same scene that are far enough away in time, if there are
            any.
    """

    work: Path
    pictures: tuple[Picture, ...]
    groups: NDArray[np.int64]
    vectors: NDArray[np.float16]
    training: NDArray[np.int64]
    validation: NDArray[np.int64]
    pairs: dict[int, NDArray[np.int64]]

    def draw(
        self, random: np.random.Generator, *, moments: int, paired: float, side: int, witness: Witness | None = None
    ) -> Batch:
        """Draw two views of each of ``moments`` moments, a share ``paired`` of which are pairs of one scene; the
        witness describes some of the edited views."""
        chosen: list[int] = []
        leaders = list(self.pairs)
        for _ in range(round(paired * moments / 2) if leaders else 0):
            leader = leaders[int(random.integers(len(leaders)))]
            chosen += [leader, int(random.choice(self.pairs[leader]))]
        chosen += random.choice(self.training, size=moments - len(chosen)).tolist()
        views = [number for number in chosen for _ in (0, 1)]
        images = [
            self._image(number, random, edited=bool(place % 2) or random.random() >= _PLAIN)
            for place, number in enumerate(views)
        ]
        # Every second view is edited.
        shown = list(range(1, len(views), 2))[: witness.count if witness else 0]
        seen = [witness.encode(squared(images[place], witness.side)[None]) for place in shown] if witness else []
        return Batch(
            images=np.stack([squared(image, side) for image in images]),
            moments=torch.tensor(views),
            groups=torch.from_numpy(self.groups[views]),
            plain=torch.from_numpy(self.vectors[views].astype(np.float32)),
            shown=torch.tensor(shown, dtype=torch.int64),
            seen=torch.from_numpy(np.concatenate([np.zeros((0, self.vectors.shape[1]), np.float32), *seen])),
        )

    def view(self, number: int, random: np.random.Generator, *, side: int, edited: bool) -> NDArray[np.uint8]:
        """Return an image [side, side, 3], unedited or with a new edit."""
        return squared(self._image(number, random, edited=edited), side)

    def _image(self, number: int, random: np.random.Generator, *, edited: bool) -> NDArray[np.uint8]:
        image = self.pictures[number].read(self.work)
        if edited:
            image, _ = edit_picture(image, random, lambda: self._other(number, random))
        return image

    def draw_bank(self, random: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw the teacher's vectors of training images, [count, D], and their groups."""
        chosen = random.choice(self.training, size=count)
        return torch.from_numpy(self.vectors[chosen].astype(np.float32)), torch.from_numpy(self.groups[chosen])

    def _other(self, number: int, random: np.random.Generator) -> NDArray[np.uint8]:
        """A training image of another group."""
        while True:
            other = int(random.choice(self.training))
            if self.groups[other] != self.groups[number]:
                return self.pictures[other].read(self.work)


def to_input(images: NDArray[np.uint8]) -> torch.Tensor:
    """Convert images [N, H, W, 3] to a student's input: [N, 3, H, W] from 0 to 255, channels last in memory."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float()


def open_material(work: Path) -> Material:
    """Open the images of a work folder that have the teacher's vectors.

    Raises:
        InvalidArgumentError: There are none.
    """
    pictures: list[Picture] = []
    vectors: list[NDArray[np.float16]] = []
    for source in read_sources(work):
        if vectors_file(work, source).exists():
            pictures += read_pictures(work, source)
            vectors.append(np.load(vectors_file(work, source)))
    if not pictures:
        raise InvalidArgumentError(f"{work} has no images with the teacher's vectors; run `pictures` and `teach` first")
    names: dict[str, int] = {}
    groups = np.array([names.setdefault(each.group, len(names)) for each in pictures])
    held = np.array([zlib.crc32(name.encode()) % _VALIDATION == 0 for name in names])[groups]
    training = np.flatnonzero(~held)
    members: dict[int, list[int]] = {}
    for number in training.tolist():
        members.setdefault(int(groups[number]), []).append(number)
    pairs = {}
    for numbers in members.values():
        for number in numbers:
            others = [each for each in numbers if abs(pictures[each].time - pictures[number].time) >= _MIN_DISTANCE]
            if others:
                pairs[number] = np.array(others)
    return Material(work, tuple(pictures), groups, np.concatenate(vectors), training, np.flatnonzero(held), pairs)
