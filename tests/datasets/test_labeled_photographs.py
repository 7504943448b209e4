"""Labeled sample clips that the package builds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from vidkin.datasets import (
    LABELLED_PHOTOGRAPHS,
    PHOTOGRAPHS,
    LabelledSet,
    build_labelled_samples,
    open_labelled,
    photograph,
    read_item,
)
from vidkin.datasets import labeled_photographs as module
from vidkin.errors import DatasetError, InvalidArgumentError

pytestmark = pytest.mark.large

SMALL = {"train": 2, "validation": 1, "test": 1, "seconds": 0.4, "rate": 5, "size": 32}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> LabelledSet:
    return build_labelled_samples(tmp_path_factory.mktemp("made") / "samples", **SMALL)  # type: ignore[arg-type]


def test_every_photograph_has_a_kind() -> None:
    assert sorted(name for names in LABELLED_PHOTOGRAPHS.values() for name in names) == sorted(PHOTOGRAPHS)


def test_clips_have_labels_and_splits(samples: LabelledSet) -> None:
    assert samples.kind == "video"
    assert samples.categories() == ("portrait", "sky", "texture", "thing", "tissue")
    assert len(samples.subcategories()) == 14
    assert samples.split_counts() == {"train": 28, "validation": 14, "test": 14}
    assert set(Counter(item.label for item in samples.part("train").items).values()) == {2}
    film = read_item(samples.items[0], "video", size=32)
    assert film.shape == (2, 32, 32, 3)


def test_no_part_of_a_photograph_is_in_two_splits(samples: LabelledSet) -> None:
    sides: dict[str, set[str]] = {}
    for item in samples.items:
        sides.setdefault(item.group, set()).add(item.split)
    assert all(len(side) == 1 for side in sides.values())
    cells = Counter(split for row in module._CELLS for split in row)
    assert cells == {"train": 10, "validation": 2, "test": 4}


def test_a_clip_shows_only_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one white cell on black, a clip of this cell shows no black and a clip of its neighbor no white."""
    painted = np.zeros((400, 400, 3), np.uint8)
    painted[100:200, 200:300] = 255
    monkeypatch.setattr(module, "photograph", lambda name: painted)
    for row in range(4):
        for column in range(4):
            look = module._sample_look(
                np.random.default_rng(row), (column / 4, row / 4, (column + 1) / 4, (row + 1) / 4)
            )
            frames = list(module._iter_flight_frames(module._source("x"), look, 20, 10, 32, 0))
            light = np.mean([frame.mean() for frame in frames])
            dark = 127
            assert (light > dark) == ((row, column) == (1, 2))
            spread = max(np.ptp(frame.mean(axis=-1).astype(float)) for frame in frames)
            assert spread < 12 * look.noise + 1  # grain only: no edge of the cell comes into view


def test_clips_move_and_differ(samples: LabelledSet) -> None:
    of_grass = [item for item in samples.items if item.subcategory == "grass"]
    films = [read_item(item, "video", size=32).astype(float) for item in of_grass]
    assert all(np.abs(film[0] - film[1]).mean() > 3 for film in films)
    assert all(np.abs(films[0] - film).mean() > 10 for film in films[1:])


def test_the_same_arguments_give_the_same_files(samples: LabelledSet, tmp_path: Path) -> None:
    assert samples.root is not None
    again = build_labelled_samples(tmp_path / "again", **SMALL)  # type: ignore[arg-type]
    other = build_labelled_samples(tmp_path / "other", **SMALL, seed=1)  # type: ignore[arg-type]
    differ = 0
    for one, two, three in zip(samples.items, again.items, other.items, strict=True):
        assert one.path.read_bytes() == two.path.read_bytes()
        assert one.key(samples.root) == three.key(other.root)
        differ += one.path.read_bytes() != three.path.read_bytes()
    assert differ == len(samples)


def test_only_missing_clips_are_written(samples: LabelledSet) -> None:
    assert samples.root is not None
    lost, kept = samples.items[3].path, samples.items[4].path
    content, before = lost.read_bytes(), kept.stat().st_mtime_ns
    lost.unlink()
    with pytest.raises(DatasetError, match=r"lacks 1 of its 56 clips; call build_labelled_samples again"):
        open_labelled(samples.root, reader="photographs")
    seen: list[tuple[int, int]] = []
    build_labelled_samples(
        samples.root,
        **SMALL,  # type: ignore[arg-type]
        on_progress=lambda done, total, path: seen.append((done, total)),
    )
    assert lost.read_bytes() == content
    assert kept.stat().st_mtime_ns == before
    assert seen[-1] == (56, 56)
    assert open_labelled(samples.root, reader="photographs").items == samples.items


def test_the_reader_builds_into_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LABELLED_PHOTOGRAPHS", {"texture": ("grass",), "thing": ("coins",)})
    labelled = open_labelled(tmp_path / "new", reader="photographs")
    assert labelled.split_counts() == {"train": 20, "validation": 6, "test": 10}
    assert open_labelled(tmp_path / "new", reader="photographs").items == labelled.items
    assert read_item(labelled.items[0], "video", size=96).shape == (20, 96, 96, 3)


def test_other_folders_are_not_changed(samples: LabelledSet, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(DatasetError, match=r"contains no labeled samples; call build_labelled_samples first"):
        open_labelled(tmp_path, reader="photographs")
    with pytest.raises(DatasetError, match=r"is not empty and contains no labeled samples; choose an empty folder"):
        build_labelled_samples(tmp_path)
    assert samples.root is not None
    with pytest.raises(DatasetError, match=r"contains labeled samples made with other arguments \(\{.*'size': 32"):
        build_labelled_samples(samples.root)
    with pytest.raises(InvalidArgumentError, match=r"mine.txt is a file; choose a folder for the labeled samples"):
        build_labelled_samples(tmp_path / "mine.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": 0}, r"train must be at least 1, and validation and test at least 0"),
        ({"size": 33}, r"size even and at least 16 pixels, got 2\.0, 10 and 33"),
        ({"seconds": 0.0}, r"seconds and rate must be above 0, .* got 0\.0, 10 and 96"),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        build_labelled_samples(tmp_path / "x", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "x").exists()


def test_the_retina_has_no_black_corners() -> None:
    whole = photograph("retina")
    assert whole[:40, :40].max() < 40
    assert np.asarray(module._source("retina")).max(axis=-1).min() > 40
