"""Feature files: frame parts with four bits per value, thumbnails, and damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.index.helpers import units
from vidkin.errors import CollectionDamagedError
from vidkin.index import open_place
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.records import restore_parts, round_parts
from vidkin.similarity import FrameFeatures

FRAMES, VIEWS, DIMENSION = 4, 3, 64
BOXES = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]]


@pytest.fixture
def features() -> FrameFeatures:
    values = np.random.default_rng(1).standard_normal((FRAMES, VIEWS, 1, DIMENSION), np.float32)
    return FrameFeatures(
        units(values),
        np.arange(FRAMES, dtype=np.float64),
        np.ones(FRAMES, np.float32),
        baseline=np.zeros((FRAMES, VIEWS), np.float32),
        boxes=np.tile(np.array(BOXES, np.float32), (FRAMES, 1, 1)),
        thumbnails=np.random.default_rng(2).integers(0, 256, (FRAMES, VIEWS, 8, 8), np.uint8),
    )


def path_of(folder: Path, video: int) -> Path:
    (path,) = folder.rglob(f"*{video}.safetensors")
    return path


def test_parts_are_quantized_to_integers_up_to_seven() -> None:
    values = np.array([[0.6, 0.8, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [-0.5, 0.5, 0.5, 0.5]])
    numbers = round_parts(values)
    # 0.6 is 5.25 sevenths of 0.8.
    assert numbers.tolist() == [[5, 7, 0, 0], [0, 0, 0, 0], [-7, 7, 7, 7]]
    back = restore_parts(numbers)
    assert back[0].tolist() == pytest.approx([5 / 74**0.5, 7 / 74**0.5, 0, 0], abs=1e-3)
    assert np.array_equal(round_parts(back), numbers)


def test_parts_use_half_a_byte_per_value(tmp_path: Path, features: FrameFeatures) -> None:
    files = FeatureFiles(open_place(tmp_path))
    files.write(1, features)
    parts = load_file(path_of(tmp_path, 1))["parts"]
    assert parts.dtype == np.uint8
    assert parts.size == FRAMES * (VIEWS - 1) * DIMENSION // 2
    cosine = (files.read(1).values.astype(np.float32) * features.values).sum(-1)
    assert float(cosine.min()) > 0.98


@pytest.mark.parametrize("byte", [0x00, 0xFF, 0x99, 0x0F])
def test_bad_sectors_are_detected(tmp_path: Path, features: FrameFeatures, byte: int) -> None:
    files = FeatureFiles(open_place(tmp_path))
    files.write(1, features)
    path = path_of(tmp_path, 1)
    tensors = load_file(path)
    tensors["parts"].reshape(-1)[32:64] = byte
    save_file(tensors, path)
    with pytest.raises(CollectionDamagedError, match="the stored values are corrupted"):
        files.read(1)


@pytest.mark.parametrize("name", ["thumbnails", "part_thumbnails"])
@pytest.mark.parametrize("change", ["fewer", "one for all", "flat", "signed", "float", "missing"])
def test_modified_thumbnails_are_damage(tmp_path: Path, features: FrameFeatures, name: str, change: str) -> None:
    files = FeatureFiles(open_place(tmp_path))
    files.write(1, features)
    path = path_of(tmp_path, 1)
    tensors = load_file(path)
    given = tensors.pop(name)
    changed = {
        "fewer": given[1:],
        "one for all": given[:1],
        "flat": given.reshape(-1, 64),
        "signed": given.view(np.int8),
        "float": given.astype(np.float32),
    }
    if change in changed:
        tensors[name] = np.ascontiguousarray(changed[change])
    save_file(tensors, path)
    with pytest.raises(CollectionDamagedError, match=r"is damaged \(its thumbnails are corrupted\)"):
        files.read(1)
