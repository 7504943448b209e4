"""Training without labels: pairs of views depend only on seed and step, and the model learns from them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from vidkin.datasets.augmentation import EditSettings, PairSettings
from vidkin.errors import InvalidArgumentError
from vidkin.features import open_extractor
from vidkin.media import Frames, write_video
from vidkin.metric.losses import info_nce_loss
from vidkin.models import Encoder, FrameEncoderModel, load_model, read_model_info
from vidkin.training import (
    Batch,
    DrawnItems,
    FrameNeighbors,
    ImageSet,
    ObjectiveRecipe,
    ScheduleRecipe,
    build_objective,
    load_recipe,
    open_data,
    train,
)
from vidkin.training.unlabeled import UnlabeledData, draw_by_scene, pair_settings, split_images

CPU = torch.device("cpu")
EDITS = ("gamma", "tint", "gray", "compress", "blur", "bar", "caption", "block", "logo", "border", "noise")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_blobs(tmp_path_factory.mktemp("images"))


def make_blobs(root: Path) -> Path:
    """Write twenty images with different blobs, and a broken image."""
    root.mkdir(exist_ok=True)
    random = np.random.default_rng(3)
    for number in range(20):
        blobs = random.integers(0, 256, (5, 5, 3), dtype=np.uint8)
        Image.fromarray(blobs).resize((40, 40), Image.Resampling.BICUBIC).save(root / f"{number:02d}.png")
    (root / "broken.png").write_bytes(b"no image")
    return root


def recipe_for(folder: Path, **changes: dict[str, Any]) -> dict[str, Any]:
    recipe: dict[str, Any] = {
        "name": "views",
        "data": {"kind": "unlabeled", "source": str(folder), "threads": 1},
        "model": {
            "kind": "frame_encoder",
            "size": 16,
            "embedding": 16,
            "network": {"widths": [8, 8, 16], "strides": [2, 1], "grid": 2},
        },
        "objective": {"name": "info_nce", "tau": 0.1},
        "schedule": {"steps": 6, "pairs": 8, "checkpoint_every": 3, "log_every": 1, "device": "cpu"},
    }
    for table, values in changes.items():
        recipe[table] = {**recipe.get(table, {}), **values}
    return recipe


def image_set(count: int = 6, side: int = 12) -> ImageSet:
    images = torch.randint(0, 256, (count, 3, side, side), generator=torch.Generator().manual_seed(0))
    zeros = torch.zeros(count, dtype=torch.int64)
    return ImageSet(images.to(torch.uint8), zeros, ["all"], zeros, ["images"])


def make_data(threads: int = 1, **schedule: Any) -> UnlabeledData:
    settings = ScheduleRecipe(**{"steps": 5, "pairs": 4, "seed": 7, **schedule})
    return UnlabeledData(image_set(), None, PairSettings(side=8), settings, CPU, threads=threads)


def with_neighbors(images: ImageSet) -> ImageSet:
    """The image set, with the second half of the images as neighbors of the first half."""
    half = len(images) // 2
    places = torch.cat([torch.arange(half), torch.full((len(images) - half,), -1)])
    return ImageSet(
        images.images,
        images.groups,
        images.group_names,
        images.sources,
        images.source_names,
        neighbors=FrameNeighbors(images.images[half : 2 * half].clone(), places),
    )


def views_of(data: UnlabeledData, first: int = 0) -> list[torch.Tensor]:
    return [batch.draws["views"].inputs for batch in data.batches(["views"], first=first)]


class TestBatches:
    def test_do_not_depend_on_threads_or_resuming(self) -> None:
        whole = views_of(make_data())
        assert [tuple(views.shape) for views in whole] == [(8, 3, 8, 8)] * 5
        for again in (views_of(make_data(threads=3)), whole[:2] + views_of(make_data(), first=2)):
            assert all(map(torch.equal, whole, again))
        assert not torch.equal(whole[0], whole[1])
        assert not torch.equal(whole[0], views_of(make_data(seed=8))[0])

    def test_the_second_half_shows_the_same_images(self) -> None:
        (items, *_) = (batch.draws["views"] for batch in make_data().batches(["views"], first=0))
        assert items.labels.tolist() == [[n, n] for n in (0, 1, 2, 3, 0, 1, 2, 3)]
        assert not items.are_features
        assert 0 <= float(items.inputs.min()) <= float(items.inputs.max()) <= 1

    def test_step_needs_enough_images(self) -> None:
        with pytest.raises(
            InvalidArgumentError, match=r"schedule.pairs must be at most 6, the number of images, got 7"
        ):
            make_data(pairs=7)


class TestObjective:
    def test_views_are_compared_in_both_directions(self) -> None:
        vectors = torch.nn.functional.normalize(torch.randn(6, 4), dim=1)

        @Encoder.register
        class Same(torch.nn.Module):
            def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
                return inputs

        model: Any = Same()
        objective = build_objective([ObjectiveRecipe(name="info_nce", parameters={"tau": 0.1})], model, classes=0)
        assert objective.draws == ("views",)
        labels = torch.arange(3).repeat(2)[:, None].expand(-1, 2)
        terms = objective(model, Batch({"views": DrawnItems(vectors, None, labels, False)}))
        scores, target = vectors[:3] @ vectors[3:].T / 0.1, torch.arange(3)
        cross_entropy = torch.nn.functional.cross_entropy
        expected = (cross_entropy(scores, target) + cross_entropy(scores.T, target)) / 2
        assert torch.allclose(terms["loss"], expected, atol=1e-6)
        assert torch.allclose(
            info_nce_loss(scores * 0.1, torch.eye(3).long(), tau=0.1, include_self=True),
            cross_entropy(scores, target),
            atol=1e-6,
        )

    def test_objectives_that_need_labels_are_rejected(self, folder: Path, tmp_path: Path) -> None:
        recipe = {**recipe_for(folder), "objective": {"name": "quadlet"}}
        with pytest.raises(InvalidArgumentError, match=r"for unlabeled data must be one of .*info_nce.* got 'quadlet'"):
            train(recipe, output=tmp_path)


class TestNeighbors:
    def test_edited_views_show_the_neighbors(self) -> None:
        unedited = PairSettings(side=12, plain=EditSettings(), heavy=EditSettings(), mirror_both=0.0)
        images = with_neighbors(image_set())
        data = UnlabeledData(images, None, unedited, ScheduleRecipe(steps=1, pairs=6), CPU)
        chosen, (plain, edited) = data.pairs(0)
        # Images 0 to 2 have the neighbors 3 to 5, which are their own neighbors.
        shown = torch.where(chosen < 3, chosen + 3, chosen)
        assert sorted(chosen.tolist()) == [0, 1, 2, 3, 4, 5]
        torch.testing.assert_close(plain, images.images[chosen] / 255)
        torch.testing.assert_close(edited, images.images[shown] / 255)

    def test_only_edited_views_of_frames_with_neighbors_change(self) -> None:
        settings = ScheduleRecipe(steps=1, pairs=6)
        alone, beside = (
            UnlabeledData(images, None, PairSettings(side=8), settings, CPU).pairs(0)
            for images in (image_set(), with_neighbors(image_set()))
        )
        assert torch.equal(alone[0], beside[0])
        assert torch.equal(alone[1][0], beside[1][0])
        differ = (alone[1][1] != beside[1][1]).flatten(1).any(1)
        assert torch.equal(differ, alone[0] < 3)

    def test_validation_shows_the_frames_themselves(self) -> None:
        model: Any = torch.nn.Module()
        model.embed = lambda views: torch.nn.functional.normalize(views.flatten(1), dim=1)
        figures = [
            UnlabeledData(image_set(), validation, PairSettings(side=8), ScheduleRecipe(pairs=2), CPU).measure(
                model, "recall_at_1"
            )
            for validation in (image_set(), with_neighbors(image_set()))
        ]
        assert figures[0] == figures[1]

    def test_neighbors_change_the_identity_of_the_data(self) -> None:
        images = image_set()
        other = with_neighbors(images)
        shifted = with_neighbors(images)
        assert shifted.neighbors is not None
        shifted.neighbors.squares[0, 0, 0, 0] ^= 1
        identities = {
            UnlabeledData(data, None, PairSettings(side=8), ScheduleRecipe(pairs=2), CPU).identity()
            for data in (images, other, shifted)
        }
        assert len(identities) == 3

    @pytest.mark.thorough
    def test_interrupted_run_on_videos_resumes_to_the_same_weights(self, tmp_path: Path) -> None:
        random = np.random.default_rng(1)
        for number in range(2):
            (tmp_path / "videos").mkdir(exist_ok=True)
            frames = random.integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
            write_video(tmp_path / "videos" / f"{number}.mp4", frames, rate=4)
        recipe = recipe_for(tmp_path / "videos", data={"options": {"neighbor_seconds": 0.3}}, schedule={"pairs": 4})
        plain = recipe_for(tmp_path / "videos", schedule={"pairs": 4})
        train(recipe, output=tmp_path / "whole")
        train(plain, output=tmp_path / "plain")

        def stop(told: Any) -> None:
            if told.phase == "training" and told.done == 4:
                raise OSError("power failure")

        with pytest.raises(OSError, match="power failure"):
            train(recipe, output=tmp_path / "cut", on_progress=stop)
        # The cached squares with neighbors are loaded.
        assert train(recipe, output=tmp_path / "cut").resumed_from == 3
        whole, cut, without = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut", "plain"))
        assert all(torch.equal(whole[name], cut[name]) for name in whole)
        assert any(not torch.equal(whole[name], without[name]) for name in whole)

    def test_photographs_have_no_neighbors(
        self, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        recipe = recipe_for(folder, data={"options": {"neighbor_seconds": 0.3}}, schedule={"steps": 1})
        train(recipe, output=tmp_path)
        assert "data.options.neighbor_seconds = 0.3 has no effect: no video has two frames" in caplog.text

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("long", r"data.options.neighbor_seconds must be a number, got 'long'"),
            (-1, r"neighbor_seconds must be a number of at least 0, got -1"),
            (float("inf"), r"neighbor_seconds must be a number of at least 0, got inf"),
        ],
    )
    def test_invalid_seconds_are_rejected(self, folder: Path, tmp_path: Path, value: Any, message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            train(recipe_for(folder, data={"options": {"neighbor_seconds": value}}), output=tmp_path)


class TestTrain:
    def test_learns_which_views_show_the_same_image(self, folder: Path, tmp_path: Path) -> None:
        # The edits preserve colors, because a small network cannot learn more from few images.
        gentle = dict.fromkeys((f"{edit}_share" for edit in EDITS), 0.0)
        recipe = recipe_for(
            folder,
            data={"validation": 0.4, "options": {"heavy": gentle}},
            schedule={"steps": 20, "decay": "one_cycle", "learning_rate": 1e-2, "decay_biases": False},
            validation={"every": 10, "measure": "recall_at_1"},
        )
        report = train(recipe, output=tmp_path)
        assert report.best is not None
        # Chance level is one in eight.
        assert report.best >= 0.5
        assert [Path(file).name for file, _ in report.broken] == ["broken.png"]
        info = read_model_info(tmp_path)
        assert info.config.kind == "frame_encoder"
        assert info.config.network == {"widths": [8, 8, 16], "strides": [2, 1], "grid": 2}
        assert info.notes["data"].endswith(": 12")

    def test_model_is_an_extractor_of_frames(self, folder: Path, tmp_path: Path) -> None:
        train(recipe_for(folder, schedule={"steps": 1}), output=tmp_path / "model")
        assert isinstance(load_model(tmp_path / "model"), FrameEncoderModel)
        extractor = open_extractor(str(tmp_path / "model"))
        images = np.random.default_rng(0).integers(0, 256, (2, 30, 40, 3), dtype=np.uint8)
        features = extractor.extract(Frames(images, np.arange(2.0)))
        assert tuple(features.values.shape) == (2, 1, 1, 16)
        assert extractor.scorer == "copies"

    @pytest.mark.thorough
    def test_interrupted_run_resumes_to_the_same_weights(self, folder: Path, tmp_path: Path) -> None:
        recipe = recipe_for(folder)
        train(recipe, output=tmp_path / "whole")

        def stop(told: Any) -> None:
            if told.phase == "training" and told.done == 4:
                raise OSError("power failure")

        with pytest.raises(OSError, match="power failure"):
            train(recipe, output=tmp_path / "cut", on_progress=stop)
        assert train(recipe, output=tmp_path / "cut").resumed_from == 3
        first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
        assert all(torch.equal(first[name], second[name]) for name in first)

    def test_other_images_start_another_run(self, folder: Path, tmp_path: Path) -> None:
        train(recipe_for(folder, schedule={"steps": 1}), output=tmp_path / "run")
        more = tmp_path / "more"
        more.mkdir()
        Image.new("RGB", (20, 20), (200, 30, 30)).save(more / "red.png")
        recipe = recipe_for(folder, schedule={"steps": 1}, data={"folders": [str(more)]})
        # The digest of the recipe differs, because the folders are part of it.
        with pytest.raises(InvalidArgumentError, match="contains a run with a different recipe"):
            train(recipe, output=tmp_path / "run")


class TestRecipe:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"model": {"kind": "clip", "network": None}},
                "unlabeled data requires a model that takes images, got kind 'clip'",
            ),
            (
                {"validation": {"every": 2, "measure": "qp"}},
                "validation.measure must be 'recall_at_1' for unlabeled data, got 'qp'",
            ),
            ({"schedule": {"pairs": 1}}, "schedule.pairs must be at least 2, got 1"),
            (
                {"schedule": {"decay": "one_cycle", "warm_up": 3}},
                "schedule.warm_up must be 0 with decay 'one_cycle'",
            ),
            ({"data": {"kind": "labeled", "folders": ["b"]}}, "data.folders must be empty for labeled data"),
            ({"data": {"frames_per_video": 0}}, "data.frames_per_video must be at least 1, got 0"),
        ],
    )
    def test_incompatible_settings_are_rejected(self, folder: Path, changes: dict[str, Any], message: str) -> None:
        recipe = recipe_for(folder, **changes)
        recipe["model"] = {name: value for name, value in recipe["model"].items() if value is not None}
        if recipe["model"]["kind"] == "clip":
            del recipe["model"]["embedding"]
        with pytest.raises(InvalidArgumentError, match=message):
            load_recipe(recipe)

    def test_is_not_a_labeled_set(self, folder: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"data.kind must be 'labeled'"):
            open_data(load_recipe(recipe_for(folder)))

    def test_edits_are_the_defaults_with_changes_in_the_options(self) -> None:
        plain = pair_settings({}, side=32)
        assert plain == PairSettings(side=32)
        changed = pair_settings({"mirror_both": 0, "heavy": {"blur_share": 0.5, "warp": {"rotation": 9}}}, side=32)
        assert (changed.mirror_both, changed.heavy.blur_share, changed.heavy.warp.rotation) == (0.0, 0.5, 9.0)
        assert changed.heavy.warp.scale == plain.heavy.warp.scale
        assert changed.plain == plain.plain

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"size": 3},
                r"\[data.options\] has no setting size; choose from mirror_both, scene_images, neighbor_seconds, "
                "plain, heavy",
            ),
            ({"heavy": {"blurr": 1}}, r"\[data.options.heavy\] has no setting blurr"),
            ({"heavy": {"warp": {"spin": 1}}}, r"\[data.options.heavy.warp\] has no setting spin"),
            ({"plain": 3}, r"\[data.options.plain\] must be a table of settings, got 3"),
        ],
    )
    def test_unknown_edits_are_rejected(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            pair_settings(options, side=32)


def test_splits_have_no_images_in_common() -> None:
    images = image_set(10)
    kept, held = split_images(images, share=0.3, seed=1)
    assert (len(kept), len(held)) == (7, 3)
    every = torch.cat([kept.images, held.images]).flatten(1).tolist()
    assert sorted(every) == sorted(images.images.flatten(1).tolist())
    with pytest.raises(InvalidArgumentError, match=r"data.validation must leave at least two images in each split"):
        split_images(images, share=0.05, seed=1)


def test_images_of_one_scene_are_sampled_together() -> None:
    """Two scenes of five and three images, sampled in pairs: rows of 2, 2, 1 and 2, 1, none of them mixed."""
    scenes = torch.tensor([4, 4, 9, 4, 9, 4, 9, 4])
    orders = [draw_by_scene(scenes, 2, torch.Generator().manual_seed(seed)).tolist() for seed in range(30)]
    for order in orders:
        assert sorted(order) == list(range(8))
        # The third and fifth images of a scene may be alone, so at most four rows are shortened by a change of scene.
        changes = sum(scenes[one] != scenes[two] for one, two in pairwise(order))
        assert changes <= 4
    assert len({tuple(order) for order in orders}) == 30
    assert {int(scenes[order[0]]) for order in orders} == {4, 9}


def test_single_images_of_scenes_are_sampled_in_random_order() -> None:
    drawn = draw_by_scene(torch.zeros(6, dtype=torch.long), 1, torch.Generator().manual_seed(3))
    assert drawn.tolist() == torch.randperm(6, generator=torch.Generator().manual_seed(3)).tolist()
    with pytest.raises(InvalidArgumentError, match="scene_images must be at least 1, got 0"):
        UnlabeledData(image_set(), None, PairSettings(side=8), ScheduleRecipe(pairs=2), CPU, scene_images=0)


@pytest.mark.thorough
def test_the_large_recipe_trains_and_resumes_to_the_same_weights(folder: Path, tmp_path: Path) -> None:
    heavy = load_recipe("frame-encoder-large").data.options["heavy"]
    assert {"blend_share", "cover_share", "sticker_share"} <= set(heavy)
    assert heavy["warp"]["rotation"] == 20.0
    recipe = recipe_for(folder, data={"options": {"heavy": heavy}})
    report = train(recipe, output=tmp_path / "whole")
    assert (report.steps, report.resumed_from) == (6, 0)

    def press(told: Any) -> None:
        if told.phase == "training" and told.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, output=tmp_path / "cut", on_progress=press)
    assert train(recipe, output=tmp_path / "cut").resumed_from >= 3
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut")]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
