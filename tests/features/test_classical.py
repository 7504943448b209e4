"""The extractor without weights: which edits it ignores and which differences it sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from tests.support.videos import photograph
from vidkin.errors import InvalidArgumentError
from vidkin.features import ClassicalExtractor, Whitening, background_frames, open_extractor
from vidkin.media import Frames
from vidkin.similarity import frame_similarity

NAMES = ("astronaut", "chelsea", "coffee", "rocket", "brick", "coins")


def picture(name: str, width: int = 320, height: int = 240) -> Image.Image:
    return Image.fromarray(photograph(name)).resize((width, height), Image.Resampling.BILINEAR)


def frames_of(*pictures: Image.Image) -> Frames:
    return Frames(np.stack([np.asarray(p) for p in pictures]), np.arange(len(pictures), dtype=np.float64))


@pytest.fixture(scope="module")
def extractor() -> ClassicalExtractor:
    return ClassicalExtractor()


def similarity(extractor: ClassicalExtractor, first: Image.Image, second: Image.Image) -> float:
    a = extractor.extract(frames_of(first)).whole
    b = extractor.extract(frames_of(second)).whole
    return float(frame_similarity(a, b, symmetric=True)[0, 0])


def test_descriptors_have_the_documented_shape_and_unit_length(extractor: ClassicalExtractor) -> None:
    features = open_extractor("classical").extract(frames_of(picture("coffee"), picture("chelsea")))
    assert features.whole.shape == (2, 10, 128)
    np.testing.assert_allclose(np.linalg.norm(features.whole, axis=-1), 1, rtol=1e-5)
    assert features.whole.dtype == np.float32
    assert features.fingerprint == extractor.fingerprint
    assert features.fingerprint.startswith("classical-1-")
    assert features.information.min() > 0.8
    assert features.timestamps.tolist() == [0.0, 1.0]


EDITS = {
    "half size": lambda p: p.resize((160, 120)).resize((320, 240)),
    "crop of 30 % of the area": lambda p: p.crop((20, 10, 20 + 268, 10 + 201)),
    "grey": lambda p: p.convert("L").convert("RGB"),
    "darker": lambda p: ImageEnhance.Brightness(p).enhance(0.55),
    "brighter": lambda p: ImageEnhance.Brightness(p).enhance(1.4),
    "squeezed": lambda p: p.resize((240, 240)),
}


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_edited_frame_is_nearest_to_its_source(extractor: ClassicalExtractor, edit: str) -> None:
    for name in NAMES:
        edited = EDITS[edit](picture(name))
        own = similarity(extractor, edited, picture(name))
        others = [similarity(extractor, edited, picture(other)) for other in NAMES if other != name]
        assert own > 0.4
        assert own > max(others) + 0.2


def test_letterbox_hardly_changes_descriptors(extractor: ClassicalExtractor) -> None:
    boxed = Image.new("RGB", (320, 304))
    boxed.paste(picture("coffee"), (0, 32))
    assert similarity(extractor, boxed, picture("coffee")) > 0.97


def test_mirrored_frame_is_not_described_as_its_source(extractor: ClassicalExtractor) -> None:
    flipped = Image.fromarray(np.ascontiguousarray(np.asarray(picture("chelsea"))[:, ::-1]))
    assert similarity(extractor, picture("chelsea"), flipped) < 0.9


def test_batch_size_does_not_change_descriptors(extractor: ClassicalExtractor) -> None:
    frames = background_frames()[:40]
    whole = extractor.extract(frames).whole
    single = np.concatenate([extractor.extract(frames[i : i + 1]).whole for i in (0, 17, 39)])
    np.testing.assert_array_equal(whole[[0, 17, 39]], single)


def test_no_frames_give_no_features(extractor: ClassicalExtractor) -> None:
    empty = Frames(np.zeros((0, 240, 320, 3), np.uint8), np.zeros(0))
    assert extractor.extract(empty).whole.shape == (0, 10, 128)


def test_flat_frames_have_finite_features_and_no_information(extractor: ClassicalExtractor) -> None:
    black = Frames(np.zeros((1, 240, 320, 3), np.uint8), np.zeros(1))
    features = extractor.extract(black)
    assert np.isfinite(features.whole).all()
    assert features.information.tolist() == [0.0]


def test_custom_whitening_changes_the_fingerprint(tmp_path: Path, extractor: ClassicalExtractor) -> None:
    raw = extractor.describe(background_frames().images)
    path = tmp_path / "own.safetensors"
    Whitening.fit([raw], dimension=32).save(path)
    own = ClassicalExtractor(path)
    assert own.fingerprint != extractor.fingerprint
    assert own.extract(frames_of(picture("coffee"))).whole.shape == (1, 10, 32)


def test_whitening_of_other_descriptors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    Whitening.fit([np.random.default_rng(0).normal(size=(100, 8))], dimension=4).save(path)
    with pytest.raises(InvalidArgumentError, match="length 8, but the classical extractor has 201"):
        ClassicalExtractor(path)
