"""The DeepSBD detector on real videos, with a rule-based network and with saved networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.detections import cut_video
from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.models import EncoderConfig, build_model, save_model
from vidkin.shots import available_detectors, detect, open_detector
from vidkin_research.detectors.deep_sbd_detector import DeepSbdBaseline


class ByDifference:
    """Sharp if two adjacent frames differ by more than 10 %, gradual if only the ends do."""

    def __init__(self) -> None:
        self.segments = 0

    def __call__(self, volumes: torch.Tensor) -> torch.Tensor:
        assert volumes.shape[1:] == (3, 16, 112, 112)
        assert float(volumes.max()) <= 1.0
        self.segments += len(volumes)
        steps = (volumes[:, :, 1:] - volumes[:, :, :-1]).abs().mean((1, 3, 4)).amax(1)
        whole = (volumes[:, :, -1] - volumes[:, :, 0]).abs().mean((1, 2, 3))
        sharp = steps > 0.1
        gradual = ~sharp & (whole > 0.1)
        return torch.stack([~sharp & ~gradual, gradual, sharp], dim=1).float() * 4


def test_hard_cuts_are_located_exactly(tmp_path: Path) -> None:
    network = ByDifference()
    detection = detect(cut_video(tmp_path / "film.mp4"), DeepSbdBaseline(network))
    assert [(cut.kind, cut.frame) for cut in detection.cuts] == [("hard", 20), ("hard", 45)]
    # 60 frames: segments start at 0, 8, ..., 48; the last one is padded from 60 to 63.
    assert network.segments == 7
    assert detection.curve is not None
    assert detection.curve.times.tolist() == pytest.approx([0.8, 1.6, 2.4, 3.2, 4.0, 4.8, 5.6])
    assert detection.cuts[0].confidence == pytest.approx(np.exp(4) / (np.exp(4) + 2))


def test_dissolve_is_reported_as_an_interval(tmp_path: Path) -> None:
    """The dissolve covers frames 32 to 48, of which the segments at 24, 32 and 40 contain a large part."""
    from skimage import transform

    first, last = (
        transform.resize(photograph(name), (128, 192), anti_aliasing=True) * 255 for name in ("coffee", "rocket")
    )
    weights = np.clip((np.arange(80) - 32) / 16, 0, 1)
    images = [((1 - weight) * first + weight * last).astype(np.uint8) for weight in weights]
    (cut,) = detect(encode(tmp_path / "film.mp4", images), DeepSbdBaseline(ByDifference())).cuts
    assert (cut.kind, cut.start_frame, cut.end_frame) == ("gradual", 24, 55)


def test_changes_back_to_the_same_colors_are_dropped(tmp_path: Path) -> None:
    """A flash of two frames at 28: the runs around it start and end with the same image."""
    images = [np.asarray(image) for image in pan("coffee", 1)] * 60
    images[28] = images[29] = np.full_like(images[0], 255)
    source = encode(tmp_path / "film.mp4", images)
    assert detect(source, DeepSbdBaseline(ByDifference())).cuts == ()
    kept = detect(source, DeepSbdBaseline(ByDifference(), similarity=1.0)).cuts
    assert [cut.frame for cut in kept] in ([28], [30])


@pytest.mark.parametrize("count", [1, 5, 16, 17])
def test_short_videos_have_no_cuts(tmp_path: Path, count: int) -> None:
    network = ByDifference()
    detection = detect(encode(tmp_path / "film.mp4", pan("coffee", count)), DeepSbdBaseline(network))
    assert detection.cuts == ()
    assert network.segments == (1 if count <= 16 else 2)
    assert DeepSbdBaseline(network).finish().cuts == ()


def config(**changes: object) -> EncoderConfig:
    settings = {
        "kind": "deep_sbd",
        "frames": 16,
        "size": 32,
        "width": 0.05,
        "classes": 3,
        "fit": "stretch",
        **changes,
    }
    return EncoderConfig(**settings)  # type: ignore[arg-type]


def test_saved_network_can_be_opened_by_its_folder(tmp_path: Path) -> None:
    network = build_model(config(), weights="random", seed=3)
    folder = save_model(network, tmp_path / "model", class_names=["none", "gradual", "sharp"])
    source = cut_video(tmp_path / "film.mp4")
    names = (f"deepsbd:{folder}", str(folder), f"{folder}?similarity=0.95")
    curves = [detect(source, name).curve for name in names]
    assert all(curve is not None and np.array_equal(curve.values, curves[0].values) for curve in curves)  # type: ignore[union-attr]
    # The same outputs for every segment.
    frames = torch.zeros(1, 3, 16, 32, 32)
    expected = float(1 - network.eval()(frames).detach().softmax(1)[0, 0])
    black = encode(tmp_path / "black.mp4", [np.zeros((64, 64, 3), np.uint8)] * 16)
    detection = detect(black, names[0])
    assert detection.curve is not None
    assert detection.curve.values.tolist() == pytest.approx([expected], abs=1e-6)
    assert detection.detector == names[0]
    assert "deepsbd:FOLDER" in available_detectors()


@pytest.mark.parametrize(
    ("changes", "names", "message"),
    [
        ({"frames": 8}, [], r"with 16 frames and 3 classes, got 'deep_sbd' with 8 frames and 3 classes"),
        ({"classes": 2}, [], r"with 16 frames and 3 classes, got 'deep_sbd' with 16 frames and 2 classes"),
        (
            {},
            ["none", "sharp", "gradual"],
            r"the classes must be none, gradual, sharp, in this order, got none, sharp, gradual",
        ),
    ],
)
def test_other_networks_are_rejected(
    tmp_path: Path, changes: dict[str, object], names: list[str], message: str
) -> None:
    folder = save_model(build_model(config(**changes), weights="random"), tmp_path / "model", class_names=names)
    with pytest.raises(InvalidArgumentError, match=message):
        open_detector(f"deepsbd:{folder}")


def test_folder_without_a_model_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnknownExtractorError, match="contains no model"):
        open_detector(f"deepsbd:{tmp_path}")
    for nothing in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(
            InvalidArgumentError,
            match=r"choose from .*deepsbd:FOLDER.*, or use the folder of a trained model",
        ):
            open_detector(str(nothing))


def test_similarity_is_between_0_and_1() -> None:
    with pytest.raises(InvalidArgumentError, match=r"similarity must be above 0 and at most 1, got 1\.5"):
        DeepSbdBaseline(ByDifference(), similarity=1.5)
