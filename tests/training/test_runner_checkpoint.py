"""Checkpoints and random states, from which runs are resumed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.models import random_state, restore_random_state, seeded
from vidkin.training.runner import Checkpoint, load_optimizer, optimizer_tensors


class TestCheckpoint:
    def test_is_restored_bit_for_bit_without_leftover_files(self, tmp_path: Path) -> None:
        tensors = {
            "a": torch.rand(3, 2),
            "b": torch.tensor([1, 2]),
            "c": torch.tensor(0.1, dtype=torch.float64),
        }
        Checkpoint(7, tensors, {"x": 0.1 + 0.2, "y": None}).write(tmp_path / "file")
        features = Checkpoint.read(tmp_path / "file")
        assert (features.step, features.values) == (7, {"x": 0.1 + 0.2, "y": None})
        assert all(torch.equal(features.tensors[name], tensor) for name, tensor in tensors.items())
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    @pytest.mark.parametrize("kind", ["adamw", "sgd"])
    def test_an_optimizer_continues_exactly(self, kind: str) -> None:
        def made() -> tuple[torch.nn.Linear, torch.optim.Optimizer]:
            torch.manual_seed(0)
            layer = torch.nn.Linear(3, 2)
            if kind == "sgd":
                return layer, torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
            return layer, torch.optim.AdamW(layer.parameters(), lr=0.1)

        def step(layer: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> None:
            optimizer.zero_grad()
            layer(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()

        first, first_optimizer = made()
        step(first, first_optimizer)
        second, second_optimizer = made()
        second.load_state_dict(first.state_dict())
        load_optimizer(second_optimizer, optimizer_tensors(first_optimizer))
        for _ in range(3):
            step(first, first_optimizer)
            step(second, second_optimizer)
        assert torch.equal(first.weight, second.weight)

    def test_a_newer_format_is_rejected(self, tmp_path: Path) -> None:
        from safetensors.torch import save_file

        save_file({"a": torch.zeros(1)}, tmp_path / "file", metadata={"format": "99", "step": "1", "values": "{}"})
        with pytest.raises(InvalidArgumentError, match="written by a newer version of vidkin"):
            Checkpoint.read(tmp_path / "file")

    @pytest.mark.parametrize("changed", [{"step": "x"}, {"format": ""}, {"noted": "[" * 100_000}, {"noted": "{"}])
    def test_damaged_metadata_is_rejected(self, tmp_path: Path, changed: dict[str, str]) -> None:
        from safetensors.torch import save_file

        metadata = {"format": "1", "step": "1", "noted": "{}", **changed}
        save_file({"a": torch.zeros(1)}, tmp_path / "file", metadata=metadata)
        with pytest.raises(InvalidArgumentError, match=r"the checkpoint is damaged .*--restart"):
            Checkpoint.read(tmp_path / "file")

    def test_a_missing_folder_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"the checkpoint cannot be written"):
            Checkpoint(1, {"a": torch.zeros(1)}, {}).write(tmp_path / "nowhere" / "file")


class TestRandomness:
    @staticmethod
    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    def test_states_can_be_stored_as_json(self) -> None:
        tensors, values = random_state()
        expected = self.drawn()
        restore_random_state(tensors, json.loads(json.dumps(values)))
        assert self.drawn() == expected

    def test_seeded_restores_the_state_after_the_block(self) -> None:
        tensors, values = random_state()
        expected = self.drawn()
        restore_random_state(tensors, values)
        with seeded(3):
            first = self.drawn()
        assert self.drawn() == expected
        with seeded(3):
            assert self.drawn() == first
