"""Merge similar neighboring frames into windows, the units of the first stage of search."""

from __future__ import annotations

import torch

from vidkin.index.records import WindowVectors
from vidkin.media.time import SAME_TIME
from vidkin.similarity import FrameFeatures

__all__ = ["frame_vectors", "window_vectors"]


def frame_vectors(values: torch.Tensor) -> torch.Tensor:
    """Average regions [T, R, D] to one unit vector per frame [T, D]; zero where all are zero."""
    return torch.nn.functional.normalize(values.float().mean(dim=1), dim=-1)


def window_vectors(
    features: FrameFeatures,
    *,
    similarity: float = 0.9,
    similarity_of_parts: float = 0.45,
    longest: float = 10.0,
    longest_of_parts: float = 30.0,
    least_information: float = 0.05,
) -> WindowVectors:
    """Merge runs of similar frames, so that a still minute costs the first stage six vectors instead of sixty.

    A frame joins the open window if its vector (:func:`frame_vectors`) has a cosine of at least ``similarity``
    with the window's mean so far and the window stays within ``longest`` seconds; otherwise it opens the
    next one. A frame with less than ``least_information`` belongs to no window and closes the open one; frames in
    which a view was not described are skipped.
    A window's vector is the normalized mean of its frames; it ends when the frame after its last begins
    (the last frame of a video lasts as long as the one before). Every view has windows of its own, those of the whole
    picture first.

    Args:
        features: T frames of V views of R regions with D dimensions; D is the dimension E of the windows.
        similarity: Cosine in [-1, 1]; higher makes more windows.
        similarity_of_parts: The same for views of parts of the picture, of which there are many.
        longest: Maximum length of a window in seconds.
        longest_of_parts: The same for views of parts.
        least_information: Least information of a window, in [0, 1]; 0 gives black frames windows, too.
    """
    starts = features.timestamps.double()
    # The last frame stands as long as the one before it.
    last_step = starts[-1:] - starts[-2:-1] if len(starts) > 1 else torch.zeros_like(starts)
    ends = torch.cat([starts[1:], starts[-1:] + last_step])
    seconds = list(zip(starts.tolist(), ends.tolist(), strict=True))
    informative = features.information >= least_information
    sums: list[torch.Tensor] = []
    spans: list[tuple[int, int]] = []
    for view, values in enumerate(features.values.unbind(1)):
        vectors = frame_vectors(values)
        stretches = _spans(
            vectors,
            informative.tolist(),
            (vectors.norm(dim=-1) > 0.5).tolist(),
            seconds,
            similarity if view == 0 else similarity_of_parts,
            longest if view == 0 else longest_of_parts,
        )
        # Frames in which the view was not described have zero vectors, which do not change the direction.
        sums += [vectors[start : end + 1].sum(dim=0) for start, end in stretches]
        spans += stretches
    if not spans:
        return WindowVectors.empty(features.values.shape[-1])
    first, last = torch.tensor(spans, dtype=torch.int64).unbind(1)
    vectors = torch.nn.functional.normalize(torch.stack(sums), dim=-1)
    return WindowVectors(vectors, starts[first], ends[last], first, last)


def _spans(
    vectors: torch.Tensor,
    informative: list[bool],
    described: list[bool],
    seconds: list[tuple[float, float]],
    similarity: float,
    longest: float,
) -> list[tuple[int, int]]:
    """First and last frame of each window of one view."""
    spans: list[tuple[int, int]] = []
    total: torch.Tensor | None = None
    for at, vector in enumerate(vectors):
        if not informative[at]:
            total = None
        if not (informative[at] and described[at]):
            continue
        if total is not None and (
            seconds[at][1] - seconds[spans[-1][0]][0] <= longest + SAME_TIME
            # vector . mean / |mean|, with the sum in place of the mean.
            and float(vector @ total) >= similarity * float(total.norm())
        ):
            total = total + vector
            spans[-1] = (spans[-1][0], at)
        else:
            total = vector
            spans.append((at, at))
    return spans
