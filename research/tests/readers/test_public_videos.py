"""Readers of video sets: fruit by axis, aerial by recording, VB100 and dogs."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from tests.support.labelled import counting_clip, shown
from vidkin.datasets import open_labelled, read_item
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.media import read_frames
from vidkin_research.readers.aerial import read_aerial


class TestFruit:
    @pytest.fixture
    def fruit(self, tmp_path: Path) -> Path:
        names = (
            "apple/apple-1/axis0",
            "apple/apple-1/axis1",
            "apple/apple-1/axis2",
            "cherry/cherry-1/axis0base",
        )
        for name in (*names, "cherry/cherry-1/axisx", "cherry/cherry-2/axis0"):
            counting_clip(tmp_path / f"{name}.mp4", 20)
        return tmp_path

    def test_first_axis_is_the_training_split(self, fruit: Path) -> None:
        labelled = open_labelled(fruit, reader="fruit")
        assert {item.group: item.split for item in labelled.items} == {
            "apple-1/axis0": "train",
            "apple-1/axis1": "test",
            "apple-1/axis2": "test",
            "cherry-1/axis0base": "train",
            "cherry-1/axisx": "test",
            "cherry-2/axis0": "train",
        }

    def test_validation_is_the_end_of_the_rotation(self, fruit: Path) -> None:
        labelled = open_labelled(fruit, reader="fruit", validation=0.25)
        assert labelled.split_counts() == {"train": 3, "validation": 3, "test": 3}
        before, after = labelled.items[:2]
        assert (before.split, after.split) == ("train", "validation")
        assert shown(read_item(before, "video", size=16)) == list(range(15))
        assert shown(read_item(after, "video", size=16)) == list(range(15, 20))
        # Regardless of the number of frames, none is from the other split.
        assert set(shown(read_item(before, "video", size=16, frames=100))) == set(range(15))
        assert set(shown(read_item(after, "video", size=16, frames=100))) == set(range(15, 20))

    def test_fractions_that_leave_a_split_empty_are_rejected(self, fruit: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"validation must be at least 0 and below 1, got 1\.0"):
            open_labelled(fruit, reader="fruit", validation=1.0)
        with pytest.raises(InvalidArgumentError, match=r"validation 0.01 leaves 20 of the 20 frames of .*axis0.mp4"):
            open_labelled(fruit, reader="fruit", validation=0.01)


class TestAerial:
    @pytest.fixture
    def sky(self, tmp_path: Path) -> Path:
        for sensor, prefix in (("infrared", "ir"), ("visible", "v")):
            for number in range(1, 21):
                counting_clip(tmp_path / "bird" / sensor / f"{prefix}_bird_{number:03d}.mp4", 1, width=16, height=16)
        return tmp_path

    def test_clips_of_a_recording_stay_together(self, sky: Path) -> None:
        for seed in range(5):
            labelled = open_labelled(sky, reader="aerial", seed=seed)
            side = {item.path.stem: item.split for item in labelled.items}
            assert side["v_bird_002"] == side["v_bird_003"]
            assert side["ir_bird_011"] == side["ir_bird_012"]
        group = {item.path.stem: item.group for item in labelled.items}
        assert group["v_bird_003"] == "v_bird_2-3"
        assert group["v_bird_004"] == "v_bird_4"

    def test_labels_and_fractions_are_applied(self, sky: Path) -> None:
        labelled = read_aerial(sky, test=0.25, validation=0.25)
        assert labelled.subcategories() == ("bird/infrared", "bird/visible")
        counts = Counter((item.subcategory, item.split) for item in labelled.items)
        assert counts["visible", "test"] in (5, 6)
        assert counts["visible", "validation"] in (5, 6)

    def test_other_host_names_are_rejected(self, sky: Path) -> None:
        counting_clip(sky / "bird" / "visible" / "holiday.mp4", 1)
        with pytest.raises(
            DatasetError, match=r"holiday\.mp4: must be named <ir\|v>_<object>_<number>; get the clips from"
        ):
            open_labelled(sky, reader="aerial")


class TestVb100:
    def make(self, folder: Path, names: list[str], count: int = 3) -> Path:
        for name in names:
            for number in range(count):
                counting_clip(folder / name / f"{number}.mp4", 1, width=16, height=16)
        return folder

    def test_folder_can_have_several_classes(self, tmp_path: Path) -> None:
        self.make(tmp_path, ["birds/Auk", "birds/Tern", "birds/Wren", "dogs/Pug"])
        labelled = open_labelled(tmp_path, reader="vb100", species=2)
        assert labelled.subcategories() == ("birds/Auk", "birds/Tern", "dogs/Pug")
        assert labelled.split_counts() == {"train": 6, "test": 3}

    def test_vb100_can_be_combined_with_own_videos(self, tmp_path: Path) -> None:
        birds = self.make(tmp_path / "VB100_video", ["Auk", "Tern"])
        dogs = self.make(tmp_path / "mine", ["Pug"], 6)
        labelled = open_labelled(birds, reader="vb100", dogs=str(dogs))
        assert labelled.categories() == ("birds", "dogs")
        assert Counter(item.label for item in labelled.part("test").items)["dogs/Pug"] == 2
        assert open_labelled(birds, reader="vb100").categories() == ("birds",)

    def test_error_names_invalid_data(self, tmp_path: Path) -> None:
        self.make(tmp_path, ["birds/Auk"])
        with pytest.raises(InvalidArgumentError, match=r"already contains birds and other classes; leave out dogs"):
            open_labelled(tmp_path, reader="vb100", dogs=tmp_path)
        with pytest.raises(InvalidArgumentError, match="species must be at least 1, or None for all, got 0"):
            open_labelled(tmp_path, reader="vb100", species=0)
        (tmp_path / "birds" / "Tern").mkdir()
        with pytest.raises(DatasetError, match=r"Tern: no videos; expected birds/Auk/\*.mp4"):
            open_labelled(tmp_path, reader="vb100")


@pytest.mark.data
def test_fruit_set_can_be_read(shared_data: Path) -> None:
    labelled = open_labelled(shared_data / "labelled" / "fruit", reader="fruit")
    assert len(labelled) == 162
    assert labelled.categories() == ("apple", "cherry", "tomato")
    assert len(labelled.subcategories()) == 67
    assert labelled.split_counts() == {"train": 67, "test": 95}
    divided = open_labelled(shared_data / "labelled" / "fruit", reader="fruit", validation=1 / 3)
    assert divided.split_counts() == {"train": 67, "validation": 67, "test": 95}
    item = divided.part("validation").items[0]
    whole = len(read_frames(item.path, rate=None))
    assert len(read_item(item, "video", size=50)) == round(whole / 3)


@pytest.mark.data
def test_aerial_set_can_be_read(shared_data: Path) -> None:
    labelled = open_labelled(shared_data / "labelled" / "aerial", reader="aerial")
    assert len(labelled) == 310
    assert labelled.categories() == ("airplane", "bird", "drone", "helicopter")
    assert len(labelled.subcategories()) == 8
    counts = Counter((item.label, item.split) for item in labelled.items)
    assert min(counts[label, split] for label in labelled.subcategories() for split in ("train", "test")) >= 7
    assert 0.25 < labelled.split_counts()["test"] / 310 < 0.35
    sizes = Counter(item.group for item in labelled.items)
    assert len(sizes) == 203


@pytest.mark.data
def test_consecutive_aerial_clips_are_one_group(shared_data: Path) -> None:
    """Verified on one family: if a clip starts where the previous one ends, both are from the same recording."""
    labelled = open_labelled(shared_data / "labelled" / "aerial", reader="aerial")
    birds = [item for item in labelled.items if item.path.stem.startswith("v_bird")]
    ends = {}
    for item in birds:
        images = read_frames(item.path, rate=2, short_side=64, threads=1).images.astype(np.float64)
        ends[int(item.path.stem[-3:])] = (images[0], images[-1], item.group)
    found = defaultdict(set)
    for number, (_, last, group) in ends.items():
        if number + 1 in ends and np.abs(last - ends[number + 1][0]).mean() < 1:
            found[group == ends[number + 1][2]].add(number)
    assert found[True] >= {32, 33, 39, 40}
    assert not found[False]
