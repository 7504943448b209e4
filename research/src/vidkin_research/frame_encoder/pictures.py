"""Gather the training images as JPEG files in one folder, with one list per source."""

from __future__ import annotations

import io
import json
import logging
import re
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.errors import InvalidArgumentError
from vidkin.media import iter_frames
from vidkin.media.frames import fit_to_square
from vidkin_research.frame_encoder.drawn import draw_page
from vidkin_research.frame_encoder.held_back import is_held_back_clip, is_held_back_photo, is_held_back_video
from vidkin_research.frame_encoder.sources import FOLDERS, PACKAGES, Folder, Package

__all__ = ["Picture", "fetch_packages", "gather", "read_pictures", "read_sources", "squared"]

logger = logging.getLogger(__name__)

# Maximum shorter and longer side of stored images, in pixels.
_SHORT, _LONG = 320, 720
# Minimum side in pixels of a tile cut from a large image.
_TILE = 360
# Images with more pixels, mostly drawings scaled up needlessly, are skipped before decoding.
_MAX_PIXELS = 40_000_000
_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp"}
_DRAWN = 5000


@dataclass(frozen=True, slots=True)
class Picture:
    """A training image.

    Attributes:
        file: Path of the JPEG file in the work folder.
        source: Name of its package or folder.
        group: Scene: frames of one scene share a group; every other image has its own group.
        time: Seconds from the start of its video; 0 for a photograph.
    """

    file: str
    source: str
    group: str
    time: float = 0.0

    def read(self, work: Path) -> NDArray[np.uint8]:
        """Read the image, [H, W, 3]."""
        with PILImage.open(work / self.file) as file:
            return np.asarray(file.convert("RGB"))


def fetch_packages(work: Path) -> None:
    """Download the packages with apt and unpack them in the work folder without installing them."""
    for package in PACKAGES:
        target = work / "unpacked" / package.name
        if target.exists():
            continue
        downloads = work / "packages"
        downloads.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", package.name], cwd=downloads, check=True)
        found = sorted(downloads.glob(f"{package.name}_*.deb"))
        if not found:
            raise InvalidArgumentError(f"apt-get failed to download {package.name}; run apt-get update and try again")
        partial_folder = target.with_name(f"{package.name}.partial")
        partial_folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg", "-x", str(found[-1]), str(partial_folder)], check=True)
        partial_folder.rename(target)


def gather(work: Path, data: Path) -> int:
    """Write the images of every source that has no list yet, and return the total number of images.

    Args:
        work: Work folder, outside the repository.
        data: Folder with the shared data.
    """
    for package in PACKAGES:
        _gather_source(work, package.name, partial(_package_pictures, work, package))
    for folder in FOLDERS:
        _gather_source(work, folder.name, partial(_folder_pictures, data, folder))
    _gather_source(work, "drawn", _drawn_pictures)
    return sum(len(read_pictures(work, source)) for source in read_sources(work))


def read_sources(work: Path) -> list[str]:
    """Return the names of the gathered sources in alphabetical order."""
    return sorted(file.stem for file in (work / "lists").glob("*.json"))


def read_pictures(work: Path, source: str) -> list[Picture]:
    """Read the list of images of a source."""
    return [Picture(**row) for row in json.loads((work / "lists" / f"{source}.json").read_text())]


def squared(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Stretch an image to [side, side, 3], as encoders do with frames."""
    return fit_to_square(image, side, "stretch")


_Pictures = Iterator[tuple[str, float, PILImage.Image]]  # group, seconds, image


def _gather_source(work: Path, name: str, read: Callable[[], _Pictures]) -> None:
    label = name.replace("/", "-")
    file = work / "lists" / f"{label}.json"
    if file.exists():
        return
    folder = work / "pictures" / label
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, (group, time, picture) in enumerate(read()):
        target = folder / f"{number:05d}.jpg"
        picture.save(target, quality=92)
        rows.append(asdict(Picture(target.relative_to(work).as_posix(), name, f"{name}/{group}", time)))
    file.parent.mkdir(parents=True, exist_ok=True)
    partial_file = file.with_suffix(".partial")
    partial_file.write_text(json.dumps(rows, indent=0))
    partial_file.rename(file)
    logger.info("%s: %d images", name, len(rows))


def _package_pictures(work: Path, package: Package) -> _Pictures:
    folder = work / "unpacked" / package.name
    files = [
        file
        for file in folder.rglob("*")
        if file.is_file()
        and not file.is_symlink()
        and file.suffix.lower() in _SUFFIXES
        and not any(part in file.as_posix() for part in package.left_out)
    ]
    named = [(file.relative_to(folder).as_posix(), file.read_bytes) for file in files]
    for file in folder.rglob("*.rcc"):
        named += [(f"{file.stem}-{number}", partial(bytes, piece)) for number, piece in enumerate(_webp_in(file))]
    # Sort by checksum, so that a limit takes images from all parts of the package.
    named.sort(key=lambda pair: (zlib.crc32(pair[0].encode()), pair[0]))
    seen: set[bytes] = set()
    count = 0
    for name, read in named:
        picture = _open_image(read())
        if picture is None or min(picture.size) < package.short_side:
            continue
        look = _appearance_key(picture)
        if look in seen:  # the same drawing in another size or folder
            continue
        seen.add(look)
        for number, tile in enumerate(_tiles(picture, package.tiles)):
            yield f"{name}#{number}", 0.0, _fit(tile)
        count += 1
        if count >= package.limit:
            return


def _webp_in(file: Path) -> Iterator[bytes]:
    """Yield the WebP images in a Qt resource file, which stores them uncompressed."""
    content = file.read_bytes()
    for found in re.finditer(rb"RIFF(....)WEBP", content, re.DOTALL):
        (length,) = struct.unpack("<I", found.group(1))
        yield content[found.start() : found.start() + length + 8]


def _folder_pictures(data: Path, folder: Folder) -> _Pictures:
    root = data / folder.name
    if not folder.frames:
        for file in sorted(root.rglob("*.jpg")):
            name = file.relative_to(root).as_posix()
            picture = None if is_held_back_photo(name) else _open_image(file.read_bytes())
            if picture is not None:
                yield name, 0.0, _fit(picture)
        return
    scenes = json.loads((root / "clips.json").read_text()) if folder.name == "clips" else {}
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root).as_posix()
        if file.suffix.lower() not in VIDEO_EXTENSIONS:
            continue
        scene = scenes.get(file.name, {}).get("scene")
        if (scene is not None and is_held_back_clip(scene)) or (folder.name == "videos" and is_held_back_video(name)):
            continue
        group = name if scene is None else f"scene-{scene}"
        for time, image in _frames(file, folder):
            yield group, time, _fit(PILImage.fromarray(image))


def _frames(file: Path, folder: Folder) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    count = 0
    for piece in iter_frames(file, rate=folder.frames, short_side=_SHORT, threads=1):
        for image, time in zip(piece.images, piece.timestamps, strict=True):
            yield float(time), np.ascontiguousarray(image)
            count += 1
            if count >= folder.most:
                return


def _drawn_pictures() -> _Pictures:
    for number in range(_DRAWN):
        yield str(number), 0.0, _fit(PILImage.fromarray(draw_page(np.random.default_rng([57, number]))))


def _open_image(content: bytes) -> PILImage.Image | None:
    """Open an image as RGB, with one color behind transparent parts; None if it is unreadable or has no content."""
    try:
        with PILImage.open(io.BytesIO(content)) as file:
            if file.width * file.height > _MAX_PIXELS:
                return None
            picture = file.convert("RGBA") if "A" in file.getbands() or "transparency" in file.info else file
            picture.load()
            if picture.mode == "RGBA":
                random = np.random.default_rng(zlib.crc32(content))
                color = (
                    (255, 255, 255) if random.random() < 0.4 else tuple(int(v) for v in random.integers(256, size=3))
                )
                ground = PILImage.new("RGBA", picture.size, (*color, 255))
                picture = PILImage.alpha_composite(ground, picture)
            picture = picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, PILImage.DecompressionBombError) as error:
        logger.info("skipped: %s", error)
        return None
    # Images of one color are useless, because all of them would be copies of each other.
    small = np.asarray(picture.convert("L").resize((32, 32)), dtype=np.float32)
    return None if small.std() < 6 or max(picture.size) > 5 * min(picture.size) else picture


def _appearance_key(picture: PILImage.Image) -> bytes:
    """Return a key that is equal for images that differ only in size or color."""
    small = np.asarray(picture.convert("L").resize((9, 8), PILImage.Resampling.BILINEAR), dtype=np.int16)
    return np.packbits(np.diff(small, axis=1) > 2).tobytes() + np.packbits(np.diff(small, axis=1) < -2).tobytes()


def _tiles(picture: PILImage.Image, most: int) -> Iterator[PILImage.Image]:
    """Yield the full image, and disjoint tiles of a large image."""
    yield picture
    if most < 2:
        return
    side = max(_TILE, int(np.sqrt(picture.width * picture.height / most)))
    for top in range(0, picture.height - side + 1, side):
        for left in range(0, picture.width - side + 1, side):
            tile = picture.crop((left, top, left + side, top + side))
            if np.asarray(tile.convert("L").resize((32, 32)), dtype=np.float32).std() > 12:
                yield tile


def _fit(picture: PILImage.Image) -> PILImage.Image:
    factor = min(1.0, _SHORT / min(picture.size), _LONG / max(picture.size))
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture if size == picture.size else picture.resize(size, PILImage.Resampling.LANCZOS, reducing_gap=3.0)
