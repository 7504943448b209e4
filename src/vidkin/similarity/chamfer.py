"""Reduce the frame similarity map of two videos to a score. All functions accept NumPy arrays and torch tensors."""

from __future__ import annotations

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.similarity.frame_maps import (
    AnyArray,
    check_top_share,
    mean_of_largest,
    mean_of_valid,
    namespace_of,
)


@check_arguments
def temporal_chamfer(
    similarity: AnyArray,
    *,
    temporal_share: float | None = None,
    symmetric: bool = False,
    query_mask: AnyArray | None = None,
    target_mask: AnyArray | None = None,
    longest: int | None = None,
) -> AnyArray:
    """Compute the similarity of two videos from their map: the mean, over query times, of the best target times.

    ``score = mean over query times x of the mean of the k largest of map[x, :]`` with ``k = max(1,
    round(temporal_share * T'))``, where T' is the number of *valid* target times, so that padding has no effect.

    Args:
        similarity: [..., Tq, Tt] floating point; leading dimensions are a batch.
        temporal_share: k_t in the paper, in [0, 1], or k itself if at least 2; None (default) for the plain Chamfer
            similarity, k = 1.
        symmetric: Average both directions. Each direction computes k from its own number of target times, so a map and
            its transpose give the same score.
        query_mask: [..., Tq] boolean, True for valid query times; None if all are valid.
        target_mask: [..., Tt] boolean, True for valid target times; None if all are valid. If no time is valid, the
            score is 0.
        longest: Maximum T' for computing k, at least 1; None sets no limit. A clip covers only a small part of a long
            video that contains it, so a k that grows with the video's length dilutes the match.

    Returns:
        [...] (a scalar array for a single map), float64 for float64 maps and float32 otherwise; differentiable.

    Raises:
        InvalidArgumentError: The map is empty, a mask has the wrong shape, temporal_share is invalid, or longest is
            below 1.

    Source: HAP-VR (ACM MM 2024), equation 5, with the factor 1/K of its equation 3.
    """
    check_top_share("temporal_share", temporal_share)
    xp = namespace_of(similarity)
    if similarity.ndim < 2 or not xp.isdtype(similarity.dtype, "real floating"):
        raise InvalidArgumentError(
            f"similarity must be [..., Tq, Tt] floating point, got {list(similarity.shape)} {similarity.dtype}"
        )
    if 0 in similarity.shape[-2:]:
        raise InvalidArgumentError(f"similarity must not be empty, got {list(similarity.shape)}")
    for name, mask, size in (("query_mask", query_mask, -2), ("target_mask", target_mask, -1)):
        expected = (*similarity.shape[:-2], similarity.shape[size])
        if mask is not None and (tuple(mask.shape) != expected or mask.dtype != xp.bool):
            raise InvalidArgumentError(f"{name} must be {list(expected)} boolean, got {list(mask.shape)} {mask.dtype}")
    if longest is not None and longest < 1:
        raise InvalidArgumentError(f"longest must be at least 1 or None, got {longest}")
    forward = _score_one_way(similarity, temporal_share, query_mask, target_mask, longest)
    if not symmetric:
        return forward
    return (forward + _score_one_way(similarity.mT, temporal_share, target_mask, query_mask, longest)) / 2


@check_arguments
def length_mask(lengths: AnyArray, size: int) -> AnyArray:
    """Create the mask of padded videos: [..., size] boolean, True for positions below each of the lengths [...]."""
    return namespace_of(lengths).arange(size, device=lengths.device) < lengths[..., None]


def _score_one_way(
    similarity: AnyArray,
    share: float | None,
    query_mask: AnyArray | None,
    target_mask: AnyArray | None,
    longest: int | None,
) -> AnyArray:
    valid = None if target_mask is None else target_mask[..., None, :]
    best = mean_of_largest(similarity, dim=similarity.ndim - 1, share=share, valid=valid, longest=longest)
    return mean_of_valid(best, dim=best.ndim - 1, valid=query_mask)
