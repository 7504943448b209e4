"""Constants of the score of copies."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ScoreSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """Constants of the score; how they were chosen is in docs/scoring.md.

    Attributes:
        threshold: Calibrated frame similarity from which two frames count for a match.
        evidence: Seconds of moving, informative, matching video that make a match believable by itself. A
            match that covers one of the two videos needs no such length.
        evidence_of_parts: The same where a part of one picture is compared, as the best of dozens of parts is.
        still: One minus the cosine of two frames a second apart from which the second one counts as new.
        change_energy: Mean squared change of the descriptors at which changes are trusted half: some times what noise
            and compression make of a still picture, so it depends on the extractor.
        change_share: In [0, 1], how much of the score is lost when what changes in the one video has nothing to
            do with what changes in the other (two moments before one fixed camera).
        change_least: Correlation of changes up to which they have nothing to do with each other.
        change_full: Correlation of changes from which they are the same.
        change_chance: Divided by the square root of the number of frames less one, the correlation that unrelated
            changes reach by chance; it is subtracted.
        doubt: In [0, 1), similarity of two stretches that means nothing where no change confirms it.
        doubt_of_plain: In [0, 1), how much more of it means nothing in pictures without detail.
        spatial_share: k_s of the TopK-Chamfer similarity of two frames.
        maximum_segments: Segments reported per pair.
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
