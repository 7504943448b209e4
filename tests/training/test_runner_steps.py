"""Training that saves its state between steps and resumes from it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError, TrainingError
from vidkin.training import take_steps
from vidkin.training.runner import StepStore


def train_steps(
    folder: Path | None, *, press_at: int = 0, fingerprint: str = "a", every: int = 50, factor: float = 1.0
) -> tuple[nn.Linear, list[dict[str, float]]]:
    """Train a linear layer for six steps on random batches from one generator, with Ctrl-C in the step ``press_at``."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(1)
    store = StepStore(folder, fingerprint, every=every)
    first = store.restore(model, optimizer, generator)

    def batches() -> Iterator[Tensor]:
        for _ in range(first, 6):
            yield torch.rand(4, 3, generator=generator) * factor

    def objective(layer: nn.Linear, batch: Tensor) -> dict[str, Tensor]:
        return {"loss": layer(batch).square().mean()}

    def on_step(number: int, terms: object) -> None:
        if number == press_at:
            signal.raise_signal(signal.SIGINT)

    steps = take_steps(model, objective, optimizer, batches(), first=first)
    store.follow(steps, model, optimizer, generator, on_step=on_step)
    return model, store.terms


def test_training_resumes_with_the_same_weights_and_terms(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_steps(tmp_path, press_at=4)
    resumed, terms = train_steps(tmp_path)
    whole, all_terms = train_steps(None)
    assert torch.equal(resumed.weight, whole.weight)
    assert terms == all_terms
    assert len(terms) == 6


def test_the_state_is_stored_at_intervals(tmp_path: Path) -> None:
    train_steps(tmp_path, every=2)
    resumed, terms = train_steps(tmp_path, every=2)
    assert len(terms) == 6  # no steps were left
    assert torch.equal(resumed.weight, train_steps(None)[0].weight)
    StepStore(tmp_path).finish()
    assert list(tmp_path.iterdir()) == []


def test_checkpoint_of_another_run_is_rejected(tmp_path: Path) -> None:
    train_steps(tmp_path, every=2)
    with pytest.raises(InvalidArgumentError, match=r"unfinished training run with a different recipe, .*--restart"):
        train_steps(tmp_path, fingerprint="b")


def test_non_finite_loss_saves_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="step 1: the loss is"):
        train_steps(tmp_path, every=1, factor=float("nan"))
    assert list(tmp_path.iterdir()) == []
