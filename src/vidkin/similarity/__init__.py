"""Room similarity: from two sequences of descriptors to a score and to matching segments."""

from vidkin.similarity.segment import Segment

__all__ = ["Segment"]
