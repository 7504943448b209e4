"""Networks as functions from a picture to one vector, the base of encoders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError
from vidkin.features.networks.backbone import optional_triple, parse_network_name
from vidkin.features.networks.pretrained import (
    open_timm_module,
    open_torchvision_module,
    torchvision_classifier,
)

__all__ = ["PooledNetwork", "open_pooled_network"]

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class PooledNetwork:
    """A network without its classifier.

    Attributes:
        module: The network in eval mode, from normalized images [B, 3, size, size] to [B, dimension], the input of the
            removed classifier.
        dimension: Length of the vector.
        size: Side in pixels of the input the network was made for.
        mean: Mean of the input, in units of full scale (0 to 1).
        std: Standard deviation of the input, in the same units.
    """

    module: nn.Module
    dimension: int
    size: int
    mean: Triple
    std: Triple


def open_pooled_network(
    name: str, *, weights: str | os.PathLike[str] | None = None, seed: int = 0
) -> PooledNetwork:
    """Open a network of timm or torchvision up to its pooled vector.

    Args:
        name: Name as in :class:`~vidkin.features.BackboneExtractor`: ``timm:mobilenetv2_100?pad_type=same``,
            ``torchvision:alexnet``. Only the settings ``size``, ``mean``, ``std`` and timm's own are used.
        weights: A safetensors file (the classifier can be absent); None: weights from the local cache or the hub;
            ``"random"``: freshly initialized, to be trained or to be filled with the state of a saved model.
        seed: Seed of random weights.

    Raises:
        UnknownExtractorError: The library has no model of this name.
        WeightsUnavailableError: The weights are not given, not cached, and cannot be downloaded.
        InvalidArgumentError: A setting is invalid, or the network does not end in one vector per picture.
    """
    library, model, settings = parse_network_name(name)
    fresh = weights == "random"
    path = None if fresh else weights
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if library == "timm":
            module, metadata = open_timm_module(model, options=settings.options, weights=path, fresh=fresh)
            defaults = module.pretrained_cfg
            module.reset_classifier(0)
        else:
            module, metadata, entry = open_torchvision_module(model, weights=path, fresh=fresh)
            transforms = entry.transforms()
            defaults = {
                "input_size": transforms.crop_size,
                "mean": transforms.mean,
                "std": transforms.std,
            }
            # Taken from the complete network: this one has no classifier if the weights file had none.
            with torch.device("meta"):
                complete, _, _ = open_torchvision_module(model, weights=None, fresh=True)
            for classifier in torchvision_classifier(complete):
                module.set_submodule(classifier, nn.Identity())
    if getattr(module, "aux_logits", False):
        raise InvalidArgumentError(
            f"{name} has side outputs that only its own training uses; choose another network"
        )
    module.eval()
    size = settings.size or int(defaults["input_size"][-1])
    mean, std = (
        getattr(settings, key) or optional_triple(metadata, key) or _triple(defaults[key])
        for key in ("mean", "std")
    )
    with torch.no_grad():
        probe = module(torch.zeros(1, 3, size, size))
    if not isinstance(probe, torch.Tensor) or probe.ndim != 2:
        raise InvalidArgumentError(f"{name} does not give one vector a picture; choose another network")
    return PooledNetwork(module, int(probe.shape[1]), size, mean, std)


def _triple(values: Any) -> Triple:
    red, green, blue = (float(value) for value in values)
    return red, green, blue
