"""Images with their teacher vectors, and the sampling of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from research.tests.frame_encoder.conftest import means_of_cells

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.material import Witness, open_material
from vidkin_research.frame_encoder.pictures import read_pictures, read_sources, squared
from vidkin_research.frame_encoder.raw_vectors import Network, VectorStore, measure_views
from vidkin_research.frame_encoder.teacher import open_pixel_encoder, teach, vectors_file


def test_each_source_has_teacher_vectors_of_its_images(work: Path) -> None:
    assert read_sources(work) == ["made"]
    vectors = np.load(vectors_file(work, "made"))
    assert vectors.shape == (15, 512)
    assert np.allclose(np.linalg.norm(vectors.astype(np.float32), axis=1), 1, atol=1e-2)


def test_stored_vectors_are_not_recomputed(work: Path) -> None:
    def never(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        raise AssertionError("asked again")

    teach(work, never, side=96)


def test_error_without_images_names_the_missing_steps(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no images with teacher embeddings; run `pictures` and `teach`"):
        open_material(tmp_path)


def test_teacher_must_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="teacher must be onnx:FILE with an existing file"):
        open_pixel_encoder(f"onnx:{tmp_path / 'none.onnx'}")


def test_batch_has_three_levels(work: Path) -> None:
    material = open_material(work)
    batch = material.draw(np.random.default_rng(0), moments=8, paired=0.5, side=48)
    assert batch.images.shape == (16, 48, 48, 3)
    assert batch.images.dtype == np.uint8
    same_moment = batch.moments[:, None] == batch.moments
    same_place = batch.groups[:, None] == batch.groups
    # Two views of each moment and, for the pairs, another moment of the same place.
    assert (same_moment.sum(dim=1) >= 2).all()
    assert (same_moment <= same_place).all()
    paired = (same_place & ~same_moment).any(dim=1)
    assert paired[:8].all()
    assert not same_place.all(dim=1).any()
    for one, other in zip(batch.moments[0:8:4].tolist(), batch.moments[2:8:4].tolist(), strict=True):
        assert abs(material.pictures[one].time - material.pictures[other].time) >= 1.0


def test_batch_has_teacher_vectors_of_the_unedited_images(work: Path) -> None:
    material = open_material(work)
    batch = material.draw(np.random.default_rng(3), moments=6, paired=0.0, side=48)
    pictures = read_pictures(work, "made")
    expected = np.load(vectors_file(work, "made"))[batch.moments.numpy()].astype(np.float32)
    assert torch.equal(batch.plain, torch.from_numpy(expected))
    assert len(pictures) == len(material.pictures)
    bank, groups = material.draw_bank(np.random.default_rng(0), 5)
    assert bank.shape == (5, 512)
    assert groups.shape == (5,)


def test_teacher_and_student_get_the_same_edited_views(work: Path) -> None:
    material = open_material(work)
    seen: list[NDArray[np.uint8]] = []

    def encode(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        seen.append(images)
        return means_of_cells(images)

    batch, alone = (
        material.draw(np.random.default_rng(3), moments=6, paired=0.0, side=64, witness=witness)
        for witness in (Witness(encode, 64, 4), None)
    )
    assert batch.shown.tolist() == [1, 3, 5, 7]
    np.testing.assert_array_equal(batch.images[batch.shown.numpy()], np.concatenate(seen))
    assert torch.equal(batch.seen, torch.from_numpy(np.concatenate([means_of_cells(each) for each in seen])))
    # It has no other effect.
    np.testing.assert_array_equal(alone.images, batch.images)
    assert alone.shown.tolist() == []
    assert alone.seen.shape == (0, 512)


def test_first_view_is_always_edited_and_second_in_half_of_the_cases(work: Path) -> None:
    material = open_material(work)
    batch = material.draw(np.random.default_rng(5), moments=40, paired=0.0, side=48)
    plain = np.stack(
        [material.view(int(each), np.random.default_rng(0), side=48, edited=False) for each in batch.moments]
    )
    unedited = (batch.images == plain).all(axis=(1, 2, 3))
    assert unedited[1::2].sum() <= 2  # an edit can have no effect
    assert 10 <= unedited[::2].sum() <= 30


def test_views_depend_only_on_the_seed(work: Path) -> None:
    material = open_material(work)
    one, other = (material.draw(np.random.default_rng(7), moments=4, paired=0.5, side=48) for _ in range(2))
    assert np.array_equal(one.images, other.images)
    assert not np.array_equal(
        one.images, material.draw(np.random.default_rng(8), moments=4, paired=0.5, side=48).images
    )


def test_validation_views_are_retrieved_better_than_by_chance(work: Path, tmp_path: Path) -> None:
    class Store(VectorStore):
        def encode(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
            return means_of_cells(np.stack([squared(image, 64) for image in images]))

    file = tmp_path / "cells.onnx"
    file.write_bytes(b"not read by this store")
    left = replace(open_material(work), validation=np.arange(15))
    found = measure_views(Store(Network("cells", file, 64), tmp_path), left, pictures=15)
    assert found["pictures"] == 15
    assert 0.15 < found["recall"] <= 1  # chance level: 0.07
    assert 0.1 < found["micro_ap"] <= 1
