"""Copy retrieval: videos with common edits, searched for among all copies and unrelated videos."""

from vidkin.experiments.copies.gallery import CopyMaterial, GalleryVideo, make_copies
from vidkin.experiments.copies.material import (
    FULL,
    HALVES,
    QUICK,
    SMALL,
    ClipSize,
    Half,
    QueryClip,
    Recording,
    find_recordings,
)
from vidkin.experiments.copies.page import as_page
from vidkin.experiments.copies.picture_page import as_picture_page
from vidkin.experiments.copies.scores import CopyFigures, GroupFigures, relevance_of, summarize_copies
from vidkin.experiments.copies.study import (
    CopyReport,
    CopyResults,
    CopyStudy,
    ExtractorChoice,
    choose_extractors,
    run_copy_study,
)
from vidkin.experiments.copies.systems import (
    PairScores,
    SearchCosts,
    has_vpdq,
    phash_scores,
    search_scores,
    vpdq_scores,
)

__all__ = [
    "FULL",
    "HALVES",
    "QUICK",
    "SMALL",
    "ClipSize",
    "CopyFigures",
    "CopyMaterial",
    "CopyReport",
    "CopyResults",
    "CopyStudy",
    "ExtractorChoice",
    "GalleryVideo",
    "GroupFigures",
    "Half",
    "PairScores",
    "QueryClip",
    "Recording",
    "SearchCosts",
    "as_page",
    "as_picture_page",
    "choose_extractors",
    "find_recordings",
    "has_vpdq",
    "make_copies",
    "phash_scores",
    "relevance_of",
    "run_copy_study",
    "search_scores",
    "summarize_copies",
    "vpdq_scores",
]
