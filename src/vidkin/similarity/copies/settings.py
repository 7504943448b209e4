"""Constants of the score of copies."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ScoreSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """Constants of the score; docs/scoring.md explains how they were chosen.

    Attributes:
        threshold: Least calibrated similarity at which two frames count toward a match.
        evidence: Seconds of moving, informative, matching video that make a match credible by itself. A match that
            covers one of the two videos does not need this length.
        evidence_of_parts: The same for a part of one picture, which is the best of dozens of parts.
        still: Least value of one minus the cosine of two frames a second apart at which the second counts as new.
        change_energy: Mean squared change of the descriptors at which changes are half trusted: several times the
            change that noise and compression cause in a still picture, so it depends on the extractor.
        change_share: Share of the score, in [0, 1], that is lost when the changes in the two videos are unrelated (two
            moments before one fixed camera).
        change_least: Correlation up to which changes count as unrelated.
        change_full: Correlation from which changes count as the same.
        change_chance: Divided by the square root of the number of frames minus one, this is the correlation that
            unrelated changes reach by chance; it is subtracted.
        doubt: Similarity of two stretches, in [0, 1), that means nothing if no change confirms it.
        doubt_of_plain: Similarity, in [0, 1), that in addition means nothing in pictures without detail.
        spatial_share: k_s of the TopK-Chamfer similarity of two frames.
        maximum_segments: Maximum number of segments reported per pair.
    """

    threshold: float = 0.3
    evidence: float = 2.0
    evidence_of_parts: float = 4.0
    still: float = 0.15
    change_energy: float = 0.005
    change_share: float = 0.9
    change_least: float = 0.25
    change_full: float = 0.6
    change_chance: float = 0.2
    doubt: float = 0.4
    doubt_of_plain: float = 0.4
    spatial_share: float | None = None
    maximum_segments: int = 8
