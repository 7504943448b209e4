"""Measures of retrieval, ordering, label agreement, shot boundaries and segments.

Retrieval measures take ``(scores [Q, G], relevance [Q, G])``, where higher scores mean more similar, and return a
float or one value per query. The `ranking` module documents their common rules (ties, excluded pairs, skipped queries).
"""

from vidkin._base.boundaries import (
    Boundary,
    BoundaryRule,
    DetectionScores,
    boundaries_of_shots,
    boundary_scores,
    clip_scores,
)
from vidkin.metric.measures.average_precision import (
    average_precision,
    average_precision_per_level,
    mean_average_precision,
    micro_average_precision,
)
from vidkin.metric.measures.graded import (
    Gain,
    LevelWeights,
    average_set_intersection,
    hierarchical_average_precision,
    ndcg,
)
from vidkin.metric.measures.labels import accuracy, accuracy_per_class, normalized_mutual_information
from vidkin.metric.measures.order import TripletWeighting, quadlet_precision, triplet_precision
from vidkin.metric.measures.ranking import CountedMean, QueryReduction, Ties, graded_relevance
from vidkin.metric.measures.recall import RecallForm, map_at_r, r_precision, recall_at_k
from vidkin.metric.measures.segments import (
    SegmentScores,
    segment_average_precision,
    segment_f_score,
    segment_precision_recall,
    segment_scores,
    temporal_average_precision,
)
from vidkin.metric.measures.streaming import RetrievalAccumulator

__all__ = [
    "Boundary",
    "BoundaryRule",
    "CountedMean",
    "DetectionScores",
    "Gain",
    "LevelWeights",
    "QueryReduction",
    "RecallForm",
    "RetrievalAccumulator",
    "SegmentScores",
    "Ties",
    "TripletWeighting",
    "accuracy",
    "accuracy_per_class",
    "average_precision",
    "average_precision_per_level",
    "average_set_intersection",
    "boundaries_of_shots",
    "boundary_scores",
    "clip_scores",
    "graded_relevance",
    "hierarchical_average_precision",
    "map_at_r",
    "mean_average_precision",
    "micro_average_precision",
    "ndcg",
    "normalized_mutual_information",
    "quadlet_precision",
    "r_precision",
    "recall_at_k",
    "segment_average_precision",
    "segment_f_score",
    "segment_precision_recall",
    "segment_scores",
    "temporal_average_precision",
    "triplet_precision",
]
