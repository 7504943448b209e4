"""Loading weights from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from vidkin.errors import InvalidArgumentError
from vidkin.features import read_safetensors
from vidkin.models.weights import load_weights


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_rejected(tmp_path: Path, value: float) -> None:
    path = tmp_path / "weights.safetensors"
    module = torch.nn.Linear(3, 2)
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    save_file(state, path)
    load_weights(module, path, label="a layer")
    assert set(read_safetensors(path, purpose="weights")[0]) == {"weight", "bias"}
    state["weight"][1, 2] = value
    save_file(state, path)
    before = module.weight.detach().clone()
    with pytest.raises(InvalidArgumentError, match="weight contains non-finite values; train the model again"):
        load_weights(module, path, label="a layer")
    assert torch.equal(module.weight, before)
    with pytest.raises(InvalidArgumentError, match="weight contains non-finite values; use another weights file"):
        read_safetensors(path, purpose="weights")
