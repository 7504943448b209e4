"""Room similarity: from two sequences of descriptors to a score and to matching segments."""

from vidkin.similarity.chamfer import frame_similarity, frame_similarity_many
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
    "MirroredSimilarity",
    "Segment",
    "best_of_mirror",
    "frame_similarity",
    "frame_similarity_many",
    "length_mask",
    "temporal_chamfer",
    "video_similarity",
    "video_similarity_many",
    "video_similarity_pairwise",
]
