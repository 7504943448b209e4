"""Human verdicts on video pairs and cuts, stored as labels, and training on them with an index's features."""

from vidkin.review.cuts import (
    CorrectedShots,
    CutReview,
    corrections_version,
    forget_corrected,
    read_corrected,
    read_detector,
    train_cuts,
    use_detector,
    write_corrected,
)
from vidkin.review.labels import (
    REVIEW_FOLDER,
    CutLabel,
    Labels,
    PairLabel,
    Readiness,
    readiness_of_cuts,
    readiness_of_pairs,
)
from vidkin.review.measure import (
    MeasureReview,
    SuggestedPair,
    read_reviews,
    suggest_pairs,
    train_measure,
    use_measure,
)

__all__ = [
    "REVIEW_FOLDER",
    "CorrectedShots",
    "CutLabel",
    "CutReview",
    "Labels",
    "MeasureReview",
    "PairLabel",
    "Readiness",
    "SuggestedPair",
    "corrections_version",
    "forget_corrected",
    "read_corrected",
    "read_detector",
    "read_reviews",
    "readiness_of_cuts",
    "readiness_of_pairs",
    "suggest_pairs",
    "train_cuts",
    "train_measure",
    "use_detector",
    "use_measure",
    "write_corrected",
]
