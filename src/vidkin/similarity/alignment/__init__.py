"""From a map of frame similarities to the segments in which two videos match."""

from vidkin.similarity.alignment.best_segments import align

__all__ = ["align"]
