"""Losses, sampling and measures: pure functions of tensors and labels that need only torch.

Use ``from vidkin.metric import losses, measures, sampling``; the helpers for distributed training are in this module
itself. Without torch, the import raises :class:`vidkin.errors.MissingPartError`, which says what to install.
"""

from vidkin._base.registry import name_missing_parts

with name_missing_parts("vidkin.metric"):
    from vidkin.metric.distributed import gather_with_gradient, rank_offset

__all__ = ["gather_with_gradient", "rank_offset"]
