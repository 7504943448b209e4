"""Edited crops of the pictures, in shards of a work folder: written once, read in every epoch.

A shard is ``crops/NNNN.bin`` with JPEG files one after the other, and ``crops/NNNN.json`` with a row for each: number
of the picture, 0 for the plain crop or the number of the edit, the kinds, offset and length. Everything random follows
from the seed and the number of the picture, so that shards can be made again, in any order.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage

from vidkin.media.picture_edits import scaled
from vidkin_research.frame_encoder.edits import edit_crop
from vidkin_research.frame_encoder.pictures import Picture

__all__ = ["EDITS_EACH", "SIDE", "CropRow", "decode_crop", "plan_shards", "read_rows", "read_shard", "write_shard"]

Image = NDArray[np.uint8]

SIDE = 224
"""Side of the stored crops, which is the teacher's; the student scales them down."""
EDITS_EACH = 4
"""Edited crops of each picture."""

_SHARD = 256  # pictures
_QUALITY = 90
# Side that edits work on, at the shorter side of the crop.
_EDITED = 256
# Plain crops of photographs: half of them whole, the others this share of the area and more.
_WHOLE, _AREA = 0.5, 0.45


@dataclass(frozen=True, slots=True)
class CropRow:
    """A crop in a shard.

    Attributes:
        picture: Number of the picture in the list of all.
        edit: 0 for the plain crop, 1 and more for edited ones.
        kinds: Kinds of edits that made it.
        offset: Where its JPEG file starts in the shard.
        length: Bytes of it.
    """

    picture: int
    edit: int
    kinds: tuple[str, ...]
    offset: int
    length: int


def plan_shards(rounds: Sequence[Sequence[Picture]], seed: int) -> list[tuple[list[int], int]]:
    """The numbers of the pictures of each shard, and how many pictures there are up to the end of its round.

    Each round is in random order, with the pictures of one group side by side; numbers run on from round to round.
    """
    shards: list[tuple[list[int], int]] = []
    known = 0
    for number, pictures in enumerate(rounds):
        groups: dict[str, list[int]] = {}
        for place, picture in enumerate(pictures):
            groups.setdefault(picture.group, []).append(known + place)
        names = list(groups)
        order = np.random.default_rng([seed, 1, number]).permutation(len(names))
        numbers = [each for place in order for each in groups[names[place]]]
        known += len(pictures)
        shards += [(numbers[first : first + _SHARD], known) for first in range(0, len(numbers), _SHARD)]
    return shards


def write_shard(work: Path, shard: int, numbers: Sequence[int], pictures: Sequence[Picture], seed: int) -> None:
    """Write the crops of these pictures as one shard, unless it is there.

    Args:
        work: Work folder.
        shard: Number of the shard.
        numbers: Numbers of its pictures.
        pictures: All pictures up to the end of its round, from which those in insets and blends are drawn.
        seed: Source of everything random.
    """
    index, content = shard_files(work, shard)
    if index.exists():
        return
    content.parent.mkdir(parents=True, exist_ok=True)
    rows: list[CropRow] = []
    with content.open("wb") as file:
        for number in numbers:
            for edit, (image, kinds) in enumerate(make_crops(work, number, pictures, seed)):
                stored = io.BytesIO()
                PILImage.fromarray(image).save(stored, "JPEG", quality=_QUALITY)
                rows.append(CropRow(number, edit, kinds, file.tell(), stored.tell()))
                file.write(stored.getvalue())
    partial = index.with_suffix(".partial")
    partial.write_text(json.dumps([asdict(row) for row in rows]))
    partial.rename(index)


def make_crops(work: Path, number: int, pictures: Sequence[Picture], seed: int) -> list[tuple[Image, tuple[str, ...]]]:
    """The plain crop of a picture, [`SIDE`, `SIDE`, 3], and its edited ones, each with the kinds of edits."""
    picture = pictures[number]
    random = np.random.default_rng([seed, 2, number])
    # Frames of one scene are cropped alike: as one camera would see them.
    box = np.random.default_rng([seed, 3, _number_of(picture.group)])
    base = _base(_read(work, picture), box)
    crops: list[tuple[Image, tuple[str, ...]]] = [(scaled(base, SIDE, SIDE), ())]
    for _ in range(EDITS_EACH):
        edited, kinds = edit_crop(base, random, _others(work, picture, pictures, random))
        crops.append((scaled(edited, SIDE, SIDE), kinds))
    return crops


def read_shard(work: Path, shard: int) -> tuple[list[CropRow], bytes]:
    """Rows and content of a shard."""
    index, content = shard_files(work, shard)
    return read_rows(index), content.read_bytes()


def read_rows(index: Path) -> list[CropRow]:
    """The rows of a shard from its file."""
    return [CropRow(**{**row, "kinds": tuple(row["kinds"])}) for row in json.loads(index.read_text())]


def decode_crop(content: bytes | memoryview, side: int = SIDE) -> Image:
    """A stored crop as [side, side, 3]."""
    with PILImage.open(io.BytesIO(content)) as file:
        picture = file.convert("RGB")
    if side != SIDE:
        picture = picture.resize((side, side), PILImage.Resampling.BILINEAR)
    return np.array(picture)


def shard_files(work: Path, shard: int) -> tuple[Path, Path]:
    """The files of a shard: rows, and content."""
    return work / "crops" / f"{shard:04d}.json", work / "crops" / f"{shard:04d}.bin"


def _number_of(group: str) -> int:
    return int.from_bytes(group.encode()[-24:], "big")


def _read(work: Path, picture: Picture) -> Image:
    with PILImage.open(work / picture.file) as file:
        return np.asarray(file.convert("RGB"))


def _base(image: Image, random: np.random.Generator) -> Image:
    """The part of a picture that is its plain crop."""
    height, width = image.shape[:2]
    if random.random() >= _WHOLE:
        area, stretch = random.uniform(_AREA, 1.0), np.exp(random.uniform(-0.25, 0.25))
        wide = min(width, round(float(np.sqrt(area) * stretch) * width))
        tall = min(height, round(float(np.sqrt(area) / stretch) * height))
        left, top = int(random.integers(width - wide + 1)), int(random.integers(height - tall + 1))
        image = image[top : top + tall, left : left + wide]
    height, width = image.shape[:2]
    factor = _EDITED / min(height, width)
    return scaled(np.ascontiguousarray(image), max(8, round(width * factor)), max(8, round(height * factor)))


def _others(work: Path, own: Picture, pictures: Sequence[Picture], random: np.random.Generator) -> Callable[[], Image]:
    """A supply of pictures of other groups."""

    def other() -> Image:
        while True:
            picture = pictures[int(random.integers(len(pictures)))]
            if picture.group != own.group:
                return _read(work, picture)

    return other
