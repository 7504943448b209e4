"""Copy retrieval: videos edited as people edit them, searched for among all copies and unrelated videos."""

from vidkin.experiments.copies.material import CopyMaterial, Families, GalleryVideo, QueryClip, make_copies
from vidkin.experiments.copies.page import as_page
from vidkin.experiments.copies.scores import (
    localization_errors,
    relevance_of,
    summarize_copies,
    summarize_search,
)
from vidkin.experiments.copies.systems import (
    SearchScores,
    has_vpdq,
    phash_scores,
    search_scores,
    vpdq_scores,
)

__all__ = [
    "CopyMaterial",
    "Families",
    "GalleryVideo",
    "QueryClip",
    "SearchScores",
    "as_page",
    "has_vpdq",
    "localization_errors",
    "make_copies",
    "phash_scores",
    "relevance_of",
    "search_scores",
    "summarize_copies",
    "summarize_search",
    "vpdq_scores",
]
