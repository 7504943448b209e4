"""What a student trains on: pictures with the teacher's vectors, and the draw of batches of edited views.

A batch holds some moments with two views each, edited anew at every draw. Part of them are pairs of moments of one
scene, so that three levels are in every batch: the same moment, another moment of the same place, and other places.
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

# One group in so many is left for validation, by the checksum of its name.
_VALIDATION = 50
# Two moments of one scene in a batch are at least so many seconds apart: a second is what a search must tell apart.
_APART = 1.0
# Every second moment comes once as it is: what an index stores is unedited.
_PLAIN = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Views of moments, and what the student is to make of them.

    Attributes:
        images: [N, side, side, 3] of bytes.
        moments: [N] number of the moment of each view.
        groups: [N] number of the scene.
        plain: [N, D] the teacher's vectors of the moments as they are.
        shown: [K] numbers of the edited views that the teacher saw, too; K is 0 without a teacher.
        seen: [K, D] its vectors of them.
    """

    images: NDArray[np.uint8]
    moments: torch.Tensor
    groups: torch.Tensor
    plain: torch.Tensor
    shown: torch.Tensor
    seen: torch.Tensor


@dataclass(frozen=True, slots=True)
class Witness:
    """A teacher that sees some of the edited views of each batch, exactly as the student sees them.

    Attributes:
        encode: The teacher.
        side: Side of the squares that it gets, pixels.
        count: Views of a batch that it sees.
    """

    encode: PixelEncoder
    side: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Pictures to train on, pictures to validate with, and those that share their scene with others.

    Attributes:
        work: The work folder.
        pictures: All pictures.
        groups: [P] number of the scene of each.
        vectors: [P, D] the teacher's vectors of them, of unit length.
        training: Numbers of the pictures to train on.
        validation: Numbers of pictures of other groups.
        pairs: For each picture to train on that has them, those of the same scene, far enough away in time.
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
        """A batch of two views of each of ``moments`` moments, a share ``paired`` of which are pairs of one scene; a
        witness sees some of the edited ones."""
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
        # Every second view is edited, so these are.
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
        """A picture [side, side, 3], as it is or edited anew."""
        return squared(self._image(number, random, edited=edited), side)

    def _image(self, number: int, random: np.random.Generator, *, edited: bool) -> NDArray[np.uint8]:
        image = self.pictures[number].read(self.work)
        if edited:
            image, _ = edit_picture(image, random, lambda: self._other(number, random))
        return image

    def draw_bank(self, random: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The teacher's vectors of pictures to train on, [count, D], and their groups."""
        chosen = random.choice(self.training, size=count)
        return torch.from_numpy(self.vectors[chosen].astype(np.float32)), torch.from_numpy(self.groups[chosen])

    def _other(self, number: int, random: np.random.Generator) -> NDArray[np.uint8]:
        """A picture to train on of another group."""
        while True:
            other = int(random.choice(self.training))
            if self.groups[other] != self.groups[number]:
                return self.pictures[other].read(self.work)


def to_input(images: NDArray[np.uint8]) -> torch.Tensor:
    """Images [N, H, W, 3] as a student takes them: [N, 3, H, W] from 0 to 255, channels last in memory."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float()


def open_material(work: Path) -> Material:
    """The pictures of a work folder that have the teacher's vectors.

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
        raise InvalidArgumentError(f"{work} has no picture with a teacher's vector; run `pictures` and `teach` first")
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
            others = [each for each in numbers if abs(pictures[each].time - pictures[number].time) >= _APART]
            if others:
                pairs[number] = np.array(others)
    return Material(work, tuple(pictures), groups, np.concatenate(vectors), training, np.flatnonzero(held), pairs)
