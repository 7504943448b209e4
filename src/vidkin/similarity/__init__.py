"""Compare two videos by their descriptors: similarity score and matching segments.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.similarity.chamfer import (
        length_mask,
        temporal_chamfer,
    )
    from vidkin.similarity.contracts import (
        SCORE_REVISION,
        WHOLE,
        Box,
        FrameFeatures,
        PairScore,
        Scorer,
        Segment,
        fingerprint_of_scores,
    )
    from vidkin.similarity.frame_maps import (
        frame_similarity,
        frame_similarity_many,
    )
    from vidkin.similarity.scale import EXCERPT, SURE, UNRELATED
    from vidkin.similarity.sound import SOUND_RATE, PairTable, SoundFeatures, SoundScore
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "EXCERPT",
    "SCORE_REVISION",
    "SOUND_RATE",
    "SURE",
    "UNRELATED",
    "WHOLE",
    "Box",
    "FrameFeatures",
    "PairScore",
    "PairTable",
    "Scorer",
    "Segment",
    "SoundFeatures",
    "SoundScore",
    "fingerprint_of_scores",
    "frame_similarity",
    "frame_similarity_many",
    "length_mask",
    "temporal_chamfer",
]
