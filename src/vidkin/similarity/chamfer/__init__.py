"""Chamfer similarity over regions, which gives maps of frames, and over times, which gives one number."""

from vidkin.similarity.chamfer.frame_maps import frame_similarity, frame_similarity_many
from vidkin.similarity.chamfer.temporal_chamfer import length_mask, temporal_chamfer
from vidkin.similarity.chamfer.video import video_similarity, video_similarity_pairwise

__all__ = [
    "frame_similarity",
    "frame_similarity_many",
    "length_mask",
    "temporal_chamfer",
    "video_similarity",
    "video_similarity_pairwise",
]
