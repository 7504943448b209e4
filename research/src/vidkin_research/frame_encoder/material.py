"""Training data for a student: images with their teacher embeddings, and batches of edited views.

A batch contains two freshly edited views of each moment. Some moments are paired with another moment of the same scene,
so that every batch has three levels: the same moment, another moment of the same scene, and other scenes.
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

# One in this many groups is used for validation, by a checksum of its name.
_VALIDATION = 50
# Minimum seconds between paired moments of one scene: a search must distinguish moments one second apart.
_MIN_DISTANCE = 1.0
# Fraction of moments that keep one view unedited, because an index stores unedited frames.
_PLAIN = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Views of moments, with the student's targets.

    Attributes:
        images: [N, side, side, 3] uint8.
        moments: [N] index of each view's moment.
        groups: [N] index of each view's scene.
        plain: [N, D] teacher embeddings of the unedited moments.
        shown: [K] rows of the edited views that the teacher also embeds; K is 0 without a teacher.
        seen: [K, D] teacher embeddings of these views.
    """

    images: NDArray[np.uint8]
    moments: torch.Tensor
    groups: torch.Tensor
    plain: torch.Tensor
    shown: torch.Tensor
    seen: torch.Tensor


@dataclass(frozen=True, slots=True)
class Witness:
    """A teacher that embeds some edited views of each batch during training, exactly as the student sees them.

    Attributes:
        encode: The teacher.
        side: Side in pixels of its square input.
        count: Number of views per batch that it embeds.
    """

    encode: PixelEncoder
    side: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Training and validation images, and pairs of images from one scene.

    Attributes:
        work: The work folder.
        pictures: All images.
        groups: [P] index of each image's scene.
        vectors: [P, D] teacher embeddings of the images, unit vectors.
        training: Rows of the training images.
        validation: Rows of the validation images, from other groups.
        pairs: For each training image that has any, the images of the same scene that are far enough away in time.
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
        """Sample two views of each of ``moments`` moments, a fraction ``paired`` of which are paired within a scene;
        ``witness`` embeds some of the edited views."""
        chosen: list[int] = []
        leaders = list(self.pairs)
        for _ in range(round(paired * moments / 2) if leaders else 0):
            leader = leaders[int(random.integers(len(leaders)))]
            chosen += [leader, int(random.choice(self.pairs[leader]))]
        chosen += random.choice(self.training, size=moments - len(chosen)).tolist()
        views = [number for number in chosen for _ in (0, 1)]
        images = [
            self._image(number, random, edited=bool(row % 2) or random.random() >= _PLAIN)
            for row, number in enumerate(views)
        ]
        # Every second view is always edited.
        shown = list(range(1, len(views), 2))[: witness.count if witness else 0]
        seen = [witness.encode(squared(images[row], witness.side)[None]) for row in shown] if witness else []
        return Batch(
            images=np.stack([squared(image, side) for image in images]),
            moments=torch.tensor(views),
            groups=torch.from_numpy(self.groups[views]),
            plain=torch.from_numpy(self.vectors[views].astype(np.float32)),
            shown=torch.tensor(shown, dtype=torch.int64),
            seen=torch.from_numpy(np.concatenate([np.zeros((0, self.vectors.shape[1]), np.float32), *seen])),
        )

    def view(self, number: int, random: np.random.Generator, *, side: int, edited: bool) -> NDArray[np.uint8]:
        """Return an image [side, side, 3], unedited or with a new random edit."""
        return squared(self._image(number, random, edited=edited), side)

    def _image(self, number: int, random: np.random.Generator, *, edited: bool) -> NDArray[np.uint8]:
        image = self.pictures[number].read(self.work)
        if edited:
            image, _ = edit_picture(image, random, lambda: self._other(number, random))
        return image

    def draw_bank(self, random: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Sample training images; return their teacher embeddings [count, D] and their groups [count]."""
        chosen = random.choice(self.training, size=count)
        return torch.from_numpy(self.vectors[chosen].astype(np.float32)), torch.from_numpy(self.groups[chosen])

    def _other(self, number: int, random: np.random.Generator) -> NDArray[np.uint8]:
        """Return a random training image from another group."""
        while True:
            other = int(random.choice(self.training))
            if self.groups[other] != self.groups[number]:
                return self.pictures[other].read(self.work)


def to_input(images: NDArray[np.uint8]) -> torch.Tensor:
    """Convert images [N, H, W, 3] to a student's input: [N, 3, H, W] from 0 to 255, in channels-last memory format."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float()


def open_material(work: Path) -> Material:
    """Open the images of a work folder that have teacher embeddings.

    Raises:
        InvalidArgumentError: No image has a teacher embedding.
    """
    pictures: list[Picture] = []
    vectors: list[NDArray[np.float16]] = []
    for source in read_sources(work):
        if vectors_file(work, source).exists():
            pictures += read_pictures(work, source)
            vectors.append(np.load(vectors_file(work, source)))
    if not pictures:
        raise InvalidArgumentError(f"{work}: no images with teacher embeddings; run `pictures` and `teach` first")
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
