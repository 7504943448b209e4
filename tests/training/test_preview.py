"""Previews of recipes, as shown by `vidkin train --check`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.labelled import two_by_two
from tests.support.training import recipe_for, write_pictures
from vidkin.rendering import draw_first_batch
from vidkin.training import LabelCount, load_recipe, preview_recipe


def test_the_preview_counts_items_and_shows_the_first_quadlets(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    recipe = load_recipe(recipe_for(write_pictures(tmp_path / "pictures")))
    preview = preview_recipe(recipe, on_item=lambda done, total: told.append((done, total)))
    assert preview.splits == {"train": 24, "validation": 12, "test": 12}
    assert preview.labels[0] == LabelCount("blue", "dark", train=4, validation=2, test=2)
    assert len(preview.labels) == 6
    assert (preview.name, preview.kind, preview.dimension, preview.notes) == ("pictures", "image", 16, ())
    batch = preview.batch
    # 4 quadlets, ordered by member.
    assert batch.images.shape == (16, 1, 16, 16, 3)
    query, positive, intermediate, negative = (batch.items[4 * place] for place in range(4))
    assert query.label == positive.label
    assert query.category == intermediate.category != negative.category
    assert query.label != intermediate.label
    assert told[-1] == (len({item.path for item in batch.items}),) * 2
    # No files were written.
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


def test_the_preview_shows_the_frames_of_clips(tmp_path: Path) -> None:
    source = two_by_two(tmp_path / "clips", each=4, videos=True)
    recipe = recipe_for(source, "all_quadlets", model={"kind": "clip", "frames": 3, "lstm": 8})
    recipe["data"] = {"source": str(source), "augmentation": ["flip", "color"], "threads": 1}
    preview = preview_recipe(load_recipe(recipe))
    assert preview.kind == "video"
    batch = preview.batch
    # 2 categories x 2 subcategories x 2 items, which are all items.
    assert batch.images.shape == (8, 3, 16, 16, 3)
    assert batch.members == ()
    plain = preview_recipe(load_recipe({**recipe, "data": {**recipe["data"], "augmentation": []}}))
    assert not np.array_equal(plain.batch.images, batch.images)
    assert draw_first_batch(batch, tmp_path / "batch.png") == 8
    assert (tmp_path / "batch.png").stat().st_size > 1000


def test_broken_items_are_shown_black_and_listed(tmp_path: Path) -> None:
    source = write_pictures(tmp_path / "pictures", each=4)
    for path in source.rglob("*.png"):
        if path.parent.parent.name == "red":
            path.write_bytes(b"no picture")
    batch = preview_recipe(load_recipe(recipe_for(source))).batch
    assert {Path(error.path).parent.parent.name for error in batch.broken} == {"red"}
    for image, item in zip(batch.images, batch.items, strict=True):
        assert (image.max() == 0) == (item.category == "red")


@pytest.mark.parametrize("name", ["frame-encoder", "frame-encoder-large"])
def test_both_views_of_unlabeled_images_are_shown(name: str, tmp_path: Path) -> None:
    source = write_pictures(tmp_path / "pictures", each=4)
    (source / "broken.png").write_bytes(b"no picture")
    recipe = load_recipe(name)
    recipe = replace(
        recipe,
        data=replace(recipe.data, source=str(source), validation=0.25),
        schedule=replace(recipe.schedule, pairs=6),
    )
    preview = preview_recipe(recipe)
    pictures = len(list(source.rglob("*.png"))) - 1
    assert preview.labels == ()
    assert sum(preview.splits.values()) == pictures
    assert preview.splits["validation"] == round(0.25 * pictures)
    assert preview.batch.images.shape == (12, 1, 64, 64, 3)
    assert preview.batch.members == ("plain view", "edited view")
    plain, edited = preview.batch.items[:6], preview.batch.items[6:]
    assert [item.group for item in plain] == [item.group for item in edited]
    assert (preview.batch.images[:6] != preview.batch.images[6:]).any()
    (error,) = preview.batch.broken
    assert Path(error.path).name == "broken.png"
    assert "cannot identify image file" in error.cause


@pytest.mark.parametrize("objective", ["mined_triplet", "magnet"])
def test_mined_batches_can_have_more_classes_than_the_data(tmp_path: Path, objective: str) -> None:
    recipe = recipe_for(two_by_two(tmp_path / "pictures", each=4), objective, model={"kind": "two_head"})
    recipe["objective"] = [{"name": "classification"}, *recipe["objective"]]
    recipe["schedule"]["batch"] = [21, 3]  # from 4 classes
    assert len(preview_recipe(load_recipe(recipe)).batch.items) == 63
