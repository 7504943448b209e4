"""The default extractor: the shipped encoder over views of frames."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from tests.features.onnx_files import mean_colors
from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError, MissingPartError, UnknownExtractorError
from vidkin.features import (
    GRID,
    FrameEncoder,
    FrameEncoderSettings,
    SquareEncoder,
    export_frame_encoder,
    load_frame_encoder,
    open_square_encoder,
    save_frame_encoder,
    shipped_encoder,
)
from vidkin.features.frame_extractor import FrameEncoderExtractor, open_frame_extractor
from vidkin.features.sessions import read_weights_digest
from vidkin.features.views import turn_frames
from vidkin.media import Frames

BOXES = np.array(GRID, dtype=np.float32)


@pytest.fixture(scope="module")
def extractor() -> FrameEncoderExtractor:
    return open_frame_extractor("vidkin", device="cpu")


def frames_of(*images: NDArray[np.uint8]) -> Frames:
    return Frames(np.stack(images), np.arange(len(images), dtype=np.float64))


def test_every_view_is_a_unit_vector(extractor: FrameEncoderExtractor) -> None:
    features = extractor.extract(frames_of(photograph("coffee"), photograph("coffee")), boxes=BOXES)
    assert features.values.shape == (2, len(GRID), 1, 128)
    np.testing.assert_allclose(np.linalg.norm(features.values, axis=-1), 1, atol=1e-5)
    assert features.fingerprint == extractor.fingerprint
    assert extractor.extract(frames_of(photograph("coffee"))).values.shape == (1, 1, 1, 128)


def test_frame_is_described_the_same_in_any_batch(extractor: FrameEncoderExtractor) -> None:
    images = [np.roll(photograph("chelsea"), 20 * step, axis=1) for step in range(5)]
    together = extractor.extract(frames_of(*images), boxes=BOXES).values
    alone = np.concatenate([extractor.extract(frames_of(image), boxes=BOXES).values for image in images])
    np.testing.assert_allclose(together, alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_extract_turned_equals_describing_rotated_frames(extractor: FrameEncoderExtractor, degrees: int) -> None:
    frames = frames_of(photograph("coffee"), np.roll(photograph("coffee"), 40, axis=0))
    read = turn_frames(frames, degrees)
    for mirror in (False, True):
        described = extractor.extract_turned(frames, degrees, mirror=mirror)
        expected = extractor.extract(read, mirror=mirror)
        assert described.values.shape == expected.values.shape == (2, 1, 1, 128)
        assert (described.whole * expected.whole).sum(-1).min() > 0.99
        upright = extractor.extract(frames, mirror=mirror)
        assert (described.whole * upright.whole).sum(-1).max() < 0.9
        np.testing.assert_allclose(described.information, upright.information)


def test_view_equals_a_crop(extractor: FrameEncoderExtractor) -> None:
    image = photograph("astronaut")
    half = np.ascontiguousarray(image[:, : image.shape[1] // 2])
    boxes = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1]], dtype=np.float32)
    views = extractor.extract(frames_of(image), boxes=boxes).values[0, :, 0]
    cropped = extractor.extract(frames_of(half)).values[0, 0, 0]
    other = extractor.extract(frames_of(photograph("coffee"))).values[0, 0, 0]
    assert float(views[1] @ cropped) > 0.95
    assert float(views[1] @ cropped) > float(views[0] @ cropped)
    assert float(views[1] @ other) < 0.5


@pytest.fixture(scope="module")
def regional() -> FrameEncoderExtractor:
    return open_frame_extractor("vidkin?regions=10", device="cpu")


class TestRegions:
    def test_region_equals_a_crop_of_half_the_sides(
        self, regional: FrameEncoderExtractor, extractor: FrameEncoderExtractor
    ) -> None:
        frames = frames_of(photograph("astronaut"), np.roll(photograph("astronaut"), 100, axis=0))
        features = regional.extract(frames)
        assert features.values.shape == (2, 1, 10, 128)
        assert regional.views == "none"
        quarters = {0: (0, 0, 0.5, 0.5), 2: (0.5, 0, 1, 0.5), 4: (0.25, 0.25, 0.75, 0.75), 8: (0.5, 0.5, 1, 1)}
        boxes = np.array([(0, 0, 1, 1), *quarters.values()], np.float32)
        views = extractor.extract(frames, boxes=boxes).values[:, :, 0]
        np.testing.assert_allclose(features.values[:, 0, [9, *quarters]], views, atol=1e-5)
        # A region of the mirrored picture is the other one, mirrored.
        flipped = frames_of(*(np.ascontiguousarray(image[:, ::-1]) for image in frames.images))
        mirrored = regional.extract(frames, mirror=True).values
        np.testing.assert_allclose(mirrored, regional.extract(flipped).values, atol=1e-4)
        assert regional.predict_turned(features, "mirrored") is None
        assert regional.extract_turned(frames, 90).values.shape == (2, 1, 10, 128)

    def test_region_without_detail_is_empty_but_the_whole_never_is(self, regional: FrameEncoderExtractor) -> None:
        image = np.full((96, 96, 3), 120, np.uint8)
        image[48:, 48:] = photograph("coffee")[200:248, 200:248]
        values = regional.extract(frames_of(image, np.full_like(image, 120))).values[:, 0]
        lengths = np.linalg.norm(values, axis=-1)
        np.testing.assert_allclose(lengths[0, [0, 8, 9]], [0, 1, 1], atol=1e-5)
        np.testing.assert_allclose(lengths[1], [0] * 9 + [1], atol=1e-5)

    def test_parts_without_detail_skip_the_network(self) -> None:
        encoder, counts = shipped_encoder(), []

        def run(squares: NDArray[np.float32]) -> NDArray[np.float32]:
            counts.append(len(squares))
            return encoder.encode(squares)

        counting = FrameEncoderExtractor(SquareEncoder(run, side=64, dimension=128, digest=encoder.digest), regions=10)
        image = np.full((96, 96, 3), 120, np.uint8)
        image[48:, 48:] = photograph("coffee")[200:248, 200:248]
        counting.extract(frames_of(image, np.full_like(image, 120)))
        # Of the first the last square and those that overlap with it, and the whole; of the second the whole.
        assert sum(counts) == 6

    def test_every_view_has_its_own_regions(self, regional: FrameEncoderExtractor) -> None:
        boxes = np.array([(0, 0, 1, 1), (0, 0, 0.5, 0.5)], np.float32)
        values = regional.extract(frames_of(photograph("chelsea")), boxes=boxes).values[0]
        assert values.shape == (2, 10, 128)
        # The first region of the whole is the second view.
        np.testing.assert_allclose(values[0, 0], values[1, 9], atol=1e-5)

    def test_its_features_are_not_those_of_one_region(self, regional: FrameEncoderExtractor) -> None:
        others = [open_frame_extractor(name) for name in ("vidkin", "vidkin?views=none", "vidkin?regions=1")]
        assert regional.fingerprint not in {other.fingerprint for other in others}
        assert others[0].fingerprint == others[2].fingerprint
        assert open_frame_extractor("vidkin?regions=10&views=both").views == "both"
        with pytest.raises(InvalidArgumentError, match="regions must be 1 or 10, got 9"):
            open_frame_extractor("vidkin?regions=9")


def test_black_bars_hardly_change_vectors(extractor: FrameEncoderExtractor) -> None:
    image = photograph("chelsea")
    boxed = np.pad(image, ((40, 40), (0, 0), (0, 0)))
    plain, barred = (extractor.extract(frames_of(picture)).values[0, 0, 0] for picture in (image, boxed))
    assert float(plain @ barred) > 0.97


def test_mirrored_features_equal_features_of_flipped_frames(extractor: FrameEncoderExtractor) -> None:
    image = photograph("coffee")
    flipped = np.ascontiguousarray(image[:, ::-1])
    mirrored = extractor.extract(frames_of(image), mirror=True).values
    np.testing.assert_allclose(mirrored, extractor.extract(frames_of(flipped)).values, atol=1e-5)
    # In parts, too: a part of the flipped picture.
    mirrored = extractor.extract(frames_of(image), mirror=True, boxes=BOXES).values
    np.testing.assert_allclose(mirrored, extractor.extract(frames_of(flipped), boxes=BOXES).values, atol=1e-4)


def test_names_and_weight_files_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match="takes no model, got 'vidkin:x'"):
        open_frame_extractor("vidkin:x")
    with pytest.raises(InvalidArgumentError, match="takes no whitening, got 'w'"):
        open_frame_extractor("vidkin", whitening="w")
    with pytest.raises(InvalidArgumentError, match="views must be one of none, query, both, got 'all'"):
        open_frame_extractor("vidkin?views=all")
    with pytest.raises(InvalidArgumentError, match="must be the weights of a frame encoder"):
        open_frame_extractor("vidkin", weights=tmp_path / "none.safetensors")
    small = FrameEncoder(FrameEncoderSettings(widths=(4, 8), strides=(2,), dimension=16, side=32))
    path = tmp_path / "small.safetensors"
    metadata = {"settings": json.dumps(small.settings.to_table())}
    save_file(small.state_dict(), path, metadata=metadata)
    assert load_frame_encoder(path).settings == small.settings
    opened = open_frame_extractor("vidkin", weights=path)
    assert opened.extract(frames_of(photograph("coffee"))).values.shape == (1, 1, 1, 16)
    default, alone = open_frame_extractor("vidkin"), open_frame_extractor("vidkin?views=query")
    assert (default.views, alone.views, alone.name) == ("both", "query", "vidkin?views=query")
    assert len({extractor.fingerprint for extractor in (opened, default, alone)}) == 3
    state = small.state_dict()
    state["head.bias"] = torch.full_like(state["head.bias"], float("nan"))
    save_file(state, path, metadata=metadata)
    with pytest.raises(InvalidArgumentError, match="must hold finite weights, got NaN or infinity"):
        load_frame_encoder(path)
    save_file(small.state_dict(), path)
    with pytest.raises(InvalidArgumentError, match="its metadata has no settings"):
        load_frame_encoder(path)


class TestSave:
    def test_saved_encoder_is_unchanged(self, tmp_path: Path) -> None:
        settings = FrameEncoderSettings(
            side=16, widths=(4, 8), strides=(2,), grid=2, dimension=8, normalization="fixed"
        )
        encoder = FrameEncoder(settings)
        path = save_frame_encoder(encoder, tmp_path / "own.safetensors")
        again = load_frame_encoder(path)
        assert again.settings == settings
        assert again.digest() == encoder.digest() == read_weights_digest(path)

    def test_missing_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"own.safetensors: .*; choose a file in a folder"):
            save_frame_encoder(load_frame_encoder(), tmp_path / "missing" / "own.safetensors")


def test_shipped_weights_are_small_and_document_their_origin() -> None:
    folder = Path(str(files("vidkin.features"))) / "data"
    weights = (folder / "frame_encoder.safetensors").read_bytes()
    told = json.loads((folder / "frame_encoder.json").read_text(encoding="utf-8"))
    assert len(weights) <= 4_000_000
    assert told["sha256"] == hashlib.sha256(weights).hexdigest()
    assert told["pictures"] == sum(told["data"].values())
    assert {"licenses", "versions", "made_by"} <= set(told)


class TestWithoutTorch:
    def test_shipped_onnx_file_equals_the_shipped_weights(self) -> None:
        """The ONNX file gives the vectors of the network that the weights beside it make, and has its digest."""
        network, encoder = load_frame_encoder(), shipped_encoder()
        squares = np.random.default_rng(0).integers(0, 256, (70, 3, 64, 64), np.uint8)
        with torch.inference_mode():
            expected = network(torch.from_numpy(squares) / 255).numpy()
        np.testing.assert_allclose(encoder.encode(squares), expected, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(squares.transpose(0, 2, 3, 1)), expected, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(squares.astype(np.float32)), expected, atol=1e-5)
        weights = Path(str(files("vidkin.features"))) / "data" / "frame_encoder.safetensors"
        assert encoder.digest == network.digest() == read_weights_digest(weights)
        assert (encoder.side, encoder.dimension) == (64, 128)
        assert encoder.encode(squares[:0]).shape == (0, 128)
        assert shipped_encoder() is encoder

    def test_exported_network_next_to_its_weights_is_used(self, tmp_path: Path) -> None:
        torch.manual_seed(0)
        settings = FrameEncoderSettings(side=16, widths=(4, 8), strides=(2,), grid=2, dimension=8)
        encoder = FrameEncoder(settings).eval()
        path = save_frame_encoder(encoder, tmp_path / "own.safetensors")
        exported = export_frame_encoder(encoder, tmp_path / "own.onnx")
        squares = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 16), np.uint8)
        expected = encoder.on_squares().encode(squares)
        for weights in (path, exported):
            opened = open_square_encoder(weights)
            np.testing.assert_allclose(opened.encode(squares), expected, atol=1e-5)
            assert opened.digest == encoder.digest()
        # Other weights beside an older ONNX file: torch computes.
        other = FrameEncoder(settings).eval()
        save_frame_encoder(other, path)
        np.testing.assert_allclose(open_square_encoder(path).encode(squares), other.on_squares().encode(squares))
        assert open_square_encoder(path).digest == other.digest()

    def test_weights_without_an_export_need_torch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = save_frame_encoder(load_frame_encoder(), tmp_path / "own.safetensors")
        monkeypatch.setitem(sys.modules, "vidkin.features.frame_encoder", None)
        with pytest.raises(
            MissingPartError, match=r"own\.safetensors needs torch, .* vidkin export .*own\.safetensors"
        ):
            open_square_encoder(path)

    def test_foreign_onnx_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="must be a frame encoder that vidkin wrote"):
            open_square_encoder(mean_colors(tmp_path / "colors.onnx"))

    def test_describing_a_video_loads_no_torch(self, tmp_path: Path) -> None:
        video = encode(tmp_path / "a.mp4", pan("coffee", 5, width=96, height=64))
        code = (
            "import sys, vidkin.features as f\n"
            "parts = list(f.describe_file(sys.argv[1], f.open_extractor('vidkin'), duration=1, rate=2, views=True))\n"
            "assert parts[0][0].values.any()\n"
            "print(*sorted({'torch', 'torchvision', 'timm', 'sklearn', 'scipy', 'skimage'} & set(sys.modules)))\n"
        )
        result = subprocess.run([sys.executable, "-c", code, str(video)], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == ""
