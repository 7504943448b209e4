"""Room similarity: from two sequences of descriptors to a score and to matching segments."""

from vidkin.similarity.alignment import align
from vidkin.similarity.chamfer import frame_similarity, frame_similarity_many
from vidkin.similarity.copies import (
    ScoreSettings,
    background_baseline,
    calibrated_map,
    score_pairs,
)
from vidkin.similarity.frame_set import FrameSet, PairScore
from vidkin.similarity.kinds import score_kinds
from vidkin.similarity.segment import Segment
from vidkin.similarity.temporal import length_mask, temporal_chamfer
from vidkin.similarity.video import (
    MirroredSimilarity,
    best_of_mirror,
    video_similarity,
    video_similarity_many,
    video_similarity_pairwise,
)

__all__ = [
    "FrameSet",
    "MirroredSimilarity",
    "PairScore",
    "ScoreSettings",
    "Segment",
    "align",
    "background_baseline",
    "best_of_mirror",
    "calibrated_map",
    "frame_similarity",
    "frame_similarity_many",
    "length_mask",
    "score_kinds",
    "score_pairs",
    "temporal_chamfer",
    "video_similarity",
    "video_similarity_many",
    "video_similarity_pairwise",
]
