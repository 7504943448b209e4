"""From two sequences of descriptors to a score and to matching segments.

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.similarity.alignment import align
    from vidkin.similarity.chamfer import (
        length_mask,
        temporal_chamfer,
    )
    from vidkin.similarity.contracts import (
        SCORE_REVISION,
        WHOLE,
        BestScores,
        Box,
        FrameFeatures,
        PairScore,
        Scorer,
        ScorerOfBest,
        Segment,
        fingerprint_of_scores,
    )
    from vidkin.similarity.copies import CopyScorer
    from vidkin.similarity.evidence import ScoreSettings
    from vidkin.similarity.frame_maps import (
        background_baseline,
        calibrated_map,
        frame_similarity,
        frame_similarity_many,
    )
    from vidkin.similarity.learned import LEARNED, LearnedScorer, VideoComparator
    from vidkin.similarity.reviewed import ReviewedScorer, ReviewMeasure
    from vidkin.similarity.scale import EXCERPT, SURE, UNRELATED
    from vidkin.similarity.scorers import KindScorer, available_scorers, finds_segments, open_scorer, scorer_of
    from vidkin.similarity.sound import SOUND_RATE, PairTable, SoundFeatures, SoundScore
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "EXCERPT",
    "LEARNED",
    "SCORE_REVISION",
    "SOUND_RATE",
    "SURE",
    "UNRELATED",
    "WHOLE",
    "BestScores",
    "Box",
    "CopyScorer",
    "FrameFeatures",
    "KindScorer",
    "LearnedScorer",
    "PairScore",
    "PairTable",
    "ReviewMeasure",
    "ReviewedScorer",
    "ScoreSettings",
    "Scorer",
    "ScorerOfBest",
    "Segment",
    "SoundFeatures",
    "SoundScore",
    "VideoComparator",
    "align",
    "available_scorers",
    "background_baseline",
    "calibrated_map",
    "finds_segments",
    "fingerprint_of_scores",
    "frame_similarity",
    "frame_similarity_many",
    "length_mask",
    "open_scorer",
    "scorer_of",
    "temporal_chamfer",
]
