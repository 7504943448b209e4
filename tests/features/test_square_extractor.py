"""The `squares` extractor: network, views, regions and files."""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from tests.features.onnx_files import mean_colors
from tests.support.videos import photograph
from vidkin.errors import InvalidArgumentError, MissingPartError, UnknownExtractorError
from vidkin.features import (
    FrameEncoder,
    FrameEncoderSettings,
    SquareEncoder,
    export_frame_encoder,
    load_frame_encoder,
    open_square_encoder,
    save_frame_encoder,
    shipped_encoder,
)
from vidkin.features.sessions import read_weights_digest
from vidkin.features.square_extractor import SquareExtractor, open_square_extractor
from vidkin.media import Frames

BOXES = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1], [0.5, 0.25, 1, 0.75]], np.float32)


@pytest.fixture(scope="module")
def extractor() -> SquareExtractor:
    return open_square_extractor("squares", device="cpu")


def frames_of(*images: NDArray[np.uint8]) -> Frames:
    return Frames(np.stack(images), np.arange(len(images), dtype=np.float64))


def test_every_view_is_a_unit_vector(extractor: SquareExtractor) -> None:
    features = extractor.extract(frames_of(photograph("coffee"), photograph("coffee")), boxes=BOXES)
    assert features.values.shape == (2, len(BOXES), 1, 128)
    np.testing.assert_allclose(np.linalg.norm(features.values, axis=-1), 1, atol=1e-5)
    assert features.fingerprint == extractor.fingerprint
    assert extractor.extract(frames_of(photograph("coffee"))).values.shape == (1, 1, 1, 128)


def test_frame_is_described_the_same_in_any_batch(extractor: SquareExtractor) -> None:
    images = [np.roll(photograph("chelsea"), 20 * step, axis=1) for step in range(5)]
    together = extractor.extract(frames_of(*images), boxes=BOXES).values
    alone = np.concatenate([extractor.extract(frames_of(image), boxes=BOXES).values for image in images])
    np.testing.assert_allclose(together, alone, atol=1e-5, rtol=0)


def test_view_equals_a_crop(extractor: SquareExtractor) -> None:
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
def regional() -> SquareExtractor:
    return open_square_extractor("squares?regions=10", device="cpu")


class TestRegions:
    def test_region_equals_a_crop_with_half_the_side_length(
        self, regional: SquareExtractor, extractor: SquareExtractor
    ) -> None:
        frames = frames_of(photograph("astronaut"), np.roll(photograph("astronaut"), 100, axis=0))
        features = regional.extract(frames)
        assert features.values.shape == (2, 1, 10, 128)
        assert not regional.describes_boxes
        quarters = {0: (0, 0, 0.5, 0.5), 2: (0.5, 0, 1, 0.5), 4: (0.25, 0.25, 0.75, 0.75), 8: (0.5, 0.5, 1, 1)}
        boxes = np.array([(0, 0, 1, 1), *quarters.values()], np.float32)
        views = extractor.extract(frames, boxes=boxes).values[:, :, 0]
        np.testing.assert_allclose(features.values[:, 0, [9, *quarters]], views, atol=1e-5)

    def test_regions_without_detail_are_empty_but_the_whole_frame_never_is(self, regional: SquareExtractor) -> None:
        image = np.full((96, 96, 3), 120, np.uint8)
        image[48:, 48:] = photograph("coffee")[200:248, 200:248]
        values = regional.extract(frames_of(image, np.full_like(image, 120))).values[:, 0]
        lengths = np.linalg.norm(values, axis=-1)
        np.testing.assert_allclose(lengths[0, [0, 8, 9]], [0, 1, 1], atol=1e-5)
        np.testing.assert_allclose(lengths[1], [0] * 9 + [1], atol=1e-5)

    def test_regions_without_detail_skip_the_network(self) -> None:
        encoder, counts = shipped_encoder(), []

        def run(squares: NDArray[np.float32]) -> NDArray[np.float32]:
            counts.append(len(squares))
            return encoder.encode(squares)

        counting = SquareExtractor(SquareEncoder(run, side=64, dimension=128, digest=encoder.digest), regions=10)
        image = np.full((96, 96, 3), 120, np.uint8)
        image[48:, 48:] = photograph("coffee")[200:248, 200:248]
        counting.extract(frames_of(image, np.full_like(image, 120)))
        # The first frame needs the last square, the squares overlapping it and the whole frame; the second one only the
        # latter.
        assert sum(counts) == 6

    def test_every_view_has_its_own_regions(self, regional: SquareExtractor) -> None:
        boxes = np.array([(0, 0, 1, 1), (0, 0, 0.5, 0.5)], np.float32)
        values = regional.extract(frames_of(photograph("chelsea")), boxes=boxes).values[0]
        assert values.shape == (2, 10, 128)
        # The first region of the whole frame is the second view.
        np.testing.assert_allclose(values[0, 0], values[1, 9], atol=1e-5)

    def test_number_of_regions_changes_the_fingerprint(self, regional: SquareExtractor) -> None:
        others = [open_square_extractor(name) for name in ("squares", "squares?regions=1")]
        assert regional.fingerprint not in {other.fingerprint for other in others}
        assert others[0].fingerprint == others[1].fingerprint
        with pytest.raises(InvalidArgumentError, match="regions must be 1 or 10, got 9"):
            open_square_extractor("squares?regions=9")


def test_names_and_weight_files_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match="takes no model, got 'squares:x'"):
        open_square_extractor("squares:x")
    with pytest.raises(InvalidArgumentError, match="takes no whitening, got 'w'"):
        open_square_extractor("squares", whitening="w")
    with pytest.raises(InvalidArgumentError, match="must be the weights of a frame encoder"):
        open_square_extractor("squares", weights=tmp_path / "none.safetensors")
    small = FrameEncoder(FrameEncoderSettings(widths=(4, 8), strides=(2,), dimension=16, side=32))
    path = tmp_path / "small.safetensors"
    metadata = {"settings": json.dumps(small.settings.to_table())}
    save_file(small.state_dict(), path, metadata=metadata)
    assert load_frame_encoder(path).settings == small.settings
    opened = open_square_extractor("squares", weights=path)
    assert opened.extract(frames_of(photograph("coffee"))).values.shape == (1, 1, 1, 16)
    assert opened.fingerprint != open_square_extractor("squares").fingerprint
    state = small.state_dict()
    state["head.bias"] = torch.full_like(state["head.bias"], float("nan"))
    save_file(state, path, metadata=metadata)
    with pytest.raises(InvalidArgumentError, match="must contain finite weights, got NaN or infinity"):
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

    def test_missing_folder_is_named_in_the_error(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"own.safetensors: .*; choose a file in a folder"):
            save_frame_encoder(load_frame_encoder(), tmp_path / "missing" / "own.safetensors")


def test_shipped_weights_are_small_and_document_their_origin() -> None:
    folder = Path(str(files("vidkin.features"))) / "data"
    weights = (folder / "squares.safetensors").read_bytes()
    told = json.loads((folder / "squares.json").read_text(encoding="utf-8"))
    assert len(weights) <= 4_000_000
    assert told["sha256"] == hashlib.sha256(weights).hexdigest()
    assert told["pictures"] == sum(told["data"].values())
    assert {"licenses", "versions", "made_by"} <= set(told)


class TestWithoutTorch:
    def test_shipped_onnx_file_equals_the_shipped_weights(self) -> None:
        """The ONNX file returns the embeddings of the network with the weights next to it, and stores its digest."""
        network, encoder = load_frame_encoder(), shipped_encoder()
        squares = np.random.default_rng(0).integers(0, 256, (70, 3, 64, 64), np.uint8)
        with torch.inference_mode():
            expected = network(torch.from_numpy(squares) / 255).numpy()
        np.testing.assert_allclose(encoder.encode(squares), expected, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(squares.transpose(0, 2, 3, 1)), expected, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(squares.astype(np.float32)), expected, atol=1e-5)
        weights = Path(str(files("vidkin.features"))) / "data" / "squares.safetensors"
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
        # If the ONNX file is older than the weights, torch is used.
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

    def test_onnx_file_not_written_by_vidkin_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="must be a frame encoder written by vidkin"):
            open_square_encoder(mean_colors(tmp_path / "colors.onnx"))
