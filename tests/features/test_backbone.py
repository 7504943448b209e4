"""Networks as extractors: small ones with random weights, and a real one on real photographs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from tests.support.videos import pan, photograph
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import (
    BackboneExtractor,
    Whitening,
    fit_whitening,
    import_timm,
    open_extractor,
    region_max_pool,
)
from vidkin.media import Frames


def some_frames(count: int = 6, name: str = "coffee", **size: int) -> Frames:
    return Frames(np.stack(list(pan(name, count, **size))), np.arange(float(count)))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File with seeded random weights of a tiny network."""
    path = tmp_path_factory.mktemp("weights") / "test_resnet.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        save_file(import_timm().create_model("test_resnet").state_dict(), path)
    return path


def open_backbone(weights: Path, settings: str = "", **arguments: Any) -> BackboneExtractor:
    name = "timm:test_resnet" + (f"?{settings}" if settings else "")
    extractor = open_extractor(name, weights=weights, device="cpu", **arguments)
    assert isinstance(extractor, BackboneExtractor)
    return extractor


def test_pooled_network_describes_the_frame_as_one_region(weights: Path) -> None:
    extractor = open_backbone(weights, "stages=pooled")
    frames = some_frames(2, width=160, height=160)
    features = extractor.extract(frames)
    assert features.whole.shape == (2, 1, 96)
    with torch.no_grad():
        maps = extractor.network.forward_features(extractor.prepare(frames.images))  # type: ignore[operator]
    expected = torch.nn.functional.normalize(maps.mean((2, 3)), dim=1)
    torch.testing.assert_close(torch.from_numpy(features.whole[:, 0]), expected, atol=1e-5, rtol=1e-4)
    with pytest.raises(InvalidArgumentError, match="whole_frame must be 0 with stages=pooled"):
        open_backbone(weights, "stages=pooled&whole_frame=1")


def test_descriptors_are_pooled_maps_of_the_prepared_image(weights: Path) -> None:
    extractor = open_backbone(weights)
    frames = some_frames(2, width=160, height=160)
    features = extractor.extract(frames)
    assert extractor.channels == (32, 48, 192, 96)
    assert features.whole.shape == (2, 9, 368)
    assert features.timestamps.tolist() == [0, 1]
    assert features.information.tolist() == [1, 1]
    # Preprocessing by hand: an image of the right size is only scaled.
    images = torch.from_numpy(frames.images).permute(0, 3, 1, 2) / 127.5 - 1
    torch.testing.assert_close(extractor.prepare(frames.images), images)
    with torch.no_grad():
        maps = extractor.network.forward_intermediates(images, indices=4, intermediates_only=True)  # type: ignore[operator]
    np.testing.assert_allclose(features.whole, region_max_pool(maps).numpy(), atol=1e-5, rtol=0)


def test_batch_size_does_not_change_features(weights: Path) -> None:
    extractor = open_backbone(weights)
    frames = some_frames(7)
    whole = extractor.extract(frames)
    for size in (1, 3, 5):
        parts = [extractor.extract(frames[first : first + size]) for first in range(0, 7, size)]
        np.testing.assert_array_equal(np.concatenate([part.whole for part in parts]), whole.whole)
        np.testing.assert_array_equal(np.concatenate([part.information for part in parts]), whole.information)
    np.testing.assert_array_equal(extractor.extract(frames).whole, whole.whole)
    empty = extractor.extract(frames[:0])
    assert empty.whole.shape == (0, 9, 368)


def test_black_bars_are_cropped_unless_kept(weights: Path) -> None:
    frames = some_frames(2)
    boxed = Frames(np.pad(frames.images, ((0, 0), (24, 24), (0, 0), (0, 0))), frames.timestamps)
    trimming = open_backbone(weights)
    np.testing.assert_allclose(trimming.extract(boxed).whole, trimming.extract(frames).whole, atol=1e-5)
    keeping = open_backbone(weights, "bars=keep")
    assert not np.allclose(keeping.extract(boxed).whole, keeping.extract(frames).whole, atol=1e-3)
    np.testing.assert_allclose(keeping.extract(frames).whole, trimming.extract(frames).whole, atol=1e-5)


def corner(column: int) -> NDArray[np.uint8]:
    """A black frame of 224 x 448 pixels with one white column."""
    image = np.zeros((1, 224, 448, 3), dtype=np.uint8)
    image[:, :, column : column + 4] = 255
    return image


def test_whole_sees_content_that_crop_hides(weights: Path) -> None:
    whole, crop = open_backbone(weights, "bars=keep"), open_backbone(weights, "fit=crop")
    # With crop, the short side becomes 183 and the width 366; the center 160 show columns 126 to 322 of the frame.
    for column, seen in ((20, False), (100, False), (224, True), (300, True), (400, False)):
        assert bool((crop.prepare(corner(column)) > -1).any()) is seen
        assert bool((whole.prepare(corner(column)) > -1).any())
    assert (whole.short_side, crop.short_side) == (160, 183)
    assert crop.prepare(corner(0)).shape == (1, 3, 160, 160)


def test_compatible_preprocessing_matches_the_published_features(tmp_path: Path) -> None:
    # Short side 256, center crop 224, /255, ImageNet mean and standard deviation. A frame with side 256 is not resized.
    path = tmp_path / "w.safetensors"
    save_file(import_timm().create_model("test_efficientnet").state_dict(), path)
    extractor = BackboneExtractor("timm:test_efficientnet?fit=crop&size=224", weights=path, device="cpu")
    image = photograph("astronaut")[:256, :400]
    expected = torch.from_numpy(image[16:240, 88:312]).permute(2, 0, 1) / 255
    expected = (expected - torch.tensor([0.485, 0.456, 0.406])[:, None, None]) / torch.tensor([0.229, 0.224, 0.225])[
        :, None, None
    ]
    assert extractor.short_side == 256
    torch.testing.assert_close(extractor.prepare(image[None])[0], expected)


def test_input_settings_are_applied(weights: Path, tmp_path: Path) -> None:
    image = np.full((1, 40, 40, 3), 255, dtype=np.uint8)
    assert open_backbone(weights, "mean=0&std=1").prepare(image).unique().tolist() == [1]
    colored = open_backbone(weights, "mean=0,0.5,1&std=1,0.5,2").prepare(image)
    assert colored.amax(dim=(0, 2, 3)).tolist() == [1, 1, 0]
    assert open_backbone(weights, "size=96").prepare(image).shape == (1, 3, 96, 96)
    # A weights file may state its input normalization.
    with torch.random.fork_rng():
        state = import_timm().create_model("test_resnet").state_dict()
    path = tmp_path / "told.safetensors"
    save_file(state, path, {"mean": "0", "std": "0.25"})
    assert open_backbone(path).prepare(image).unique().tolist() == [4]
    assert open_backbone(path, "std=0.5").prepare(image).unique().tolist() == [2]


def test_whole_frame_and_stages_are_configurable(weights: Path) -> None:
    frames = some_frames(1)
    nine, ten = (
        open_backbone(weights).extract(frames).whole,
        open_backbone(weights, "whole_frame=1").extract(frames).whole,
    )
    assert ten.shape == (1, 10, 368)
    np.testing.assert_allclose(ten[:, :9], nine, atol=1e-6)
    assert open_backbone(weights, "stages=3,4").channels == (192, 96)


def test_fingerprint_covers_everything_that_changes_features(weights: Path, tmp_path: Path) -> None:
    extractor = open_backbone(weights)
    name, _, digest = extractor.fingerprint.rpartition("-")
    assert (name, len(digest)) == (extractor.name, 12)
    assert open_backbone(weights).fingerprint == extractor.fingerprint
    other = tmp_path / "other.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(4)
        save_file(import_timm().create_model("test_resnet").state_dict(), other)
    whitening = tmp_path / "whitening.safetensors"
    fit_whitening(extractor, [some_frames(6)], dimension=16).save(whitening)
    fingerprints = {
        extractor.fingerprint,
        open_backbone(other).fingerprint,
        open_backbone(weights, "size=96").fingerprint,
        open_backbone(weights, "bars=keep").fingerprint,
        open_backbone(weights, whitening=whitening).fingerprint,
    }
    assert len(fingerprints) == 5


def test_whitening_is_applied(weights: Path, tmp_path: Path) -> None:
    plain = open_backbone(weights)
    frames = some_frames(6)
    whitening = fit_whitening(plain, (frames[i : i + 2] for i in range(0, 6, 2)), dimension=16)
    path = tmp_path / "whitening.safetensors"
    whitening.save(path)
    values = open_backbone(weights, whitening=path).extract(frames).whole
    np.testing.assert_allclose(values, whitening.apply(plain.extract(frames).whole), atol=1e-5, rtol=0)
    np.testing.assert_allclose(np.linalg.norm(values, axis=-1), 1, rtol=1e-5)
    other = tmp_path / "other.safetensors"
    Whitening.fit([np.random.default_rng(0).normal(size=(50, 5))], dimension=2).save(other)
    with pytest.raises(InvalidArgumentError, match=r"for descriptors of length 5, but timm:test_resnet has 368"):
        open_backbone(weights, whitening=other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("size=big", "size must be a whole number of pixels from 32 to 4096, got 'big'"),
        ("size=8", "size must be a whole number of pixels from 32 to 4096, got '8'"),
        ("fit=stretch", "fit must be whole or crop, got 'stretch'"),
        ("bars=cut", "bars must be trim or keep, got 'cut'"),
        ("whole_frame=yes", "whole_frame must be 0 or 1, got 'yes'"),
        ("mean=1,2", "mean must be one number or three, separated by commas, got '1,2'"),
        ("std=0", "std must be one number or three, separated by commas and positive, got '0'"),
        ("mean=grey", "got 'grey'"),
        ("size", "settings must have the form name=value&name=value, got 'size'"),
        ("wings=2&flag=true&rate=0.5", r"the settings {'wings': 2, 'flag': True, 'rate': 0.5}"),
    ],
)
def test_invalid_settings_are_refused(weights: Path, settings: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        open_backbone(weights, settings)
    assert message in str(caught.value)


def test_settings_unsupported_by_torchvision_are_refused(weights: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="torchvision:resnet18 does not take pad_type; choose from size"):
        open_extractor("torchvision:resnet18?pad_type=same", weights=weights)


def test_unsupported_input_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    with torch.random.fork_rng():
        save_file(import_timm().create_model("test_vit").state_dict(), path)
    with pytest.raises(InvalidArgumentError, match=r"timm:test_vit\?size=100 does not take images of 100 x 100 pixels"):
        open_extractor("timm:test_vit?size=100", weights=path)


@pytest.mark.parametrize("name", ["timm", "timm:", "timm:?size=4", "torchvision"])
def test_network_name_is_required(name: str) -> None:
    with pytest.raises(
        UnknownExtractorError,
        match="a network's name must be timm:<model> or torchvision:<model>, got '",
    ):
        open_extractor(name)


def test_invalid_or_missing_devices_are_refused(weights: Path) -> None:
    for wrong in ("gpu", "meta"):
        with pytest.raises(InvalidArgumentError, match=f"must be auto, cpu, cuda or cuda:N, got '{wrong}'"):
            open_extractor("timm:test_resnet", weights=weights, device=wrong)
    frames = some_frames(1)
    if torch.cuda.is_available():
        here = open_extractor("timm:test_resnet", weights=weights, device="cuda").extract(frames).whole
        np.testing.assert_allclose(here, open_backbone(weights).extract(frames).whole, atol=1e-4, rtol=0)
    else:
        with pytest.raises(InvalidArgumentError, match="no CUDA device found for device 'cuda'; use cpu"):
            open_extractor("timm:test_resnet", weights=weights, device="cuda")
        automatic = open_extractor("timm:test_resnet", weights=weights).extract(frames).whole
        np.testing.assert_array_equal(automatic, open_backbone(weights).extract(frames).whole)


@pytest.fixture(scope="module")
def imagenet(shared_data: Path) -> BackboneExtractor:
    """MobileNetV2 with its real ImageNet weights."""
    name = "timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5"
    return BackboneExtractor(name, weights=shared_data / "weights" / "mobilenetv2_100.same.safetensors", device="cpu")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "classes"),
    [("chelsea", {281, 282, 285}), ("coffee", {504, 967, 968}), ("rocket", {657, 744})],
    ids=["cat", "cup of coffee", "rocket"],
)
def test_real_weights_recognize_photographs(imagenet: BackboneExtractor, name: str, classes: set[int]) -> None:
    with torch.no_grad():
        scores = imagenet.network(imagenet.prepare(photograph(name)[None]))
    assert int(scores.argmax()) in classes


@pytest.mark.data
def test_real_features_distinguish_copies_from_unrelated_images(imagenet: BackboneExtractor) -> None:
    assert imagenet.channels == (24, 32, 96, 320)
    names = ("coffee", "chelsea", "astronaut", "rocket")
    photographs = [photograph(name)[:300, :400] for name in names]
    originals = Frames(np.stack(photographs), np.arange(4.0))
    edited = Frames(
        np.stack([(image[8:-8, 12:-12] * 0.7 + 20).astype(np.uint8) for image in photographs]), np.arange(4.0)
    )
    first, second = imagenet.extract(originals).whole, imagenet.extract(edited).whole
    similarity = np.einsum("ard,brd->abr", first, second).mean(-1)
    same = similarity.diagonal()
    assert same.min() > 0.8
    assert same.min() > similarity[~np.eye(4, dtype=bool)].max() + 0.1
    assert np.linalg.norm(first, axis=-1).min() > 0.999
