"""Pretrained networks as extractors: feature maps of several stages pooled over regions, or one vector per frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin._base.values import short_digest
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.information import bar_boxes
from vidkin.features.networks import Triple, optional_triple, region_max_pool, triple, unit_vectors
from vidkin.features.pretrained import (
    POOLED,
    open_timm_module,
    open_timm_network,
    open_torchvision_module,
    open_torchvision_network,
    torchvision_classifier,
)
from vidkin.features.sessions import resolve_device
from vidkin.features.views import features_of_views
from vidkin.features.whitening import Whitening
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

# Part of the fingerprint; increment it whenever the same frame would get different vectors.
_REVISION = 1

# Chunks are always full (the last one is padded), so that results do not depend on the number of frames.
_CHUNK = {"cpu": 4, "cuda": 32}

# Short side before a center crop, as a multiple of the crop: 256 / 224.
_CROP_MARGIN = 256 / 224


@check_constructor
class BackboneExtractor:
    """Regional descriptors from any timm or torchvision network that has intermediate feature maps.

    Frames are resized to squares of the network's input size, its last four stages are pooled over 3 x 3 regions
    (:func:`~vidkin.features.networks.region_max_pool`), and a whitening is applied if one is given. Without a
    whitening, descriptors are plain unit vectors, which work but find fewer matches
    (:func:`vidkin.features.fit_whitening` fits a whitening to your videos).

    Settings follow a question mark in the name, as in ``timm:mobilenetv2_100?pad_type=same&size=256``:

    =============== ==============================================================================================
    ``size``        side of the input in pixels; default: the network's input size
    ``fit``         ``whole`` (default): the whole frame is resized to a square, because crops hide content.
                    ``crop``: short side to 256/224 times the size, then a center crop, as in published features
    ``bars``        ``trim`` (default with ``whole``): letterbox and pillarbox bars are cut off first; ``keep``
    ``whole_frame`` ``1``: append the whole frame as a tenth region; default ``0``
    ``stages``      timm: indices such as ``1,2,3,4``; torchvision: node names such as ``layer3,layer4``; default: the
                    last four. timm also accepts ``pooled``: a single region, the input of the classifier (for a
                    transformer, the class token after the last norm)
    ``mean``        mean of the input, 0 to 1, one number or three; default: from the metadata of the weights, or the
                    network's default
    ``std``         standard deviation of the input, in the same format
    others          passed to timm's model, for example ``pad_type=same``
    =============== ==============================================================================================

    Args:
        name: ``timm:<model>[?settings]`` or ``torchvision:<model>[?settings]``.
        weights: A safetensors file with the network's weights (strict: names and shapes must match, but the classifier
            may be absent). None: weights from the local cache or the hub, never random ones.
        whitening: A file written by :meth:`vidkin.features.Whitening.save`.
        device: ``auto`` (CUDA if available), ``cpu``, ``cuda`` or ``cuda:1``.

    Attributes:
        name: The name under which the extractor was opened, including settings.
        fingerprint: Name and a short hash of settings, weights and whitening.
        short_side: Short side in pixels above which larger decoded frames bring no benefit.
        scorer: Always ``copies``.
        channels: Number of channels per stage; their sum is the length of a descriptor before whitening.

    Raises:
        UnknownExtractorError: The library has no model with this name.
        WeightsUnavailableError: The weights are not given, not cached, and cannot be downloaded.
        InvalidArgumentError: A setting is invalid, or the weights or the whitening belong to another network.
    """

    def __init__(
        self,
        name: str,
        *,
        weights: PathLike | None = None,
        whitening: PathLike | None = None,
        device: str = "auto",
    ) -> None:
        self.name: Final = name
        self._device = torch.device(resolve_device(device))
        library, model, settings = parse_network_name(name)
        self._settings = settings
        if library == "timm":
            self._network = open_timm_network(model, options=settings.options, stages=settings.stages, weights=weights)
        elif settings.options:
            raise InvalidArgumentError(
                f"torchvision:{model} does not take {', '.join(settings.options)}; choose from size, fit, bars, "
                "whole_frame, stages, mean, std"
            )
        else:
            self._network = open_torchvision_network(model, stages=settings.stages, weights=weights)
        # A weights file can state its normalization; settings in the name take precedence.
        metadata = self._network.metadata
        self._mean = settings.mean or optional_triple(metadata, "mean") or self._network.mean
        self._std = settings.std or optional_triple(metadata, "std") or self._network.std
        self._size = settings.size or self._network.size
        self._network.module.to(self._device).requires_grad_(False)
        self._whitening = None if whitening is None else Whitening.load(whitening)
        try:
            # A forward pass on an empty image shows the channels of the stages, and whether the network accepts the
            # size.
            with torch.no_grad():
                empty = torch.zeros(1, 3, self._size, self._size, device=self._device)
                self.channels: Final = tuple(int(stage.shape[1]) for stage in self._network.stages(empty))
        except (AssertionError, RuntimeError) as error:
            raise InvalidArgumentError(
                f"{self.name} does not take images of {self._size} x {self._size} pixels: {error}"
            ) from error
        if self._whitening is not None:
            self._whitening.check_length(sum(self.channels), name)
        facts = {
            "revision": _REVISION,
            "name": self.name,
            "size": self._size,
            "mean": self._mean,
            "std": self._std,
            "weights": self._network.digest(),
            "whitening": None if self._whitening is None else self._whitening.digest(),
        }
        self.fingerprint: Final = f"{name}-{short_digest(facts)}"
        self.scorer: Final = "copies"
        self.describes_boxes: Final = True
        self.short_side: Final = self._size if settings.fit == "whole" else round(self._size * _CROP_MARGIN)

    @property
    def network(self) -> torch.nn.Module:
        """The whole network in eval mode, on its device, including its classifier if the weights have one."""
        return self._network.module

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Describe frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`.

        Memory use is bounded by a chunk of 4 frames (CUDA: 32) and the result. Results do not depend on the batch size.
        """
        return features_of_views(
            lambda images: self._values(images, self._whitening), frames, self.fingerprint, boxes=boxes
        )

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Compute descriptors [T, R, sum of channels] before whitening, to fit a whitening to."""
        return self._values(images, None)

    def prepare(self, images: NDArray[np.uint8]) -> torch.Tensor:
        """Convert images [T, H, W, 3] uint8 to the network's input: [T, 3, size, size] float32, normalized, on the
        CPU."""
        height, width = images.shape[1:3]
        trim = self._settings.bars == "trim"
        boxes = bar_boxes(images).tolist() if trim else [[0, height, 0, width]] * len(images)
        pictures = torch.zeros(len(images), 3, self._size, self._size)
        for index, (image, (top, bottom, left, right)) in enumerate(zip(images, boxes, strict=True)):
            picture = image[top:bottom, left:right]
            tensor = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float()
            # Resize [3, H, W] to [3, size, size] by stretching or cropping.
            if self._settings.fit == "whole":
                shape = (self._size, self._size)
            else:
                tall, wide = tensor.shape[1:]
                scale = round(self._size * _CROP_MARGIN) / min(tall, wide)
                shape = (round(tall * scale), round(wide * scale))
            resized = functional.interpolate(tensor[None], shape, mode="bilinear", antialias=True, align_corners=False)
            above, before = (shape[0] - self._size) // 2, (shape[1] - self._size) // 2
            pictures[index] = resized[0, :, above : above + self._size, before : before + self._size]
        mean = torch.tensor(self._mean)[:, None, None]
        std = torch.tensor(self._std)[:, None, None]
        return (pictures / 255 - mean) / std

    def describe_prepared(self, pictures: torch.Tensor) -> torch.Tensor:
        """Compute descriptors [T, R, D] of prepared input [T, 3, size, size] on the device, whitened if there is a
        whitening.

        For training, gradients are computed if the weights of :attr:`network` require them.
        """
        regions = self._regions(pictures)
        if self._whitening is None:
            return regions
        mean, projection = (
            torch.from_numpy(array).to(regions) for array in (self._whitening.mean, self._whitening.projection)
        )
        return unit_vectors((regions - mean) @ projection)

    def _regions(self, pictures: torch.Tensor) -> torch.Tensor:
        """Compute descriptors [T, R, sum of channels] of prepared input, before whitening."""
        maps = [stage.float() for stage in self._network.stages(pictures)]
        if self._settings.stages == POOLED:
            return unit_vectors(maps[0][:, :, 0, 0])[:, None]
        return region_max_pool(maps, whole_frame=self._settings.whole_frame)

    def _values(self, images: NDArray[np.uint8], whitening: Whitening | None) -> NDArray[np.float32]:
        chunk = _CHUNK[self._device.type]
        dimension = sum(self.channels) if whitening is None else whitening.dimension
        regions = 1 if self._settings.stages == POOLED else 10 if self._settings.whole_frame else 9
        values = np.zeros((len(images), regions, dimension), np.float32)
        for first in range(0, len(images), chunk):
            pictures = self.prepare(images[first : first + chunk])
            missing = chunk - len(pictures)
            full = functional.pad(pictures, (0, 0, 0, 0, 0, 0, 0, missing)).to(self._device)
            with (
                torch.inference_mode(),
                torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False),
            ):
                pooled = self._regions(full).cpu().numpy()
            described = pooled[: chunk - missing]
            values[first : first + chunk] = described if whitening is None else whitening.apply(described)
        return values


@dataclass(frozen=True, slots=True)
class _Settings:
    """Settings after the question mark in a name; None means the network's default."""

    size: int | None
    fit: Literal["whole", "crop"]
    bars: Literal["trim", "keep"]
    whole_frame: bool
    stages: tuple[str, ...] | None
    mean: Triple | None
    std: Triple | None
    options: dict[str, Any]


def parse_network_name(name: str) -> tuple[str, str, _Settings]:
    """Split a name into library, model and settings."""
    parsed = parse_name(name)
    library, model = parsed.prefix, parsed.address
    if library not in ("timm", "torchvision") or not model:
        raise UnknownExtractorError(f"a network's name must be timm:<model> or torchvision:<model>, got {name!r}")
    given = parsed.settings()
    size = given.pop("size", None)
    if size is not None and not (size.isdecimal() and 32 <= int(size) <= 4096):
        raise InvalidArgumentError(f"size must be a whole number of pixels from 32 to 4096, got {size!r}")
    fit = given.pop("fit", "whole")
    bars = given.pop("bars", "trim" if fit == "whole" else "keep")
    whole_frame = given.pop("whole_frame", "0")
    for setting, value, allowed in (
        ("fit", fit, ("whole", "crop")),
        ("bars", bars, ("trim", "keep")),
        ("whole_frame", whole_frame, ("0", "1")),
    ):
        if value not in allowed:
            raise InvalidArgumentError(f"{setting} must be {' or '.join(allowed)}, got {value!r}")
    stages = given.pop("stages", None)
    if whole_frame == "1" and stages == ",".join(POOLED):
        raise InvalidArgumentError("whole_frame must be 0 with stages=pooled, whose one region is the whole frame")
    settings = _Settings(
        size=None if size is None else int(size),
        fit="crop" if fit == "crop" else "whole",
        bars="trim" if bars == "trim" else "keep",
        whole_frame=whole_frame == "1",
        stages=None if stages is None else tuple(stages.split(",")),
        mean=optional_triple(given, "mean"),
        std=optional_triple(given, "std"),
        options={key: _literal(value) for key, value in given.items() if key not in ("mean", "std")},
    )
    return library, model, settings


def _literal(value: str) -> Any:
    """Parse ``true``, ``false`` and numbers as Python values; return anything else as text."""
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


@dataclass(frozen=True, slots=True, eq=False)
class PooledNetwork:
    """A network without its classifier.

    Attributes:
        module: The network in eval mode: normalized images [B, 3, size, size] to [B, dimension], the input of the
            removed classifier.
        dimension: Length of the vectors.
        size: Side in pixels of the input that the network was designed for.
        mean: Mean of the input, in units of full scale (0 to 1).
        std: Standard deviation of the input, in the same units.
    """

    module: nn.Module
    dimension: int
    size: int
    mean: Triple
    std: Triple


@check_arguments
def open_pooled_network(name: str, *, weights: PathLike | None = None, seed: int = 0) -> PooledNetwork:
    """Open a timm or torchvision network without its classifier.

    Args:
        name: A name as in :class:`~vidkin.features.BackboneExtractor`: ``timm:mobilenetv2_100?pad_type=same``,
            ``torchvision:alexnet``. Only ``size``, ``mean``, ``std`` and timm's own settings are used.
        weights: A safetensors file (the classifier may be absent); None: weights from the local cache or the hub;
            ``"random"``: newly initialized weights, for training or for loading a saved model.
        seed: Seed for random weights.

    Raises:
        UnknownExtractorError: The library has no model with this name.
        WeightsUnavailableError: The weights are not given, not cached, and cannot be downloaded.
        InvalidArgumentError: A setting is invalid, or the network does not return one vector per image.
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
            # Use a complete network, because this one has no classifier if the weights file has none.
            with torch.device("meta"):
                complete, _, _ = open_torchvision_module(model, weights=None, fresh=True)
            for classifier in torchvision_classifier(complete):
                module.set_submodule(classifier, nn.Identity())
    if getattr(module, "aux_logits", False):
        raise InvalidArgumentError(f"{name} has auxiliary outputs for its own training; choose another network")
    module.eval()
    size = settings.size or int(defaults["input_size"][-1])
    mean, std = (
        getattr(settings, key) or optional_triple(metadata, key) or triple(defaults[key]) for key in ("mean", "std")
    )
    with torch.no_grad():
        probe = module(torch.zeros(1, 3, size, size))
    if not isinstance(probe, torch.Tensor) or probe.ndim != 2:
        raise InvalidArgumentError(f"{name} does not return one vector per image; choose another network")
    return PooledNetwork(module, int(probe.shape[1]), size, mean, std)
