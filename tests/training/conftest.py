"""Fixtures of this room."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread(_quiet_threads: None) -> None:
    """Networks of tests are so small that a second thread costs more than it brings."""
    import torch

    torch.set_num_threads(1)
