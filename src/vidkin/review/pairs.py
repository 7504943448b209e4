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

# Videos that pairs are drawn from at a time; all of a small index.
_MOST_VIDEOS = 400
# Ranks among the neighbors of a video from which pairs are drawn: copies, what is alike, and anything.
_RANKS = (1, 1, 2, 4, 8, 0)


@dataclass(frozen=True, slots=True)
class SuggestedPair(Result):
    """Two videos that nobody judged yet.

    Attributes:
        first, second: Their records.
        similarity: Cosine of their centered mean descriptors, in [-1, 1].
    """

    first: VideoRecord
    second: VideoRecord
    similarity: float


def suggest_pairs(index: Index, labels: Labels, *, limit: int = 10) -> list[SuggestedPair]:
    """Pairs that were not judged, from near to far, so that verdicts of every kind result.

    The draw depends on the number of verdicts alone: the same pairs come again until one is judged.

    Args:
        index: With features.
        labels: What was judged.
        limit: Number of pairs at most.
    """
    check_at_least(1, limit=limit)
    by_content = {
        record.content_hash: record
        for record in index.videos()
        if record.status == "ok" and record.frames and record.content_hash
    }
    draw = random.Random(len(labels.pairs))
    records = list(by_content.values())
    if len(records) > _MOST_VIDEOS:
        records = draw.sample(records, _MOST_VIDEOS)
    if len(records) < 2:
        return []
    vectors = video_vectors(index, records)
    vectors = torch.nn.functional.normalize(vectors - vectors.mean(0), dim=-1)
    similarity = vectors @ vectors.T
    order = similarity.fill_diagonal_(-2.0).argsort(dim=1, descending=True)
    judged = {(label.first, label.second) for label in labels.pairs}
    suggestions: list[SuggestedPair] = []
    # Some draws meet a pair that is judged; after many in a row there is nothing left.
    for _ in range(50 * limit):
        rank = draw.choice(_RANKS)
        place = draw.randrange(len(records))
        last = len(records) - 2
        other = int(order[place, min(rank - 1, last) if rank else draw.randint(0, last)])
        first, second = sorted((records[place], records[other]), key=lambda record: record.content_hash)
        if (first.content_hash, second.content_hash) not in judged:
            judged.add((first.content_hash, second.content_hash))
            suggestions.append(SuggestedPair(first, second, float(similarity[place, other])))
        if len(suggestions) == limit:
            break
    return suggestions


def video_vectors(index: Index, records: list[VideoRecord]) -> torch.Tensor:
    """[N, D]: mean descriptors of videos."""
    return torch.stack([describe_video_whole(index.store.read(record.id)) for record in records])
