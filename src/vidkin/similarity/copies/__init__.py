"""How certain it is that two videos contain the same material, and where: the scorer of copies."""

from vidkin.similarity.copies.baseline import background_baseline, calibrated_map
from vidkin.similarity.copies.scorer import CopyScorer
from vidkin.similarity.copies.settings import ScoreSettings

__all__ = ["CopyScorer", "ScoreSettings", "background_baseline", "calibrated_map"]
