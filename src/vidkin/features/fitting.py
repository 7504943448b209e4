"""Fit a whitening to unlabeled images, by PCA or so that it suppresses typical edits of copies."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin.errors import InvalidArgumentError
from vidkin.features.whitening import Whitening
from vidkin.media import probe, read_frames
from vidkin.media.picture_edits import PICTURE_EDITS

Image = NDArray[np.uint8]

FITTING_EDITS: tuple[str, ...] = (
    "reencode", "resize", "crop", "letterbox", "pillarbox", "logo", "caption", "grey", "sepia", "brighter",
    "darker", "contrast", "blur", "noise", "rotate5", "aspect",
)  # fmt: skip
"""Edits of a single image that keep its regions roughly in position (mirroring does not)."""


@runtime_checkable
class DescribesImages(Protocol):
    """An extractor that can compute descriptors before whitening."""

    def describe(self, images: Image) -> NDArray[np.float32]:
        """Compute descriptors [T, R, D] of images [T, H, W, 3] before whitening."""
        ...


def fit_edit_whitening(
    extractor: DescribesImages,
    images: Iterable[Image],
    *,
    dimension: int,
    edits: Sequence[str] = FITTING_EDITS,
    copies: int = 3,
    shrinkage: float = 0.05,
    power: float = 0.5,
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> Whitening:
    """Fit a discriminative whitening (:meth:`Whitening.fit_pairs`) to images and edited copies of them.

    Each image is paired with ``copies`` copies of itself, each changed by one edit and compressed. Memory use does not
    grow with the number of images.

    Args:
        extractor: Extractor whose descriptors are to be whitened.
        images: Images [H, W, 3] uint8 of any size, such as photographs or frames of your videos; at least a few
            hundred.
        dimension: Length of the whitened descriptors.
        edits: Names in :data:`vidkin.media.picture_edits.PICTURE_EDITS`.
        copies: Number of edited copies per image, at most the number of edits.
        shrinkage, power: As in :meth:`Whitening.fit_pairs`.
        seed: Seed for the choice and strength of edits.
        on_progress: Callback that receives the number of processed images.

    Raises:
        InvalidArgumentError: There are no images, there are more copies than edits, or the extractor takes no
            whitening.
    """
    _check_describes(extractor)
    if not 1 <= copies <= len(edits):
        raise InvalidArgumentError(f"copies must be from 1 to {len(edits)}, the number of edits, got {copies}")

    def pairs() -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        generator = np.random.default_rng(seed)
        for count, image in enumerate(images, start=1):
            chosen = generator.choice(len(edits), copies, replace=False)
            edited = []
            for name in (edits[int(index)] for index in chosen):
                copy = next(PICTURE_EDITS[name](iter([image]), int(generator.integers(2**31))))
                # Add lossy compression artifacts at the size of the original; JPEG uses the same blocks as video
                # codecs.
                buffer = io.BytesIO()
                PILImage.fromarray(copy).save(buffer, "JPEG", quality=12 if name == "reencode" else 55)
                picture = PILImage.open(buffer).convert("RGB")
                size = (image.shape[1], image.shape[0])
                edited.append(np.array(picture.resize(size, PILImage.Resampling.BILINEAR)))
            described = extractor.describe(np.stack([image, *edited]))
            yield np.broadcast_to(described[:1], described[1:].shape), described[1:]
            if on_progress is not None:
                on_progress(count)

    return Whitening.fit_pairs(pairs(), dimension=dimension, shrinkage=shrinkage, power=power)


def fit_image_whitening(
    extractor: DescribesImages,
    images: Iterable[Image],
    *,
    dimension: int,
    on_progress: Callable[[int], None] | None = None,
) -> Whitening:
    """Fit a PCA whitening (:meth:`Whitening.fit`) to the descriptors of unedited images, in one pass.

    Args:
        extractor: Extractor whose descriptors are to be whitened.
        images: Images [H, W, 3] uint8 of any size, at least a few thousand for descriptors with hundreds of dimensions.
        dimension: Length of the whitened descriptors.
        on_progress: Callback that receives the number of processed images.

    Raises:
        InvalidArgumentError: There are no images, or the extractor takes no whitening.
    """
    _check_describes(extractor)

    def described() -> Iterator[NDArray[np.float32]]:
        for count, image in enumerate(images, start=1):
            yield extractor.describe(image[None])
            if on_progress is not None:
                on_progress(count)

    return Whitening.fit(described(), dimension=dimension)


def _check_describes(extractor: object) -> None:
    if not isinstance(extractor, DescribesImages):
        raise InvalidArgumentError(
            "extractor must take a whitening (classical, timm:<model>, torchvision:<model>, onnx:<file>), "
            f"got {type(extractor).__name__}, whose vectors are not whitened"
        )


@check_arguments
def pictures_of(path: PathLike, *, count: int = 12, short_side: int = 240) -> Iterator[Image]:
    """Yield at most ``count`` evenly spaced frames of a video, or the image of an image file.

    Raises:
        MediaError: The file cannot be read.
    """
    duration = probe(path).duration
    rate = min(2.0, count / duration) if duration > 0 else 1.0
    yield from islice(read_frames(path, rate=rate, short_side=short_side).images, count)
