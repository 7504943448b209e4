"""Shards of crops, and the draw of batches from them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.crops import EDITS_EACH, SIDE, decode_crop, make_crops, plan_shards, read_shard
from vidkin_research.frame_encoder.material import open_material, taught_shards
from vidkin_research.frame_encoder.pictures import Picture, close_round, read_rounds
from vidkin_research.frame_encoder.teacher import missing_files, open_pixel_encoder

SEED = 1


def test_a_shard_holds_each_picture_once_plain_and_several_times_edited(work: Path) -> None:
    rows, content = read_shard(work, 0)
    assert len(rows) == 15 * (1 + EDITS_EACH)
    assert all((row.kinds == ()) == (row.edit == 0) for row in rows)
    for row in rows[:7]:
        assert decode_crop(content[row.offset : row.offset + row.length]).shape == (SIDE, SIDE, 3)
    assert decode_crop(content[rows[0].offset : rows[0].offset + rows[0].length], 64).shape == (64, 64, 3)


def test_crops_can_be_made_again_in_any_order(work: Path) -> None:
    (pictures,) = read_rounds(work)
    rows, content = read_shard(work, 0)
    number = rows[-1].picture
    made = make_crops(work, number, pictures, SEED)
    assert [kinds for _, kinds in made] == [row.kinds for row in rows if row.picture == number]
    stored = decode_crop(content[rows[-1].offset : rows[-1].offset + rows[-1].length])
    # A JPEG file of it is stored.
    assert np.abs(stored.astype(int) - made[-1][0]).mean() < 8


def test_frames_of_one_scene_are_side_by_side_and_numbers_run_on_in_the_next_round() -> None:
    first = [Picture(f"{number}.jpg", "a", f"a/{number % 4}") for number in range(12)]
    second = [Picture(f"{number}.jpg", "b", f"b/{number}") for number in range(5)]
    shards = plan_shards([first, second], SEED)
    assert [known for _, known in shards] == [12, 17]
    numbers = shards[0][0]
    assert sorted(numbers) == list(range(12))
    groups = [number % 4 for number in numbers]
    assert all(groups[place] == groups[place + 1] for place in (0, 1, 3, 4, 6, 7, 9, 10))
    assert sorted(shards[1][0]) == [12, 13, 14, 15, 16]
    # Another source leaves the shards that there are as they are.
    assert plan_shards([first], SEED) == shards[:1]


def test_a_source_that_comes_later_is_a_round_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    for name in ("m", "a"):
        row = asdict(Picture(f"{name}.jpg", name, name))
        (tmp_path / "lists" / f"{name}.json").write_text(json.dumps([row]))
        close_round(tmp_path)
    assert [[picture.source for picture in pictures] for pictures in read_rounds(tmp_path)] == [["m"], ["a"]]


def test_without_pictures_the_message_says_which_step_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="has no pictures; run `pictures` first"):
        read_rounds(tmp_path)
    with pytest.raises(InvalidArgumentError, match="has no shard with vectors; run `crops` and `teach` first"):
        open_material(tmp_path, [])


def test_the_teacher_must_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="teacher must be onnx:FILE with an existing file"):
        open_pixel_encoder(f"onnx:{tmp_path / 'none.onnx'}")


def test_a_batch_has_three_levels(work: Path) -> None:
    assert missing_files(work) == []
    material = open_material(work, taught_shards(work))
    batch = material.draw(np.random.default_rng(0), moments=8, paired=0.5, side=48)
    assert batch.images.shape == (16, 3, 48, 48)
    assert float(batch.images.min()) >= -1
    assert float(batch.images.max()) <= 1
    same_moment = batch.moments[:, None] == batch.moments
    same_place = batch.groups[:, None] == batch.groups
    # Two views of each moment; and for the pairs another moment of the place.
    assert (same_moment.sum(dim=1) >= 2).all()
    assert (same_moment <= same_place).all()
    paired = (same_place & ~same_moment).any(dim=1)
    assert paired[:8].all()
    assert not same_place.all(dim=1).any()
    for one, other in zip(batch.moments[0:8:4].tolist(), batch.moments[2:8:4].tolist(), strict=True):
        assert abs(material.training[one].time - material.training[other].time) >= 1.0


def test_a_batch_carries_the_teachers_vectors_of_the_plain_and_of_the_same_edited_crop(work: Path) -> None:
    material = open_material(work, taught_shards(work), taught_shards(work, "edited"))
    batch = material.draw(np.random.default_rng(3), moments=6, paired=0.0, side=48)
    assert batch.known.all()
    assert torch.allclose(batch.plain.norm(dim=1), torch.ones(12), atol=1e-3)
    agreement = (batch.plain * batch.own).sum(dim=1)
    # Plain views have the plain vector, edited ones another.
    assert (agreement > 0.999).any()
    assert (agreement < 0.99).any()
    bank, groups = material.draw_bank(np.random.default_rng(0), 5)
    assert bank.shape == (5, 192)
    assert groups.shape == (5,)
