"""The training loop equals a plain loop bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from vidkin.errors import TrainingError
from vidkin.training import Decay, OneCycle, take_steps
from vidkin.training.engine import check_finite, read_terms

Batch = tuple[Tensor, Tensor]


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))


def batches(count: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 4, generator=generator), torch.randn(6, 2, generator=generator)) for _ in range(count)]


def squared_error(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    inputs, targets = batch
    return {"loss": (model(inputs) - targets).square().mean(), "inputs": inputs.mean()}


def weights(model: nn.Module) -> list[Tensor]:
    return [tensor.clone() for tensor in model.state_dict().values()]


def by_hand(count: int, scheduler_steps: int | None = None) -> tuple[list[float], list[Tensor]]:
    """A plain training loop."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=1e-3)
    scheduler = None
    if scheduler_steps:
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=scheduler_steps)
    losses = []
    torch.manual_seed(7)
    for inputs, targets in batches(count):
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return losses, weights(model)


@pytest.mark.parametrize("one_cycle", [False, True])
def test_steps_equal_a_plain_loop(one_cycle: bool) -> None:
    losses, expected = by_hand(12, 13 if one_cycle else None)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=1e-3)
    torch.manual_seed(7)
    steps = list(
        take_steps(
            model,
            squared_error,
            optimizer,
            batches(12),
            schedule=OneCycle(13) if one_cycle else None,
            clip=0.5,
        )
    )
    assert [step.number for step in steps] == list(range(1, 13))
    assert [terms["loss"] for terms in read_terms(steps)] == losses
    assert all(map(torch.equal, weights(model), expected))


def test_batches_are_taken_lazily_and_the_caller_may_stop_between_steps() -> None:
    taken = []

    def stream() -> Iterator[Batch]:
        for number, batch in enumerate(batches(5)):
            taken.append(number)
            yield batch

    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in take_steps(model, squared_error, optimizer, stream()):
        assert taken == list(range(step.number))
        # A change of mode between two steps, for example by validation, does not persist.
        model.eval()
        if step.number == 3:
            break
    assert taken == [0, 1, 2]


def test_second_call_continues_where_the_first_ended() -> None:
    states = []
    for parts in ([(0, 10)], [(0, 4), (4, 10)]):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = Decay(kind="cosine", steps=10, warm_up=2)
        torch.manual_seed(3)
        numbers = [
            step.number
            for begin, end in parts
            for step in take_steps(
                model,
                squared_error,
                optimizer,
                batches(10)[begin:end],
                schedule=schedule,
                first=begin,
            )
        ]
        assert numbers == list(range(1, 11))
        states.append(weights(model))
    assert all(map(torch.equal, *states))


def test_parameter_groups_keep_their_own_learning_rates() -> None:
    model = network()
    groups = [
        {"params": list(model[0].parameters()), "lr": 0.1},
        {"params": list(model[4].parameters()), "lr": 1.0},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    schedule = OneCycle(10)
    for step in take_steps(model, squared_error, optimizer, batches(3), schedule=schedule):
        first, second = optimizer.param_groups
        assert step.learning_rate == first["lr"] == schedule.rate(step.number - 1, 0.1)
        assert second["lr"] == schedule.rate(step.number - 1, 1.0)
        assert first["momentum"] == second["momentum"] == schedule.momentum(step.number - 1)


def test_terms_are_detached_tensors_until_they_are_read() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = list(take_steps(model, squared_error, optimizer, batches(2)))
    for step in steps:
        assert set(step.terms) == {"loss", "inputs", "gradient"}
        assert not any(term.requires_grad for term in step.terms.values())
    assert read_terms([]) == []
    read = read_terms(steps)
    assert read[1]["inputs"] == batches(2)[1][0].mean().item()
    assert read[0]["gradient"] > 0


def test_objective_runs_in_mixed_precision() -> None:
    types = []

    def objective(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        output = model(batch[0])
        types.append(output.dtype)
        return {"loss": output.float().square().mean()}

    for precision in ("float32", "bfloat16"):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        list(take_steps(model, objective, optimizer, batches(1), precision=precision))  # type: ignore[arg-type]
    assert types == [torch.float32, torch.bfloat16]


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"loss": math.nan, "gradient": 1.0}, "step 4: the loss is nan and the gradient norm is 1.0"),
        ({"loss": 0.5, "gradient": math.inf}, r"gradient norm is inf; reduce the learning rate, or clip the gradient"),
    ],
)
def test_non_finite_loss_is_an_error(terms: dict[str, float], message: str) -> None:
    check_finite(4, {"loss": 0.5, "gradient": 0.0})
    with pytest.raises(TrainingError, match=message):
        check_finite(4, terms)
