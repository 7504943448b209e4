"""Whitening fitted on images and their edited copies."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.features import (
    ClassicalExtractor,
    Whitening,
    background_frames,
    fit_edit_whitening,
    fit_image_whitening,
    pictures_of,
)


@pytest.mark.large
def test_edits_change_descriptors_less_after_fitting() -> None:
    extractor = ClassicalExtractor()
    seen: list[int] = []
    whitening = fit_edit_whitening(
        extractor,
        background_frames().images[::2],
        dimension=24,
        copies=2,
        seed=1,
        on_progress=seen.append,
    )
    assert seen == list(range(1, 49))
    assert (whitening.kind, whitening.dimension) == ("pairs", 24)
    picture = np.asarray(Image.fromarray(photograph("coffee")).resize((320, 240)))
    gray = np.repeat(picture.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8)
    other = np.asarray(Image.fromarray(photograph("chelsea")).resize((320, 240)))
    raw = extractor.describe(np.stack([picture, gray, other]))
    before = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
    after = whitening.apply(raw)

    def gap(values: NDArray[np.float32]) -> float:
        """How much closer the image is to its edited copy than to another image, as a cosine difference."""
        return float(((values[0] * values[1]).sum(-1) - (values[0] * values[2]).sum(-1)).mean())

    assert gap(after) > gap(before) + 0.2


def test_same_seed_gives_the_same_whitening() -> None:
    extractor = ClassicalExtractor()
    images = background_frames().images[:10]
    first, second = (fit_edit_whitening(extractor, images, dimension=8, seed=3) for _ in range(2))
    assert first.digest() == second.digest()


def test_more_copies_than_edits_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="copies must be from 1 to 2, the number of edits, got 3"):
        fit_edit_whitening(ClassicalExtractor(), [], dimension=8, edits=("grey", "crop"), copies=3)


def test_frames_are_sampled_evenly_from_a_video(tmp_path: Path) -> None:
    path = encode(tmp_path / "v.mp4", pan("coffee", 200), rate=10)
    assert len(list(pictures_of(path, count=5))) == 5
    with pytest.raises(MediaError, match="there is no such file"):
        list(pictures_of(tmp_path / "none.mp4"))


@pytest.mark.large
def test_images_with_color_profiles_survive_garbage_collection(tmp_path: Path) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    buffer = io.BytesIO()
    Image.fromarray(photograph("coffee")).save(buffer, "JPEG", icc_profile=profile)
    path = tmp_path / "profile.jpg"
    path.write_bytes(buffer.getvalue())
    for _ in range(20):
        assert len(list(pictures_of(path))) == 1
        gc.collect()


def test_fitting_on_images_equals_fitting_on_their_descriptors_at_once() -> None:
    extractor, images = ClassicalExtractor(), list(background_frames().images[:6])
    done: list[int] = []
    whitening = fit_image_whitening(extractor, iter(images), dimension=8, on_progress=done.append)
    assert done == [1, 2, 3, 4, 5, 6]
    together = Whitening.fit([np.concatenate([extractor.describe(image[None]) for image in images])], dimension=8)
    descriptors = extractor.describe(images[0][None])
    np.testing.assert_allclose(whitening.apply(descriptors), together.apply(descriptors), atol=1e-4)
    with pytest.raises(InvalidArgumentError, match="extractor must take a whitening"):
        fit_image_whitening(object(), images, dimension=8)  # type: ignore[arg-type]
