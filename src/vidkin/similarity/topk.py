"""The mean of the k largest values of a row, where k depends on the number of valid values."""

from __future__ import annotations

import torch

from vidkin.errors import InvalidArgumentError

__all__ = ["check_top_share", "mean_of_largest", "mean_of_valid", "top_count"]

# Up to this many elementwise passes, a selection over a short dimension is faster than torch.topk.
_SELECTION_PASSES = 64


def top_count(share: float | None, size: int, longest: int | None = None) -> int:
    """How many of ``size`` values TopK-Chamfer averages: ``max(1, round(share * size))``; 1 if share is None.

    Halves round to the even neighbor, as in Python's ``round``. Sizes above ``longest`` count as ``longest``. A share
    above 1 is the number itself, or ``size`` if there are fewer values.
    """
    if share is not None and share > 1.0:
        return max(1, min(size, int(share)))
    counted = size if longest is None else min(size, longest)
    return 1 if share is None else max(1, round(share * counted))


def check_top_share(name: str, share: float | None) -> None:
    """Raise InvalidArgumentError unless share is None, in [0, 1], or a whole number of at least 2."""
    if share is not None and not (0.0 <= share <= 1.0 or (share > 1.0 and float(share).is_integer())):
        raise InvalidArgumentError(
            f"{name} must be None (the largest value alone), a share in [0, 1] or a number of values, 2 or more, "
            f"got {share}"
        )


def mean_of_largest(
    values: torch.Tensor,
    *,
    dim: int,
    share: float | None,
    valid: torch.Tensor | None = None,
    longest: int | None = None,
) -> torch.Tensor:
    """Mean of the ``k = max(1, round(share * n))`` largest values along ``dim``, where n values are valid.

    Args:
        values: Floating point, any shape; bfloat16 and float16 are averaged in float32.
        dim: The dimension to reduce, not negative.
        share: The paper's k_s or k_t, or k itself if above 1; None takes only the largest value.
        valid: Boolean mask with as many dimensions as values, broadcastable to them; None if all are valid.
        longest: Largest n used to compute k; None sets no limit.

    Returns:
        Means without ``dim``; 0 where nothing is valid. A mean is float64 for float64 and float32 otherwise; a single
        largest value keeps its type.
    """
    size = values.shape[dim]
    count = top_count(share, size, longest)
    if valid is None:
        if count == 1:
            return values.amax(dim)
        if count == size:
            return values.mean(dim, dtype=_mean_type(values))
        if count * size <= _SELECTION_PASSES:
            # Keep the largest in order while the slices along ``dim`` pass: elementwise, so fast for few.
            best: list[torch.Tensor] = []
            for item in values.unbind(dim):
                for place, held in enumerate(best):
                    best[place] = torch.maximum(held, item)
                    if place + 1 < count:
                        item = torch.minimum(held, item)
                if len(best) < count:
                    best.append(item)
            return torch.stack([item.to(_mean_type(values)) for item in best]).mean(0)
        return values.topk(count, dim=dim, sorted=False).values.mean(dim, dtype=_mean_type(values))
    available = valid.sum(dim, keepdim=True)
    # The table holds k for every number of valid values, so that nothing has to be copied back from the device.
    table = torch.tensor(
        [top_count(share, number, longest) for number in range(size + 1)], device=values.device
    )
    wanted = table[available]
    largest = values.masked_fill(~valid, -torch.inf).topk(count, dim=dim).values
    rank = torch.arange(count, device=values.device).view([-1 if d == dim else 1 for d in range(values.ndim)])
    kept = torch.where((rank < wanted) & (available > 0), largest, 0.0)
    return kept.sum(dim, dtype=_mean_type(values)) / wanted.squeeze(dim)


def mean_of_valid(values: torch.Tensor, *, dim: int, valid: torch.Tensor | None = None) -> torch.Tensor:
    """Mean along ``dim`` of the valid values, 0 where nothing is valid; float64 for float64, float32 otherwise."""
    if valid is None:
        return values.mean(dim, dtype=_mean_type(values))
    total = torch.where(valid, values, 0.0).sum(dim, dtype=_mean_type(values))
    return total / valid.sum(dim).clamp(min=1)


def _mean_type(values: torch.Tensor) -> torch.dtype:
    return torch.float64 if values.dtype == torch.float64 else torch.float32
