"""The default extractor: one embedding per frame, similar for copies."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.features.onnx_files import mean_colors, write_onnx
from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import frame_extractor
from vidkin.features.frame_extractor import NETWORK_FILE, FrameEncoderExtractor, open_frame_extractor
from vidkin.media import Frames

NAMES = ("astronaut", "coffee", "chelsea", "rocket")


@pytest.fixture(scope="module")
def extractor() -> FrameEncoderExtractor:
    return open_frame_extractor("vidkin", device="cpu")


@pytest.fixture(scope="module")
def vectors(extractor: FrameEncoderExtractor) -> dict[str, NDArray[np.floating]]:
    """The embedding of each photograph."""
    return {name: extractor.extract(frames_of(photograph(name))).whole[0, 0] for name in NAMES}


def frames_of(*images: NDArray[np.uint8]) -> Frames:
    return Frames(np.stack(images), np.arange(len(images), dtype=np.float64))


def pose(image: NDArray[np.uint8], turns: int, *, mirrored: bool = False) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.rot90(image[:, ::-1] if mirrored else image, turns))


def test_every_view_is_a_unit_vector(extractor: FrameEncoderExtractor) -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1], [0.25, 0.25, 0.75, 0.75]], np.float32)
    features = extractor.extract(frames_of(photograph("coffee"), photograph("coffee")), boxes=boxes)
    assert features.values.shape == (2, 3, 1, 256)
    np.testing.assert_allclose(np.linalg.norm(features.values, axis=-1), 1, atol=1e-5)
    assert features.fingerprint == extractor.fingerprint
    assert features.boxes is not None
    np.testing.assert_array_equal(features.boxes, np.tile(boxes, (2, 1, 1)))


def test_frame_is_described_the_same_in_any_batch(extractor: FrameEncoderExtractor) -> None:
    images = [np.roll(photograph("chelsea"), 20 * step, axis=1) for step in range(3)]
    together = extractor.extract(frames_of(*images)).values
    alone = np.concatenate([extractor.extract(frames_of(image)).values for image in images])
    np.testing.assert_allclose(together, alone, atol=1e-5, rtol=0)
    assert extractor.extract(frames_of(*images)[:0]).values.shape == (0, 1, 1, 256)


@pytest.mark.parametrize("name", NAMES)
def test_frame_in_another_pose_is_closer_than_any_other_photograph(
    extractor: FrameEncoderExtractor, vectors: dict[str, NDArray[np.floating]], name: str
) -> None:
    image = photograph(name)
    poses = [pose(image, turns, mirrored=mirrored) for mirrored in (True, False) for turns in range(4)]
    cosines = {}
    for position, posed in enumerate(poses):
        (described,) = extractor.extract(frames_of(posed)).whole[:, 0]
        cosines[position] = float(described @ vectors[name])
        others = max(float(described @ vectors[other]) for other in NAMES if other != name)
        assert cosines[position] > max(0.6, others + 0.4)
    # Pose 0 is only mirrored and pose 4 is the original; the others are rotated.
    assert cosines[0] > 0.85
    assert cosines[4] > 0.999


@pytest.mark.parametrize("name", NAMES)
def test_edited_frame_is_closer_than_any_other_photograph(
    extractor: FrameEncoderExtractor, vectors: dict[str, NDArray[np.floating]], name: str
) -> None:
    image = photograph(name)
    height, width = image.shape[:2]
    edits = {
        "cropped": image[height // 8 : -height // 8, width // 8 : -width // 8],
        "letterboxed": np.pad(image, ((height // 8, height // 8), (0, 0), (0, 0))),
        "gray": np.asarray(Image.fromarray(image).convert("L").convert("RGB")),
        "darker": image // 2,
        "squeezed": np.asarray(Image.fromarray(image).resize((width // 2, height))),
    }
    for edit, edited in edits.items():
        (described,) = extractor.extract(frames_of(np.ascontiguousarray(edited))).whole[:, 0]
        others = max(float(described @ vectors[other]) for other in NAMES if other != name)
        assert float(described @ vectors[name]) > max(0.65, others + 0.4), edit


def test_view_equals_a_crop(extractor: FrameEncoderExtractor) -> None:
    image = photograph("astronaut")
    half = np.ascontiguousarray(image[:, : image.shape[1] // 2])
    boxes = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1]], dtype=np.float32)
    views = extractor.extract(frames_of(image), boxes=boxes).values[0, :, 0]
    cropped = extractor.extract(frames_of(half)).values[0, 0, 0]
    np.testing.assert_allclose(views[1], cropped, atol=1e-5)
    assert float(views[0] @ cropped) < 0.8


def test_thumbnails_show_the_pose_that_embeddings_ignore(extractor: FrameEncoderExtractor) -> None:
    image = photograph("astronaut")
    boxes = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1]], np.float32)
    plain = extractor.extract(frames_of(image), boxes=boxes).thumbnails
    mirrored = extractor.extract(frames_of(pose(image, 0, mirrored=True))).thumbnails
    turned = extractor.extract(frames_of(pose(image, 1))).thumbnails
    assert plain is not None
    assert mirrored is not None
    assert turned is not None
    assert plain.shape == (1, 2, 8, 8)
    assert int(np.abs(mirrored[0, 0, :, ::-1].astype(int) - plain[0, 0]).max()) <= 1
    assert int(np.abs(np.rot90(turned[0, 0], -1).astype(int) - plain[0, 0]).max()) <= 1
    assert int(np.abs(mirrored[0, 0].astype(int) - plain[0, 0]).max()) > 20
    # The left half is stretched to twice as many columns.
    assert int(np.abs(plain[0, 1].reshape(8, 4, 2).mean(-1) - plain[0, 0, :, :4]).max()) <= 1


def byte_colors(path: Path) -> Path:
    """Write a network that takes uint8 images and returns the mean of each channel."""
    steps = [
        ("Cast", "images", "numbers", {"to": 1}),
        ("ReduceMean", "numbers", "colors", {"axes": [2, 3], "keepdims": 0}),
    ]
    return write_onnx(path, steps, ("batch", 3, 32, 32), type="UINT8")


def test_other_box_network_or_cohort_changes_the_fingerprint(
    extractor: FrameEncoderExtractor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BOX_NETWORK_FILE", "COHORT_FILE"):
        other = tmp_path / name
        other.write_bytes(getattr(frame_extractor, name).read_bytes() + b" ")
        with monkeypatch.context() as patch:
            patch.setattr(frame_extractor, name, other)
            assert open_frame_extractor("vidkin", device="cpu").fingerprint != extractor.fingerprint
    assert open_frame_extractor("vidkin", device="cpu").fingerprint == extractor.fingerprint


def test_custom_network_is_used_and_changes_the_fingerprint(tmp_path: Path, extractor: FrameEncoderExtractor) -> None:
    own = open_frame_extractor("vidkin", weights=byte_colors(tmp_path / "own.onnx"), device="cpu")
    image = np.full((8, 8, 3), (30, 40, 0), np.uint8)
    np.testing.assert_allclose(own.extract(frames_of(image)).whole, [[[0.6, 0.8, 0.0]]], atol=1e-6)
    assert own.short_side == 32
    assert own.fingerprint != extractor.fingerprint
    black = own.extract(frames_of(np.zeros_like(image))).whole
    assert not black.any()


def test_names_and_weight_files_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match="takes no model, got 'vidkin:x'"):
        open_frame_extractor("vidkin:x")
    with pytest.raises(InvalidArgumentError, match="takes no whitening, got 'w'"):
        open_frame_extractor("vidkin", whitening="w")
    with pytest.raises(InvalidArgumentError, match=r"'vidkin\?views=none' has no setting 'views'"):
        open_frame_extractor("vidkin?views=none")
    with pytest.raises(UnknownExtractorError, match=r"none\.onnx: no such ONNX file"):
        open_frame_extractor("vidkin", weights=tmp_path / "none.onnx")
    maps = write_onnx(tmp_path / "map.onnx", [("Cast", "images", "map", {"to": 1})], (1, 3, 32, 32), type="UINT8")
    for path in (mean_colors(tmp_path / "colors.onnx"), maps):
        with pytest.raises(InvalidArgumentError, match=rf"{path.name}: the network must take bytes and return one"):
            open_frame_extractor("vidkin", weights=path)


def test_shipped_network_is_small_and_documents_its_origin() -> None:
    network = NETWORK_FILE.read_bytes()
    facts = json.loads(NETWORK_FILE.with_suffix(".json").read_text(encoding="utf-8"))
    assert len(network) <= 8_000_000
    assert facts["sha256"] == hashlib.sha256(network).hexdigest()
    assert facts["pictures"]
    assert all(set(pictures) == {"source", "terms"} and all(pictures.values()) for pictures in facts["pictures"])
    assert "SSCD (MIT)" in facts["teacher"]


def test_describing_a_video_does_not_import_torch(tmp_path: Path) -> None:
    video = encode(tmp_path / "a.mp4", pan("coffee", 5, width=96, height=64))
    code = (
        "import sys, vidkin.features as f\n"
        "parts = list(f.describe_file(sys.argv[1], f.open_extractor('vidkin'), duration=1, rate=2, boxes=True))\n"
        "assert parts[0].values[:, 0].any()\n"
        "print(*sorted({'torch', 'torchvision', 'timm', 'sklearn', 'scipy', 'skimage'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code, str(video)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
