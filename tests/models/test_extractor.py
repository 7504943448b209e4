"""Trained models as extractors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from tests.models.conftest import small
from tests.support.videos import encode, pan
from vidkin.datasets import LabelledItem, read_item
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features import ClipExtractor, absolute_name, describe_file, open_extractor
from vidkin.media import Frames, probe, read_frames
from vidkin.models import ClipModelExtractor, ModelExtractor, encoder_input, save_model
from vidkin.similarity import FrameFeatures


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 3 s video with 10 frames per second that is not square."""
    return encode(tmp_path_factory.mktemp("video") / "coffee.mp4", pan("coffee", 30))


def item(path: Path) -> LabelledItem:
    return LabelledItem(path=path, category="a", subcategory="b", group="c")


def arrays(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Training inputs for images [T, S, S, 3]."""
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255).numpy()


def describe(path: Path, extractor: ClipModelExtractor, **stretch: float) -> FrameFeatures:
    assert isinstance(extractor, ClipExtractor)
    parts = describe_file(path, extractor, duration=probe(path).duration, rate=stretch.pop("rate", 2.0), **stretch)
    return FrameFeatures.concatenate(list(parts))


def clip_extractor(folder: Path, **settings: object) -> ClipModelExtractor:
    save_model(small("clip", **settings), folder)
    extractor = open_extractor(str(folder), device="cpu")
    assert isinstance(extractor, ClipModelExtractor)
    return extractor


def test_a_folder_can_be_opened_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_model(small("image"), tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    for name in (str(folder), "model", f"model:{folder}", "./model"):
        extractor = open_extractor(name)
        assert isinstance(extractor, ModelExtractor)
        assert extractor.name == name
        assert extractor.scorer == "kinds"
        assert absolute_name(name) == f"model:{folder}"
    assert absolute_name("classical") == "classical"
    with pytest.raises(
        UnknownExtractorError,
        match=r"'model2' is not an extractor; choose from classical, .*model:<folder>, onnx:<file>",
    ):
        open_extractor("model2")
    with pytest.raises(UnknownExtractorError, match=r"model2: contains no model, because config.toml cannot be read"):
        open_extractor("model:model2")


@pytest.mark.parametrize("option", ["weights", "whitening"])
def test_weights_whitening_and_settings_are_rejected(option: str, tmp_path: Path) -> None:
    folder = str(save_model(small("image"), tmp_path))
    with pytest.raises(InvalidArgumentError, match=f"a trained model accepts no {option}, got 'file'"):
        open_extractor(folder, **{option: "file"})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a trained model accepts no settings"):
        open_extractor(f"{folder}?size=3")


def test_the_fingerprint_depends_on_weights_but_not_on_the_folder(tmp_path: Path) -> None:
    first, second = (save_model(small("image"), tmp_path / name) for name in ("one", "other"))
    found = open_extractor(str(first)).fingerprint
    assert found == open_extractor(str(second)).fingerprint
    assert found.startswith("model-image-")
    save_model(small("image", hidden=25), second)
    assert found != open_extractor(str(second)).fingerprint


@pytest.mark.parametrize("kind", ["image", "deep_ranking"])
def test_images_are_prepared_like_labeled_images(kind: str, tmp_path: Path) -> None:
    model = small(kind)
    extractor = open_extractor(str(save_model(model, tmp_path / "model")), device="cpu")
    frames = Frames(np.stack(list(pan("coffee", 7))), np.arange(7.0))
    features = extractor.extract(frames)
    assert features.whole.shape == (7, 1, model.dimension)
    assert np.array_equal(features.timestamps, np.arange(7.0))
    path = tmp_path / "frame.png"
    Image.fromarray(frames.images[4]).save(path)
    picture = (
        torch.from_numpy(read_item(item(path), "image", size=model.config.size).copy()).permute(2, 0, 1).float() / 255
    )
    expected = model.embed(picture[None])[0].detach().numpy()
    np.testing.assert_allclose(features.whole[4, 0], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["image", "clip"])
def test_features_do_not_depend_on_batches(kind: str, tmp_path: Path) -> None:
    extractor = open_extractor(str(save_model(small(kind), tmp_path)), device="cpu")
    frames = Frames(np.stack(list(pan("coffee", 7))), np.arange(7.0))
    if kind == "image":
        whole = extractor.extract(frames).whole
        for size in (1, 3, 5):
            parts = [extractor.extract(frames[first : first + size]).whole for first in range(0, 7, size)]
            assert np.array_equal(np.concatenate(parts), whole)
    else:
        assert isinstance(extractor, ClipModelExtractor)
        plan = extractor.plan(7.0, rate=1.0)
        found = [
            np.concatenate(
                [
                    part.whole
                    for part in extractor.describe_clips(
                        (frames[first : first + size] for first in range(0, 7, size)), plan
                    )
                ]
            )
            for size in (1, 2, 7)
        ]
        assert np.array_equal(found[0], found[2])
        assert np.array_equal(found[1], found[2])


@pytest.mark.parametrize("fit", ["letterbox", "crop", "stretch"])
def test_clip_sampled_over_the_whole_video_equals_that_of_training(fit: str, video: Path, tmp_path: Path) -> None:
    extractor = clip_extractor(tmp_path, fit=fit)
    found = describe(video, extractor)
    assert found.whole.shape == (1, 1, 16)
    assert found.timestamps.tolist() == pytest.approx([1.5])
    pictures = read_item(item(video), "video", size=32, frames=6, fit=fit)  # type: ignore[arg-type]
    clip = arrays(pictures)
    expected = extractor.model.embed(clip[None])[0]
    np.testing.assert_allclose(found.whole[0, 0], expected, atol=1e-5, rtol=0)


def test_clips_at_a_fixed_rate_equal_those_of_training(video: Path, tmp_path: Path) -> None:
    extractor = clip_extractor(tmp_path, rate=5.0)
    found = describe(video, extractor, rate=1.0)
    # 15 frames at 5 per second in clips of 6: starting at 0 s, at 1 s, and the last six frames.
    assert found.timestamps.tolist() == pytest.approx([0.5, 1.5, 2.3])
    pictures = read_item(item(video), "video", size=32, rate=5.0)
    clip = arrays(pictures)
    assert len(clip) == 15
    expected = extractor.model.embed(np.stack([clip[:6], clip[5:11], clip[9:]]))
    np.testing.assert_allclose(found.whole[:, 0], expected, atol=1e-5, rtol=0)


def test_videos_are_split_into_clips_of_the_given_duration(video: Path, tmp_path: Path) -> None:
    found = describe(video, clip_extractor(tmp_path, seconds=1.0))
    assert found.timestamps.tolist() == pytest.approx([0.5, 1.5, 2.5])


def test_part_of_a_video_can_be_described(video: Path, tmp_path: Path) -> None:
    extractor = clip_extractor(tmp_path)
    found = describe(video, extractor, start=1.0, end=2.0)
    assert found.timestamps.tolist() == pytest.approx([1.5])
    frames = read_frames(video, rate=None, short_side=32)
    shown = [10, 12, 14, 15, 17, 19]  # frames at 10 fps nearest to 1 + (k + 0.5) / 6 s
    clip = encoder_input(frames.images[shown], extractor.model.config)
    np.testing.assert_allclose(found.whole[0, 0], extractor.model.embed(clip[None])[0], atol=1e-5, rtol=0)


def test_an_image_is_described_as_a_still_clip(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    Image.fromarray(next(pan("coffee", 1))).save(path)
    extractor = clip_extractor(tmp_path / "model")
    found = describe(path, extractor)
    pictures = read_item(item(path), "video", size=32, frames=6)
    assert (pictures == pictures[0]).all()
    clip = arrays(pictures)
    np.testing.assert_allclose(found.whole[0, 0], extractor.model.embed(clip[None])[0], atol=1e-5, rtol=0)
    assert describe(path, clip_extractor(tmp_path / "other", rate=5.0)).whole.shape == (1, 1, 16)


def test_the_frame_network_processes_each_frame_once(
    video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extractor = clip_extractor(tmp_path, rate=10.0)
    seen = []
    whole = extractor.model.frame_features

    def counted(frames: NDArray[np.float32]) -> NDArray[np.float32]:
        seen.append(int((frames.max(axis=(1, 2, 3)) > 0).sum()))  # without the padding of a chunk
        return whole(frames)

    monkeypatch.setattr(extractor.model, "frame_features", counted)
    found = describe(video, extractor, rate=10.0)
    assert len(found.whole) == 25  # windows of six frames at every one of 30 frames
    assert sum(seen) == 30


@pytest.mark.parametrize("kind", ["c3d", "deep_sbd"])
def test_3d_networks_describe_clips(kind: str, video: Path, tmp_path: Path) -> None:
    model = small(kind)
    extractor = open_extractor(str(save_model(model, tmp_path)), device="cpu")
    assert isinstance(extractor, ClipModelExtractor)
    found = describe(video, extractor)
    pictures = read_item(item(video), "video", size=32, frames=8)
    clip = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    expected = model.embed(clip[None])[0].detach().numpy()
    np.testing.assert_allclose(found.whole[0, 0], expected, atol=1e-5, rtol=0)


def test_single_frames_are_described_by_the_clip_around_them(video: Path, tmp_path: Path) -> None:
    extractor = clip_extractor(tmp_path)
    frames = read_frames(video, rate=5.0)
    features = extractor.extract(frames)
    assert features.whole.shape == (15, 1, 16)
    pictures = encoder_input(frames.images, extractor.model.config)
    clips = np.stack([pictures[0:6], pictures[4:10], pictures[9:15]])
    np.testing.assert_allclose(features.whole[[0, 7, 14], 0], extractor.model.embed(clips), atol=1e-5, rtol=0)


def test_uniform_frames_have_a_minimum_information(tmp_path: Path) -> None:
    extractor = open_extractor(str(save_model(small("image"), tmp_path)), device="cpu")
    black = Frames(np.zeros((1, 64, 64, 3), dtype=np.uint8), np.zeros(1))
    assert extractor.extract(black).information.tolist() == [0.0625]
