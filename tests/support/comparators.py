"""Comparators whose scores can be checked by hand."""

from __future__ import annotations

import torch

from vidkin.models import Comparator, ComparatorConfig, build_comparator


def passing(config: ComparatorConfig | None = None) -> Comparator:
    """A comparator whose network computes ``2 max(0, largest of 4 x 4 similarities) - 1``."""
    comparator = build_comparator(config or ComparatorConfig(), weights="random").eval()
    network = comparator.visil_head
    assert network is not None
    with torch.no_grad():
        for layer in (network.conv1, network.conv2, network.conv3):
            layer.weight.zero_()
            layer.weight[0, 0, 1, 1] = 1
        network.fconv.weight.zero_()
        network.fconv.weight[0, 0] = 2
        assert network.fconv.bias is not None
        network.fconv.bias.fill_(-1)
    return comparator
