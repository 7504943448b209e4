"""Which pairs of an index a person should judge next."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from vidkin._base.checks import check_at_least
from vidkin._base.plain_values import Result
from vidkin.index import Index, VideoRecord
from vidkin.review.labels import Labels
from vidkin.similarity.reviewed import describe_video_whole

__all__ = ["SuggestedPair", "suggest_pairs", "video_vectors"]

# Number of videos that pairs are drawn from at a time; a small index is used whole.
_MOST_DRAWN = 400
# Ranks of neighbors from which pairs are drawn: likely copies, similar videos, and any others.
_RANKS = (1, 1, 2, 4, 8, 0)


@dataclass(frozen=True, slots=True)
class SuggestedPair(Result):
    """Two videos that have not been judged yet.

    Attributes:
        first, second: Records of the two videos.
        similarity: Cosine of their centered mean descriptors, in [-1, 1].
    """

    first: VideoRecord
    second: VideoRecord
    similarity: float


def suggest_pairs(index: Index, labels: Labels, *, limit: int = 10) -> list[SuggestedPair]:
    """Suggest pairs that have not been judged, from similar to dissimilar, so that all verdicts occur.

    The draw depends only on the number of verdicts: the same pairs are suggested until one is judged.

    Args:
        index: Index with features.
        labels: Labels given so far.
        limit: Maximum number of pairs.
    """
    check_at_least(1, limit=limit)
    by_content = {
        record.content_hash: record
        for record in index.videos()
        if record.status == "ok" and record.frames and record.content_hash
    }
    draw = random.Random(len(labels.pairs))
    records = list(by_content.values())
    if len(records) > _MOST_DRAWN:
        records = draw.sample(records, _MOST_DRAWN)
    if len(records) < 2:
        return []
    vectors = video_vectors(index, records)
    vectors = torch.nn.functional.normalize(vectors - vectors.mean(0), dim=-1)
    similarity = vectors @ vectors.T
    order = similarity.fill_diagonal_(-2.0).argsort(dim=1, descending=True)
    judged = {(label.first, label.second) for label in labels.pairs}
    suggestions: list[SuggestedPair] = []
    # Some draws hit a judged pair; after many in a row nothing is left.
    for _ in range(50 * limit):
        rank = draw.choice(_RANKS)
        position = draw.randrange(len(records))
        last = len(records) - 2
        other = int(order[position, min(rank - 1, last) if rank else draw.randint(0, last)])
        first, second = sorted((records[position], records[other]), key=lambda record: record.content_hash)
        if (first.content_hash, second.content_hash) not in judged:
            judged.add((first.content_hash, second.content_hash))
            suggestions.append(SuggestedPair(first, second, float(similarity[position, other])))
        if len(suggestions) == limit:
            break
    return suggestions


def video_vectors(index: Index, records: list[VideoRecord]) -> torch.Tensor:
    """[N, D]: mean descriptors of videos."""
    return torch.stack([describe_video_whole(index.store.read(record.id)) for record in records])
