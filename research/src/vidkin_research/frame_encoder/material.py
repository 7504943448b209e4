"""What a run trains on: crops and teacher's vectors of the shards it was given, and the draw of its batches.

A batch holds some moments with two views each. Part of them are pairs of moments of one scene, so that three levels
are in every batch: the same moment, another moment of the same place, and other places.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.crops import CropRow, decode_crop, read_rows, shard_files
from vidkin_research.frame_encoder.pictures import Picture, read_rounds
from vidkin_research.frame_encoder.teacher import Part, rows_of_part, vectors_file

__all__ = ["Batch", "Material", "Moment", "open_material", "taught_shards"]

# One group in so many is left for validation, by the checksum of its name.
_VALIDATION = 50
# Two moments of one scene in a batch are at least so many seconds apart: a second is what a search must tell apart.
_APART = 1.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A picture with its crops and the teacher's vectors of them.

    Attributes:
        group: Number of the scene.
        time: Seconds from the start of its video.
        content: The shard that its crops are in.
        rows: Its crops, the plain one first.
        plain: The teacher's vector of the plain crop, [D].
        edited: The teacher's vectors of the edited crops, [E, D]; None if they are not computed yet.
    """

    group: int
    time: float
    content: NDArray[np.uint8]
    rows: tuple[CropRow, ...]
    plain: NDArray[np.float16]
    edited: NDArray[np.float16] | None

    def image(self, row: int, side: int) -> NDArray[np.uint8]:
        """The crop with this number, [side, side, 3]."""
        place = self.rows[row]
        return decode_crop(self.content[place.offset : place.offset + place.length].tobytes(), side)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Views of moments, and what the student is to make of them.

    Attributes:
        images: [N, 3, side, side] with values in -1..1.
        moments: [N] number of the moment of each view.
        groups: [N] number of the scene.
        plain: [N, D] the teacher's vectors of the plain crops of the moments.
        own: [N, D] the teacher's vectors of the views themselves, 0 where they are not known.
        known: [N] where they are.
    """

    images: torch.Tensor
    moments: torch.Tensor
    groups: torch.Tensor
    plain: torch.Tensor
    own: torch.Tensor
    known: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Moments to train on, moments to validate with, and those that share their scene with others.

    Attributes:
        training: Moments to train on.
        validation: Moments of other groups.
        pairs: For each moment of `training` that has them, the moments of the same scene, far enough away in time.
        bank: [N, D] the teacher's vectors of the plain crops of `training`.
        bank_groups: [N] their groups.
    """

    training: tuple[Moment, ...]
    validation: tuple[Moment, ...]
    pairs: dict[int, tuple[int, ...]]
    bank: torch.Tensor
    bank_groups: torch.Tensor

    def draw(self, random: np.random.Generator, *, moments: int, paired: float, side: int) -> Batch:
        """A batch of two views of each of ``moments`` moments, a share ``paired`` of which are pairs of one scene."""
        chosen: list[int] = []
        leaders = list(self.pairs)
        for _ in range(round(paired * moments / 2) if leaders else 0):
            leader = leaders[int(random.integers(len(leaders)))]
            chosen += [leader, int(random.choice(self.pairs[leader]))]
        chosen += [int(number) for number in random.integers(len(self.training), size=moments - len(chosen))]
        views = []
        for number in chosen:
            edits = 1 + random.permutation(len(self.training[number].rows) - 1)[:2]
            # Every second moment comes once as it is: what an index stores is unedited.
            first = 0 if random.random() < 0.5 or len(edits) < 2 else int(edits[1])
            views += [(number, first), (number, int(edits[0]))]
        return _batch(self.training, views, side)

    def draw_bank(self, random: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The teacher's vectors of other pictures, [count, D], and their groups."""
        chosen = torch.from_numpy(random.integers(len(self.bank), size=count))
        return self.bank[chosen], self.bank_groups[chosen]


def _batch(moments: Sequence[Moment], views: Sequence[tuple[int, int]], side: int) -> Batch:
    images = np.stack([moments[number].image(row, side) for number, row in views])
    own = []
    for number, row in views:
        moment = moments[number]
        vector = moment.plain if row == 0 else None if moment.edited is None else moment.edited[row - 1]
        own.append(vector)
    plain = torch.from_numpy(np.stack([moments[number].plain for number, _ in views])).float()
    vectors = [torch.zeros_like(plain[0]) if vector is None else torch.from_numpy(vector).float() for vector in own]
    return Batch(
        images=to_input(images),
        moments=torch.tensor([number for number, _ in views]),
        groups=torch.tensor([moments[number].group for number, _ in views]),
        plain=torch.nn.functional.normalize(plain, dim=1),
        own=torch.stack(vectors),
        known=torch.tensor([vector is not None for vector in own]),
    )


def to_input(images: NDArray[np.uint8]) -> torch.Tensor:
    """Images [N, H, W, 3] as the student takes them: [N, 3, H, W] in -1..1, channels last in memory."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1


def taught_shards(work: Path, part: Part = "plain") -> list[int]:
    """Shards whose crops of this part have the teacher's vectors."""
    return sorted(int(file.name.split(".")[0]) for file in (work / "vectors").glob(f"*.{part}.npy"))


def open_material(work: Path, shards: Sequence[int], edited: Sequence[int] = ()) -> Material:
    """Read the lists and vectors of some shards; crops stay in their files until they are drawn.

    Args:
        work: The work folder.
        shards: Shards to read.
        edited: Those of them whose vectors of edited crops are read as well.

    Raises:
        InvalidArgumentError: There is no shard.
    """
    if not shards:
        raise InvalidArgumentError(f"{work} has no shard with vectors; run `crops` and `teach` first")
    pictures = [picture for each in read_rounds(work) for picture in each]
    names: dict[str, int] = {}
    training: list[Moment] = []
    validation: list[Moment] = []
    for shard in shards:
        for moment, group in _moments(work, shard, pictures, names, with_edited=shard in edited):
            held = zlib.crc32(group.encode()) % _VALIDATION == 0
            (validation if held else training).append(moment)
    by_group: dict[int, list[int]] = {}
    for number, moment in enumerate(training):
        by_group.setdefault(moment.group, []).append(number)
    pairs = {}
    for numbers in by_group.values():
        for number in numbers:
            others = [each for each in numbers if abs(training[each].time - training[number].time) >= _APART]
            if others:
                pairs[number] = tuple(others)
    bank = torch.from_numpy(np.stack([moment.plain for moment in training])).float()
    groups = torch.tensor([moment.group for moment in training])
    return Material(tuple(training), tuple(validation), pairs, torch.nn.functional.normalize(bank, dim=1), groups)


def _moments(
    work: Path, shard: int, pictures: Sequence[Picture], names: dict[str, int], *, with_edited: bool
) -> list[tuple[Moment, str]]:
    index, content_file = shard_files(work, shard)
    rows = read_rows(index)
    content = np.memmap(content_file, dtype=np.uint8, mode="r")
    plain = np.load(vectors_file(work, shard, "plain"))
    edited = np.load(vectors_file(work, shard, "edited")) if with_edited else None
    own: dict[int, list[CropRow]] = {}
    for row in rows:
        own.setdefault(row.picture, []).append(row)
    places = {(row.picture, row.edit): place for place, row in enumerate(rows_of_part(rows, "edited"))}
    moments = []
    for place, (picture, crops) in enumerate(own.items()):
        group = pictures[picture].group
        vectors = None if edited is None else edited[[places[picture, row.edit] for row in crops[1:]]]
        moment = Moment(
            group=names.setdefault(group, len(names)),
            time=pictures[picture].time,
            content=content,
            rows=tuple(crops),
            plain=plain[place],
            edited=vectors,
        )
        moments.append((moment, group))
    return moments
