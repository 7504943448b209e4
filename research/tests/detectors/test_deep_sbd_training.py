"""Training segments of DeepSBD: hand-computed classes, and a network that learns them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.detections import cut_video
from vidkin.errors import InvalidArgumentError
from vidkin.models import DeepSBDNetwork, EncoderConfig, build_model
from vidkin_research.detectors.deep_sbd_train import fit_svm
from vidkin_research.detectors.deep_sbd_training import LabeledFrames, segment_class, train_on_segments
from vidkin_research.learned.video_frames import read_video_frames

CONFIG = EncoderConfig(kind="deep_sbd", width=0.1, size=16, frames=16, classes=3, batch_norm=True, fit="stretch")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """A second thread only slows down steps of this size."""
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (84, 0),  # 84 ... 99: before the cut at 100
        (85, 2),  # 85 ... 100: one frame of the new shot
        (99, 2),
        (100, 0),  # only the new shot
        (187, 0),  # 187 ... 202 has three frames of 200 ... 210
        (188, 1),
        (207, 1),
        (208, 0),
        (290, 1),  # contains an entire transition of two frames, 300 and 301
        (285, 0),
    ],
)
def test_segments_have_the_expected_classes(first: int, expected: int) -> None:
    assert segment_class(first, 16, [100], [(200, 210), (300, 301)]) == expected


def film(seed: int) -> LabeledFrames:
    """Uniform colors: 40 frames, a cut, 40 frames, a dissolve of 10, 40 frames."""
    random = np.random.default_rng(seed)
    colors = np.array([[230, 40, 40], [40, 220, 60], [50, 40, 225]])[random.permutation(3)]
    share = (np.arange(1, 11) / 11)[:, None]
    rows = [
        np.repeat(colors[:1], 40, 0),
        np.repeat(colors[1:2], 40, 0),
        (1 - share) * colors[1] + share * colors[2],
        np.repeat(colors[2:], 40, 0),
    ]
    values = np.concatenate(rows)[:, None, None] + random.normal(size=(130, 16, 16, 3)) * 2
    return LabeledFrames(values.clip(0, 255).astype(np.uint8), (40,), ((80, 89),))


def network(seed: int = 0) -> DeepSBDNetwork:
    model = build_model(CONFIG, seed=seed)
    assert isinstance(model, DeepSBDNetwork)
    return model


@pytest.mark.large
def test_small_network_learns_the_classes() -> None:
    model = network()
    seen: list[int] = []
    report = train_on_segments(
        model,
        [film(seed) for seed in range(12)],
        steps=60,
        batch=18,
        learning_rate=1e-3,
        on_progress=lambda step, loss: seen.append(step),
    )
    assert seen == list(range(1, 61))
    assert report.right > 0.6
    assert np.mean(report.losses[-6:]) < 0.5 * np.mean(report.losses[:6])
    assert model.class_names == ("none", "gradual", "sharp")
    assert not model.training


def test_same_seed_gives_the_same_weights() -> None:
    models = [network(), network()]
    for model in models:
        train_on_segments(model, [film(1), film(2)], steps=2, batch=4, seed=5)
    assert torch.equal(models[0].classifier.weight, models[1].classifier.weight)


def test_labels_need_no_gradual_transitions() -> None:
    hard = LabeledFrames(film(1).images[:80], (40,))
    assert train_on_segments(network(), [hard], steps=2, batch=4).losses[1] > 0


def test_frames_can_be_decoded_on_the_fly(tmp_path: Path) -> None:
    path = cut_video(tmp_path / "film.mp4")
    kept, lazy = (read_video_frames(path, size=16, most_bytes=most)[0] for most in (None, 0))
    models = [network(), network()]
    for model, frames in zip(models, (kept, lazy), strict=True):
        train_on_segments(model, [LabeledFrames(frames, (20, 45))], steps=2, batch=4, seed=5)
    assert torch.equal(models[0].classifier.weight, models[1].classifier.weight)


def test_linear_svm_replaces_the_classifier() -> None:
    model = network()
    films = [film(seed) for seed in range(6)]
    train_on_segments(model, films, steps=40, batch=18)
    before = model.classifier.weight.clone()
    hidden = model.fully_connected.state_dict()["0.weight"].clone()
    right = fit_svm(model, films, segments=40)
    assert right > 0.8
    assert not torch.equal(model.classifier.weight, before)
    assert torch.equal(model.fully_connected.state_dict()["0.weight"], hidden)
    # A segment across the cut of a video that was not used for fitting.
    other = film(77)
    segments = torch.from_numpy(np.stack([other.images[first : first + 16] for first in (0, 33)]))
    with torch.no_grad():
        classes = model(segments.permute(0, 4, 1, 2, 3).float() / 255).argmax(dim=1)
    assert classes.tolist() == [0, 2]


def test_svm_of_two_classes_never_predicts_the_third() -> None:
    model = network()
    films = [LabeledFrames(film(seed).images[:80], (40,)) for seed in range(4)]
    train_on_segments(model, films, steps=20, batch=12)
    assert fit_svm(model, films, segments=40) > 0.8
    assert float(model.classifier.bias.detach()[1]) < -100


def test_invalid_arguments_are_rejected_with_the_accepted_values() -> None:
    video = film(0)
    calm = LabeledFrames(video.images[:40], ())
    with pytest.raises(
        InvalidArgumentError, match="both with and without a cut, got 25 none, 0 gradual, 0 sharp; add videos"
    ):
        train_on_segments(network(), [calm])
    wide = LabeledFrames(np.zeros((30, 16, 20, 3), dtype=np.uint8), ())
    with pytest.raises(
        InvalidArgumentError, match=r"images of video 0 must be \[T, 16, 16, 3\], got \[30, 16, 20, 3\]"
    ):
        train_on_segments(network(), [wide])
