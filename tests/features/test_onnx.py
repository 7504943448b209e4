"""ONNX files as extractors: every setting, on networks whose output is easy to compute by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.features.onnx_files import mean_colors, require_onnx, write_onnx
from vidkin.errors import ExtractorError, InvalidArgumentError, UnknownExtractorError
from vidkin.features import OnnxExtractor, Whitening, absolute_name, open_extractor
from vidkin.media import Frames

GRAY_LEVELS = (255, 51, 0)  # 1, .2 and 0 of full scale


@pytest.fixture(autouse=True)
def _needs_onnx() -> None:
    require_onnx()


def make_images(count: int = 2, height: int = 40, width: int = 60) -> NDArray[np.uint8]:
    return np.broadcast_to(np.array(GRAY_LEVELS, dtype=np.uint8), (count, height, width, 3)).copy()


def frames(images: NDArray[np.uint8]) -> Frames:
    return Frames(images, np.arange(float(len(images))))


def open_onnx(path: Path, settings: str = "") -> OnnxExtractor:
    extractor = open_extractor(f"onnx:{path}{'?' if settings else ''}{settings}", device="cpu")
    assert isinstance(extractor, OnnxExtractor)
    return extractor


def unit(*values: float) -> NDArray[np.float64]:
    return np.array(values) / np.linalg.norm(values)


def assert_close(actual: NDArray[np.floating], expected: object, atol: float = 1e-5) -> None:
    np.testing.assert_allclose(actual, np.asarray(expected), atol=atol, rtol=0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", (1, 0.2, 0)),
        ("mean=.5", (0.5, -0.3, -0.5)),
        ("mean=.5,.2,0&std=.5,1,.25", (1, 0, 0)),
        ("range=255&mean=55,51,100", (200, 0, -100)),
        ("range=2&mean=1", (1, -0.6, -1)),
        ("color=bgr", (0, 0.2, 1)),
        # The means are in the channel order of the network, blue first.
        ("color=bgr&mean=0,.2,.5", (0, 0, 0.5)),
    ],
)
def test_range_mean_std_and_color_are_applied(settings: str, expected: tuple[float, ...], tmp_path: Path) -> None:
    extractor = open_onnx(mean_colors(tmp_path / "colors.onnx"), settings)
    features = extractor.extract(frames(make_images()))
    assert features.values.shape == (2, 1, 1, 3)
    assert_close(features.whole[1, 0], unit(*expected), atol=1e-6)
    assert (features.fingerprint, extractor.short_side) == (extractor.fingerprint, 32)
    assert (extractor.scorer, extractor.describes_boxes) == ("copies", True)


def test_channels_last_and_integer_inputs_are_supported(tmp_path: Path) -> None:
    mean = ("ReduceMean", "numbers", "colors", {"axes": [1, 2], "keepdims": 0})
    path = write_onnx(
        tmp_path / "last.onnx",
        [("Cast", "images", "numbers", {"to": 1}), mean],
        (None, None, None, 3),
        type="UINT8",
    )
    extractor = open_onnx(path, "size=16")
    assert_close(extractor.extract(frames(make_images())).whole[0, 0], unit(255, 51, 0))
    assert extractor.prepare(make_images(1)).reshape(-1, 3)[0].tolist() == list(GRAY_LEVELS)
    with pytest.raises(InvalidArgumentError, match="so range, mean and std must be left out"):
        open_onnx(path, "size=16&mean=.5")


def test_map_output_is_pooled_to_nine_regions_or_their_mean(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "map.onnx", [("Relu", "images", "map", {})], (1, 3, 33, 33))
    # The image is red on the left and green on the right.
    image = np.zeros((1, 33, 33, 3), dtype=np.uint8)
    image[:, :, :11, 0] = 255
    image[:, :, 22:, 1] = 255
    regions = open_onnx(path, "bars=keep").extract(frames(image)).whole[0]
    assert regions.shape == (9, 3)
    assert regions[[0, 3, 6]].tolist() == [[1, 0, 0]] * 3
    assert regions[[2, 5, 8]].tolist() == [[0, 1, 0]] * 3
    mean = open_onnx(path, "bars=keep&pool=mean").extract(frames(image)).whole[0]
    assert_close(mean, unit(1, 1, 0)[None])
    last = write_onnx(tmp_path / "last.onnx", [("Relu", "images", "map", {})], (1, 33, 33, 3))
    assert_close(open_onnx(last, "bars=keep").extract(frames(image)).whole[0], regions)


def test_tokens_are_pooled_as_configured(tmp_path: Path) -> None:
    # Reshapes [B, 3, 16, 16] to [B, 3, 256]: three tokens, one per channel.
    shape = {"shape": np.array([0, 3, 256])}
    path = write_onnx(
        tmp_path / "tokens.onnx",
        [("Reshape", "images shape", "tokens", {})],
        ("batch", 3, 16, 16),
        constants=shape,
    )
    with pytest.raises(InvalidArgumentError, match=r"tokens has 3 vectors for each image; add pool=first \(class"):
        open_onnx(path)
    image = np.zeros((1, 16, 16, 3), dtype=np.uint8)
    image[0, 0, 0, 0] = image[0, 0, 1, 1] = 255
    first = open_onnx(path, "pool=first&bars=keep").extract(frames(image)).whole[0, 0]
    assert np.flatnonzero(first).tolist() == [0]
    mean = open_onnx(path, "pool=mean&bars=keep").extract(frames(image)).whole[0, 0]
    assert np.flatnonzero(mean).tolist() == [0, 1]
    with pytest.raises(InvalidArgumentError, match="pool must be first or mean for the output tokens of shape"):
        open_onnx(path, "pool=regions")


def test_fit_modes_produce_the_expected_squares(tmp_path: Path) -> None:
    path = mean_colors(tmp_path / "colors.onnx")
    image = np.zeros((1, 40, 80, 3), dtype=np.uint8)
    image[:, :, 20:60] = 255
    assert open_onnx(path, "bars=keep").prepare(image)[0, 16, :, 0].mean() == pytest.approx(0.5, abs=0.02)
    assert open_onnx(path, "fit=crop").prepare(image).min() == 1
    letterbox = open_onnx(path, "fit=letterbox").prepare(image)[0, :, 16, 0]
    assert letterbox.tolist() == [0] * 8 + [1] * 16 + [0] * 8
    # By default the black bars are cropped.
    noisy = image.copy()
    noisy[:, :, 20:60] = np.random.default_rng(0).integers(100, 256, (40, 40, 3))
    assert open_onnx(path).prepare(noisy).min() > 0.3
    assert open_onnx(path, "bars=keep").prepare(noisy).min() == 0


def test_features_do_not_depend_on_batch_size_and_views_are_described(tmp_path: Path) -> None:
    extractor = open_onnx(mean_colors(tmp_path / "colors.onnx"), "scorer=kinds")
    assert (extractor.describes_boxes, extractor.scorer) == (False, "kinds")
    images = np.random.default_rng(1).integers(0, 256, (7, 40, 60, 3), dtype=np.uint8)
    whole = extractor.extract(frames(images))
    parts = [extractor.extract(frames(images)[first : first + 3]).values for first in (0, 3, 6)]
    np.testing.assert_array_equal(np.concatenate(parts), whole.values)
    assert extractor.extract(frames(images[:0])).values.shape == (0, 1, 1, 3)
    boxes = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1.0]], np.float32)
    seen = extractor.extract(frames(images), boxes=boxes)
    left = open_onnx(tmp_path / "colors.onnx").describe(np.ascontiguousarray(images[:, :, :30]))
    assert_close(seen.values[:, 1], left)


def test_fingerprint_depends_on_file_and_settings(tmp_path: Path) -> None:
    path = mean_colors(tmp_path / "colors.onnx")
    moved = tmp_path / "elsewhere.onnx"
    moved.write_bytes(path.read_bytes())
    other = mean_colors(tmp_path / "other.onnx", ("batch", 3, 64, 64))
    plain = open_onnx(path).fingerprint
    assert open_onnx(moved).fingerprint == open_onnx(path, "mean=0&layout=nchw").fingerprint == plain
    changed = {open_onnx(path, setting).fingerprint for setting in ("mean=.5", "color=bgr", "fit=crop", "scorer=kinds")}
    assert len({plain, open_onnx(other).fingerprint, *changed}) == 6


def test_whitening_is_applied_and_must_match_the_dimension(tmp_path: Path) -> None:
    path = mean_colors(tmp_path / "colors.onnx")
    rows = np.random.default_rng(0).normal(size=(50, 3))
    whitening = Whitening.fit([rows], dimension=2)
    whitening.save(tmp_path / "w.safetensors")
    extractor = open_extractor(f"onnx:{path}", whitening=tmp_path / "w.safetensors", device="cpu")
    expected = whitening.apply(open_onnx(path).describe(make_images()))
    assert_close(extractor.extract(frames(make_images())).whole, expected)
    Whitening.fit([np.random.default_rng(0).normal(size=(50, 4))], dimension=2).save(tmp_path / "four.safetensors")
    with pytest.raises(InvalidArgumentError, match=r"for descriptors of length 4, but onnx:.* has 3; fit one to its"):
        open_extractor(f"onnx:{path}", whitening=tmp_path / "four.safetensors")


def test_non_finite_outputs_are_refused_or_treated_as_empty(tmp_path: Path) -> None:
    mean = ("ReduceMean", "logs", "means", {"axes": [2, 3], "keepdims": 0})
    shape = ("batch", 3, 32, 32)
    path = write_onnx(tmp_path / "log.onnx", [("Log", "images", "logs", {}), mean], shape)
    black = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    lengths = np.linalg.norm(open_onnx(path).describe(np.concatenate([black, black + 1])), axis=-1)
    assert_close(lengths, [[0.0], [1.0]])
    steps = [("Neg", "images", "negative", {}), ("Log", "negative", "logs", {}), mean]
    with pytest.raises(ExtractorError, match="the output means is not finite for an image of noise; choose another"):
        open_onnx(write_onnx(path, steps, shape))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "scale=2",
            "onnx: has no setting 'scale'; choose from size, fit, bars, range, mean, std, color, layout",
        ),
        ("color=gray", "color must be rgb or bgr, got 'gray'"),
        ("fit=whole", "fit must be letterbox or crop or stretch, got 'whole'"),
        ("size=8", "size must be a whole number of pixels from 16 to 4096, got '8'"),
        ("range=0", "range must be a number above 0, such as 1 or 255, got '0'"),
        ("range=white", "range must be a number above 0, such as 1 or 255, got 'white'"),
        ("std=0", "std must be one number or three, separated by commas and positive, got '0'"),
        ("views=both", "onnx: has no setting 'views'"),
        ("pool=mean", "pool must be left out for the output colors of shape \\[3\\], got 'mean'"),
        ("mean", "settings must have the form name=value&name=value, got 'mean'"),
    ],
)
def test_error_names_the_invalid_onnx_setting(settings: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        open_onnx(mean_colors(tmp_path / "colors.onnx"), settings)


def test_onnx_names_are_parsed_by_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mean_colors(tmp_path / "colors.onnx")
    assert absolute_name("onnx:colors.onnx?mean=.5") == f"onnx:{tmp_path / 'colors.onnx'}?mean=.5"
    assert open_onnx(Path("colors.onnx")).fingerprint == open_onnx(tmp_path / "colors.onnx").fingerprint
    with pytest.raises(UnknownExtractorError, match=r"no such ONNX file; check the path"):
        open_extractor("onnx:nothing.onnx")
    with pytest.raises(UnknownExtractorError, match=r"the name must be onnx:<file>, got 'onnx'"):
        open_extractor("onnx")
    with pytest.raises(InvalidArgumentError, match=r"an ONNX file contains its weights, got 'w'"):
        open_extractor("onnx:colors.onnx", weights="w")
