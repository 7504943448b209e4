"""Power failures while a model folder is written: it contains a complete model or none, and can be written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.numpy import load_file, save_file

from tests.support.comparators import passing
from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin.errors import VidkinError
from vidkin.models import EXTRACTOR_WEIGHTS_FILE, load_comparator, read_comparator_info, save_comparator


@pytest.fixture(autouse=True)
def _traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace the network only once for all models of this file, because tracing is the slowest part of saving."""
    trace, drafts = torch.onnx.export, []

    def export(network: object, inputs: object, draft: str, **options: Any) -> None:
        if not drafts:
            trace(network, inputs, draft, **options)
            drafts.append(Path(draft).read_bytes())
        Path(draft).write_bytes(drafts[0])

    monkeypatch.setattr(torch.onnx, "export", export)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A file in place of the weights of an extractor."""
    import numpy as np

    save_file({"weight": np.arange(64, dtype=np.float32)}, tmp_path / "extractor.safetensors")
    return tmp_path / "extractor.safetensors"


def save(folder: Path, weights: Path, turn: int) -> None:
    save_comparator(passing(), folder, weights=weights, notes={"turn": turn})


def check(folder: Path, turn: int) -> None:
    load_comparator(folder)
    assert read_comparator_info(folder).notes["turn"] == turn
    assert len(load_file(folder / EXTRACTOR_WEIGHTS_FILE)["weight"]) == 64


@pytest.mark.kill
@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
@pytest.mark.parametrize("has_model", [False, True], ids=["new folder", "with a model"])
def test_model_can_be_written_again_after_a_power_failure_at_any_operation(
    tmp_path: Path, weights: Path, has_model: bool, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = count_operations(monkeypatch, lambda: save(tmp_path / "whole", weights, 0))
    assert operations.count("rename") == 4
    for turn in range(len(operations)):
        folder, power = tmp_path / f"{turn}", PowerCut(turn, names)
        if has_model:
            save(folder, weights, 1)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", power)
            with pytest.raises(PowerCutError):
                save(folder, weights, 2)
        power.lose()
        if has_model:
            check(folder, read_comparator_info(folder).notes["turn"])
        elif (folder / "config.toml").exists():
            check(folder, 2)
        save(folder, weights, 3)
        check(folder, 3)


@pytest.mark.thorough
def test_a_write_error_leaves_a_complete_model(tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(len(count_operations(monkeypatch, lambda: save(tmp_path / "whole", weights, 0)))):
        folder = tmp_path / f"{turn}"
        save(folder, weights, 1)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            try:
                save(folder, weights, 2)
            except VidkinError as error:
                said = str(error)
            else:
                said = ""
        check(folder, read_comparator_info(folder).notes["turn"])
        assert not said or "No space left on device" in said
