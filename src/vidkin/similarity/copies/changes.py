"""Whether two stretches change together, which distinguishes copies from other moments before the same fixed camera.

Shapes: Tq, Tt frames; n matched pairs of frames; R regions; D dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from vidkin.similarity.alignment import align
from vidkin.similarity.copies.evidence import count_different, match_frames
from vidkin.similarity.copies.settings import ScoreSettings
from vidkin.similarity.frame_features import FrameFeatures
from vidkin.similarity.segment import Segment

__all__ = ["Changes", "compare_changes", "split_by_changes"]

# A segment with less agreement can consist of pieces in another order.
_DISAGREEMENT = 0.5
# How much more the pieces must explain than the segment.
_GAIN = 1.2
# Least correlation and energy of changes of a piece: two still stretches say nothing about their order.
_PIECE_CORRELATION = 0.7
_PIECE_ENERGY = 4.0
_PIECE_THRESHOLD = 0.5
# Least number of frames of a segment that is divided, and cells above which a segment is not examined.
_FEWEST_FRAMES = 5
_MOST_CELLS = 1 << 23


@dataclass(frozen=True, slots=True)
class Changes:
    """Evidence from the changes of two stretches.

    Attributes:
        agreement: Share of their similarity that remains, in [0, 1]: 1 if they change together or too little to tell.
        confirmation: How far changes prove them to be the same, in [0, 1]: 0 if too little changes to tell.
    """

    agreement: float
    confirmation: float


def compare_changes(
    query: FrameFeatures,
    target: FrameFeatures,
    rows: torch.Tensor,
    columns: torch.Tensor,
    settings: ScoreSettings,
) -> Changes:
    """Compare how two stretches change.

    With r the descriptors minus their mean over the stretch, ``rho = <r_q, r_t> / (|r_q| |r_t|)`` over all regions and
    frames, minus the value that so few frames reach by chance, and scaled to [0, 1] between ``change_least`` and
    ``change_full``. Two moments before a fixed camera look alike, but their changes are not correlated. The less a
    stretch changes (energy e of the calmer side), the less this says: with the trust ``t = e^2 / (e^2 +
    change_energy^2)`` the agreement is ``1 - change_share t (1 - rho)`` and the confirmation ``t rho``.

    Args:
        query, target: Features of the two videos.
        rows: [n] frames of the query.
        columns: [n] the matching frames of the target, in order.
        settings: Constants of the score.
    """
    energy, correlation = _change(query.whole[rows], target.whole[columns])
    if energy <= 0:
        return Changes(1.0, 0.0)
    correlation -= settings.change_chance / math.sqrt(max(count_different(columns) - 1, 1))
    related = (correlation - settings.change_least) / (settings.change_full - settings.change_least)
    related = min(1.0, max(0.0, related))
    trust = energy**2 / (energy**2 + settings.change_energy**2)
    return Changes(1.0 - settings.change_share * trust * (1.0 - related), trust * related)


def split_by_changes(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: torch.Tensor,
    segments: Sequence[Segment],
    settings: ScoreSettings,
) -> list[Segment]:
    """Divide segments whose pieces come in another order; return all segments.

    Before a fixed camera all frames look alike, so one line through all of them explains more than the pieces. Only
    the changes show where each piece is: the segment's part of the map is replaced by the correlation of changes and
    aligned again.
    """
    result: list[Segment] = []
    for segment in segments:
        pieces = _find_pieces(query, target, frame_map, segment, settings)
        result += pieces or [segment]
    return result


def _find_pieces(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: torch.Tensor,
    segment: Segment,
    settings: ScoreSettings,
) -> list[Segment]:
    rows, columns = match_frames(query, target, segment)
    if count_different(columns) < _FEWEST_FRAMES:
        return []
    explained, agreement = _explained(query, target, frame_map, segment, settings)
    if agreement >= _DISAGREEMENT:
        return []
    stretch = torch.arange(int(columns.min()), int(columns.max()) + 1)
    if len(rows) * len(stretch) > _MOST_CELLS:
        return []
    flat = [values.float().flatten(1) for values in (query.whole[rows], target.whole[stretch])]
    changes = [torch.nn.functional.normalize(values - values.mean(0), dim=1) for values in flat]
    similar = frame_map[rows][:, stretch] > settings.threshold
    segments = align(
        (changes[0] @ changes[1].T).clamp(0, 1) * similar,
        query.timestamps[rows],
        target.timestamps[stretch],
        query_weights=query.information[rows],
        target_weights=target.information[stretch],
        threshold=_PIECE_THRESHOLD,
        maximum_segments=settings.maximum_segments,
        mirrored=segment.mirrored,
    )
    pieces = []
    for piece in segments:
        rows, columns = match_frames(query, target, piece)
        energy, correlation = _change(query.whole[rows], target.whole[columns])
        if correlation >= _PIECE_CORRELATION and energy >= _PIECE_ENERGY * settings.change_energy:
            weights = torch.minimum(query.information[rows], target.information[columns])
            mean = float((weights * frame_map[rows, columns]).sum() / weights.sum())
            pieces.append(replace(piece, score=min(1.0, mean)))
    gained = sum(_explained(query, target, frame_map, piece, settings)[0] for piece in pieces)
    return pieces if gained > _GAIN * explained else []


def _explained(
    query: FrameFeatures,
    target: FrameFeatures,
    frame_map: torch.Tensor,
    segment: Segment,
    settings: ScoreSettings,
) -> tuple[float, float]:
    """Informative similarity along a segment, scaled by the agreement of its changes, and that agreement."""
    rows, columns = match_frames(query, target, segment)
    agreement = compare_changes(query, target, rows, columns, settings).agreement
    return agreement * float((query.information[rows] * frame_map[rows, columns]).sum()), agreement


def _change(query: torch.Tensor, target: torch.Tensor) -> tuple[float, float]:
    """Energy of change of the calmer of two stretches [n, R, D], and the correlation of their changes."""
    if len(query) < 2:
        return 0.0, 0.0
    query_change = query.float() - query.float().mean(0, keepdim=True)
    target_change = target.float() - target.float().mean(0, keepdim=True)
    query_energy = float(query_change.square().sum())
    target_energy = float(target_change.square().sum())
    energy = min(query_energy, target_energy)
    if energy <= 0:
        return 0.0, 0.0
    correlation = float((query_change * target_change).sum()) / math.sqrt(query_energy * target_energy)
    return energy / (query.shape[0] * query.shape[1]), correlation
