"""Items as model inputs: read once, cached, and skipped if broken."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.labelled import counting_clip, picture
from tests.support.training import write_pictures
from vidkin.datasets import LabelledSet, make_excerpts, make_split, middle_excerpt, open_labelled
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.models import Encoder, EncoderConfig, build_model
from vidkin.training import Inputs, prepare_inputs

CPU = torch.device("cpu")


def clip_model(**changes: object) -> Encoder:
    settings: dict[str, object] = {"frames": 4, "size": 16, "width": 0.34, "hidden": 8, "lstm": 8}
    return build_model(EncoderConfig.from_mapping({"trainable": "head", **settings, **changes}))


def image_model(**changes: object) -> Encoder:
    return clip_model(kind="image", **changes)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> LabelledSet:
    folder = tmp_path_factory.mktemp("videos")
    for category in ("a", "b"):
        for name in ("x", "y"):
            counting_clip(folder / category / name / "0.mp4", 20)
    return open_labelled(folder)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> LabelledSet:
    return open_labelled(write_pictures(tmp_path_factory.mktemp("pictures") / "p", each=2))


def test_images_have_values_from_0_to_1(pictures: LabelledSet) -> None:
    inputs = prepare_inputs(image_model(), pictures, features=False)
    taken, lengths = inputs.take(torch.tensor([3, 0]), device=CPU)
    assert taken.shape == (2, 3, 16, 16)
    assert lengths is None
    # The first image is the darkest blue, red 20, green 30, blue 110 of 255, with a brighter corner.
    assert taken[1].mean(dim=(1, 2))[2] > taken[1].mean(dim=(1, 2))[0]
    assert 0 <= float(taken.min()) < float(taken.max()) <= 1
    assert inputs.labels.tolist()[:4] == [[0, 0], [0, 0], [0, 1], [0, 1]]


def test_cached_features_give_the_same_embeddings(videos: LabelledSet) -> None:
    model = clip_model()
    cached = prepare_inputs(model, videos, features=True)
    plain = prepare_inputs(model, videos, features=False)
    assert cached.stored is not None
    assert cached.stored.shape == (4, 4, model.get_parameter("fully_connected.weight").shape[1])
    assert torch.allclose(cached.embed(model, device=CPU), plain.embed(model, device=CPU), atol=1e-6)
    assert model.training


def test_padding_of_short_clips_does_not_change_embeddings(tmp_path: Path) -> None:
    counting_clip(tmp_path / "a" / "x" / "long.mp4", 20)
    counting_clip(tmp_path / "a" / "x" / "short.mp4", 10)
    inputs = prepare_inputs(clip_model(rate=4.0, frames=8), open_labelled(tmp_path), features=False)
    assert inputs.lengths is not None
    assert inputs.lengths.tolist() == [8, 4]
    taken, lengths = inputs.take(torch.tensor([1]), device=CPU)
    assert taken.shape == (1, 8, 3, 16, 16)
    assert lengths is not None
    assert torch.equal(taken[0, 3], taken[0, 7])
    model = clip_model(rate=4.0, frames=8).eval()
    alone = model.embed(taken[:, :4])
    assert torch.allclose(inputs.embed(model, device=CPU)[1], alone[0], atol=1e-6)


def test_clips_with_a_duration_show_the_middle_of_the_video(videos: LabelledSet) -> None:
    whole = prepare_inputs(clip_model(frames=2), videos, features=False).stored
    middle = prepare_inputs(clip_model(frames=2, seconds=0.4), videos, features=False).stored
    assert whole is not None
    assert middle is not None
    # Frame k of the 20 has the gray level 20 + 10 k: the whole video gives frames 5 and 15, the middle 0.4 s frames 9
    # and 11.
    steps = [[round((float(frame[8, 8, 1]) - 20) / 10) for frame in clips[0]] for clips in (whole, middle)]
    assert steps[0] == [5, 15]
    assert steps[1] == [9, 11]


def test_image_encoders_get_the_middle_frame_of_a_video(videos: LabelledSet) -> None:
    inputs = prepare_inputs(image_model(), videos, features=False)
    assert inputs.stored is not None
    assert inputs.stored.shape == (4, 16, 16, 3)


class TestCache:
    @pytest.fixture
    def count(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
        """Return a function that returns the number of items read since its last call."""
        from vidkin.training import inputs as module

        reads: list[str] = []
        real = module.read_item

        def counted(item: object, *rest: object, **options: object) -> object:
            reads.append(str(item))
            return real(item, *rest, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(module, "read_item", counted)

        def since() -> int:
            found = len(reads)
            reads.clear()
            return found

        return since

    def test_is_used_for_the_same_backbone_and_items(
        self, pictures: LabelledSet, tmp_path: Path, count: Callable[[], int]
    ) -> None:
        told: list[tuple[int, int]] = []
        first = prepare_inputs(image_model(), pictures, features=True, cache=tmp_path)
        assert count() == 12
        # A model with another head uses the same features.
        again = prepare_inputs(
            image_model(hidden=16),
            pictures,
            features=True,
            cache=tmp_path,
            on_item=lambda done, total: told.append((done, total)),
        )
        assert count() == 0
        assert told == [(12, 12)]
        assert first.stored is not None
        assert again.stored is not None
        assert torch.equal(first.stored, again.stored)

    @pytest.mark.parametrize("what", ["weights", "size", "file", "fit"])
    def test_is_not_used_for_another_backbone_or_other_items(
        self, tmp_path: Path, count: Callable[[], int], what: str
    ) -> None:
        source = write_pictures(tmp_path / "p", each=1)
        cache = tmp_path / "cache"
        prepare_inputs(image_model(), open_labelled(source), features=True, cache=cache)
        count()
        model = image_model(**{"size": {"size": 24}, "fit": {"fit": "crop"}}.get(what, {}))
        if what == "weights":
            with torch.no_grad():
                next(model.get_submodule("backbone").parameters()).mul_(2)
        if what == "file":
            picture(source / "red" / "dark" / "0.png", (1, 2, 3))
        prepare_inputs(model, open_labelled(source), features=True, cache=cache)
        assert count() == 6

    def test_damaged_file_is_rebuilt(
        self,
        pictures: LabelledSet,
        tmp_path: Path,
        count: Callable[[], int],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        prepare_inputs(image_model(), pictures, features=True, cache=tmp_path)
        (path,) = tmp_path.iterdir()
        path.write_bytes(path.read_bytes()[:100])
        count()
        with caplog.at_level(logging.WARNING):
            prepare_inputs(image_model(), pictures, features=True, cache=tmp_path)
        assert count() == 12
        assert "is damaged; recomputing the features" in caplog.text

    def test_stores_broken_items(self, tmp_path: Path, count: Callable[[], int]) -> None:
        source = write_pictures(tmp_path / "p", each=2)
        (source / "blue" / "dark" / "0.png").write_bytes(b"no picture")
        labelled = open_labelled(source)
        found = [prepare_inputs(image_model(), labelled, features=True, cache=tmp_path / "c") for _ in range(2)]
        assert count() == 12
        for made in found:
            assert len(made) == 11
            assert [Path(error.path).name for error in made.broken] == ["0.png"]
            assert made.labels.tolist()[:2] == [[0, 0], [0, 1]]
            assert made.labelled.items[0].path.name == "1.png"

    def test_an_unwritable_folder_is_rejected(self, pictures: LabelledSet, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidArgumentError, match="features cannot be cached here"):
            prepare_inputs(image_model(), pictures, features=True, cache=tmp_path / "file" / "x")


def test_threads_do_not_change_the_inputs(pictures: LabelledSet) -> None:
    found = [prepare_inputs(image_model(), pictures, features=True, threads=n) for n in (1, 3)]
    assert found[0].stored is not None
    assert found[1].stored is not None
    assert torch.equal(found[0].stored, found[1].stored)


def test_images_too_large_for_memory_are_read_when_sampled(pictures: LabelledSet) -> None:
    kept = prepare_inputs(image_model(), pictures, features=False)
    inputs = prepare_inputs(image_model(), pictures, features=False, most_bytes=0)
    assert inputs.stored is None
    indices = torch.tensor([5, 2])
    assert torch.equal(inputs.take(indices, device=CPU)[0], kept.take(indices, device=CPU)[0])


def test_augmentation_is_only_applied_in_training(pictures: LabelledSet) -> None:
    found: Inputs = prepare_inputs(image_model(), pictures, features=False, augmentation=("color",))
    indices = torch.tensor([0])
    plain = found.take(indices, device=CPU)[0]
    changed = found.take(indices, device=CPU, generator=torch.Generator().manual_seed(0))[0]
    assert not torch.equal(plain, changed)
    assert torch.equal(plain, replace(found, augmentation=()).take(indices, device=CPU)[0])


def test_a_clip_model_rejects_images(pictures: LabelledSet) -> None:
    with pytest.raises(InvalidArgumentError, match="contains images, but a model of kind 'clip' takes clips"):
        prepare_inputs(clip_model(), pictures, features=True)


def test_network_without_a_frozen_backbone_has_no_features(videos: LabelledSet) -> None:
    model = build_model(EncoderConfig(kind="c3d", classes=4, frames=4, size=16, width=0.1))
    with pytest.raises(InvalidArgumentError, match="kind 'c3d' has no features to cache"):
        prepare_inputs(model, videos, features=True)


class TestExcerpts:
    def test_are_evenly_spaced_and_keep_group_and_split(self, videos: LabelledSet) -> None:
        divided = make_split(videos, by="subcategory", test=0.5, validation=0.0)
        excerpts = make_excerpts(divided, 3, share=0.5)
        first = [item for item in excerpts.items if item.path == videos.items[0].path]
        assert [(item.start, item.end) for item in first] == [(0.0, 1.0), (0.5, 1.5), (1.0, 2.0)]
        assert {(item.group, item.split) for item in first} == {(divided.items[0].group, divided.items[0].split)}
        assert len(excerpts) == 12
        assert excerpts.subcategories() == videos.subcategories()

    def test_single_excerpt_is_the_middle(self, videos: LabelledSet) -> None:
        item = make_excerpts(videos, 1, share=0.5).items[0]
        assert (item.start, item.end) == (0.5, 1.5)
        assert middle_excerpt(videos.items[0], 1.0) == item
        assert middle_excerpt(videos.items[0], 5.0) == videos.items[0]

    def test_broken_file_is_kept_and_reported_when_read(self, tmp_path: Path) -> None:
        counting_clip(tmp_path / "a" / "x" / "0.mp4")
        (tmp_path / "a" / "x" / "1.mp4").write_bytes(b"no video")
        excerpts = make_excerpts(open_labelled(tmp_path), 2)
        assert [item.end is None for item in excerpts.items] == [False, False, True]
        made = prepare_inputs(clip_model(), excerpts, features=False)
        assert len(made) == 2
        assert len(made.broken) == 1

    def test_only_videos_have_excerpts(self, pictures: LabelledSet, videos: LabelledSet) -> None:
        with pytest.raises(InvalidArgumentError, match="p must contain videos to make excerpts, got items of"):
            make_excerpts(pictures, 2)
        with pytest.raises(InvalidArgumentError, match="count must be at least 1, got 0"):
            make_excerpts(videos, 0)


def test_an_empty_set_is_rejected(pictures: LabelledSet) -> None:
    with pytest.raises(DatasetError, match="p has no items"):
        prepare_inputs(image_model(), pictures.with_items(()), features=True)
