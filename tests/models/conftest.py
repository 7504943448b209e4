"""Small models and weights shared by the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from vidkin.features import import_timm
from vidkin.models import Encoder, EncoderConfig, build_model


@pytest.fixture(scope="session")
def tiny_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File with weights of a tiny network whose batch-norm statistics are not the initial ones."""
    path = tmp_path_factory.mktemp("weights") / "test_resnet.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = import_timm().create_model("test_resnet")
        module.train()
        for _ in range(3):
            module(torch.randn(4, 3, 64, 64))
        save_file(module.state_dict(), path)
    return path


def small(kind: str = "clip", **settings: Any) -> Encoder:
    """A small model in eval mode."""
    plain: dict[str, Any] = {"kind": kind, "size": 32, "hidden": 24, "width": 0.5, "frames": 6}
    if kind == "clip":
        plain["lstm"] = 16
    if kind in ("c3d", "deep_sbd"):
        plain |= {"classes": 3, "width": 0.125, "frames": 8}
    if kind == "deep_ranking":
        plain["size"] = 64
    return build_model(EncoderConfig(**{**plain, **settings})).eval()


def clips(count: int, frames: int, size: int = 32, seed: int = 0) -> torch.Tensor:
    """Random clips with values from 0 to 1, [count, frames, 3, size, size]."""
    return torch.rand(count, frames, 3, size, size, generator=torch.Generator().manual_seed(seed))


def pictures(count: int, size: int = 32, seed: int = 0) -> torch.Tensor:
    """Random images with values from 0 to 1, [count, 3, size, size]."""
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(seed))
