"""Losses, sampling and measures: pure functions of tensors and labels, on torch alone.

``from vidkin.metric import losses, measures, sampling``; functions for several processes are here.
"""

from vidkin.metric.distributed import gather_with_gradient, rank_offset

__all__ = ["gather_with_gradient", "rank_offset"]
