"""Power failures while a training run saves its state: it resumes from a complete state to the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.power import PowerCut, PowerCutError, RefusingDisk, count_operations
from vidkin._base import disk
from vidkin.training.runner import StepStore

# Each test trains about fifty times.
pytestmark = pytest.mark.kill

_STEPS = 4


def train(folder: Path) -> torch.Tensor:
    """Train for four steps, saving each one, or continue an earlier call; return the weights."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    folder.mkdir(exist_ok=True)
    store = StepStore(folder, "this training")
    stored = store.read(layer, optimizer)
    for step in range(stored.step if stored else 0, _STEPS):
        optimizer.zero_grad()
        layer(torch.rand(5, 3)).square().sum().backward()
        optimizer.step()
        store.write(step + 1, layer, optimizer)
    weights = layer.weight.detach().clone()
    store.finish()
    return weights


@pytest.mark.parametrize("names", [False, True], ids=["names kept", "names lost"])
def test_training_resumes_after_a_power_failure_at_any_operation(
    tmp_path: Path, names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = train(tmp_path / "whole")
    operations = count_operations(monkeypatch, lambda: train(tmp_path / "whole"))
    assert operations == ["create", "sync", "rename", "sync"] * _STEPS + ["unlink"]
    for turn in range(len(operations)):
        power = PowerCut(turn, names)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", power)
            with pytest.raises(PowerCutError):
                train(tmp_path / f"{turn}")
        power.lose()
        assert torch.equal(train(tmp_path / f"{turn}"), weights), turn


def test_write_error_keeps_the_previous_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = train(tmp_path / "whole")
    for turn in range(4 * _STEPS):
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", RefusingDisk(turn))
            with pytest.raises(Exception, match="No space left on device"):
                train(tmp_path / f"{turn}")
        assert torch.equal(train(tmp_path / f"{turn}"), weights), turn
