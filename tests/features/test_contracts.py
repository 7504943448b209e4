"""Properties that every extractor of the package must have: attributes, independence of batches, views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.comparators import passing
from tests.support.videos import pan
from vidkin.features import ClipExtractor, FrameExtractor, open_extractor
from vidkin.match import available_scorers, scorer_of
from vidkin.media import Frames
from vidkin.models import ComparatorConfig, EncoderConfig, build_model, save_comparator, save_model
from vidkin.similarity import WHOLE, FrameFeatures


def save_encoder(folder: Path, kind: str, **settings: object) -> str:
    torch.manual_seed(0)
    config = EncoderConfig(kind=kind, backbone="small", size=32, width=0.25, **settings)  # type: ignore[arg-type]
    save_model(build_model(config), folder)
    return str(folder)


def save_small_comparator(folder: Path) -> str:
    # Without `unrelated`, opening the comparator would score unrelated pairs, which takes seconds.
    save_comparator(passing(ComparatorConfig(unrelated=(0.0, 0.2))), folder)
    return str(folder)


NAMES: dict[str, Callable[[Path], str]] = {
    "vidkin": lambda folder: "vidkin",
    "squares": lambda folder: "squares",
    "regions of squares": lambda folder: "squares?regions=10",
    "classical": lambda folder: "classical",
    "classical feature": lambda folder: "classical:color",
    "images": lambda folder: save_encoder(folder, "image", hidden=8),
    "clips": lambda folder: save_encoder(folder, "clip", frames=4, lstm=8),
    "comparator": save_small_comparator,
}


@pytest.fixture(scope="module")
def frames() -> Frames:
    """Five letterboxed frames of a photograph, and a black one."""
    images = np.zeros((6, 72, 96, 3), np.uint8)
    images[:5, 9:63] = np.stack(list(pan("coffee", 5, width=96, height=54)))
    return Frames(images, np.arange(6) / 2)


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return NAMES[request.param](tmp_path_factory.mktemp("extractor") / "model")


@pytest.fixture(scope="module")
def extractor(name: str) -> FrameExtractor:
    torch.set_num_threads(1)
    return open_extractor(name)


def part_of(frames: Frames, rows: list[int]) -> Frames:
    return Frames(frames.images[rows], frames.timestamps[rows])


def test_extractor_declares_its_properties(extractor: FrameExtractor, name: str) -> None:
    assert extractor.name == name
    assert extractor.fingerprint
    assert 16 <= extractor.short_side <= 512
    assert isinstance(extractor.describes_boxes, bool)
    scorer = scorer_of(extractor)
    assert extractor.scorer.partition("?")[0] in available_scorers()
    assert isinstance(scorer.needs_background, bool)
    assert isinstance(scorer.has_segments, bool)
    # Scorers of copies and kinds match by name; a comparator's scorer is named after its model.
    assert extractor.scorer == "learned" or extractor.scorer.startswith(scorer.name.partition("?")[0])


def test_fingerprint_depends_on_weights_and_settings(extractor: FrameExtractor, name: str) -> None:
    assert open_extractor(name).fingerprint == extractor.fingerprint


def test_features_are_unit_vectors_with_the_times_of_the_frames(extractor: FrameExtractor, frames: Frames) -> None:
    features = extractor.extract(frames)
    assert isinstance(features, FrameFeatures)
    assert features.fingerprint == extractor.fingerprint
    assert features.values.shape[:2] == (6, 1)
    assert features.timestamps.tolist() == frames.timestamps.tolist()
    assert features.information.shape == (6,)
    assert features.information.min() >= 0
    assert features.information.max() <= 1
    lengths = np.linalg.norm(features.values.astype(np.float32), axis=-1)
    content = features.information[:, None, None] > 0.01
    assert ((np.abs(lengths - 1) < 1e-3) | (lengths < 1e-6))[np.broadcast_to(content, lengths.shape)].all()
    # The black frame has less information than the others.
    assert features.information[5] < features.information[:5].min()


def test_features_do_not_depend_on_the_batch(extractor: FrameExtractor, frames: Frames) -> None:
    if isinstance(extractor, ClipExtractor):
        pytest.skip("a clip consists of the frames around it")
    whole = extractor.extract(frames)
    for rows in ([3], [1, 5]):
        some = extractor.extract(part_of(frames, rows))
        assert np.allclose(some.values, whole.values[rows], atol=1e-5)
        assert np.array_equal(some.information, whole.information[rows])


def test_first_view_is_the_whole_frame(extractor: FrameExtractor, frames: Frames) -> None:
    boxes = np.array([WHOLE, (0.0, 0.0, 0.5, 1.0)], dtype=np.float32)
    plain, seen = extractor.extract(frames), extractor.extract(frames, boxes=boxes)
    assert np.allclose(seen.whole[:5], plain.whole[:5], atol=1e-5)
    if extractor.describes_boxes:
        assert seen.boxes is not None
        # Boxes are fractions of the frame including its bars.
        assert seen.boxes.tolist() == [boxes.tolist()] * 6
        assert seen.thumbnails is not None
        assert seen.thumbnails.shape == (6, 2, 8, 8)


def test_empty_frames_have_empty_features(extractor: FrameExtractor, frames: Frames) -> None:
    if isinstance(extractor, ClipExtractor):
        pytest.skip("a clip has at least one frame")
    features = extractor.extract(part_of(frames, []))
    assert (len(features), features.values.ndim) == (0, 4)
