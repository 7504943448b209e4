"""The small network that turns a square crop of a frame into a unit vector, for training with torch.

:mod:`vidkin.features.sessions` runs it without torch, from the exported ONNX file.
"""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from torch.nn.utils import fuse_conv_bn_eval

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike, check_regular_file, write_bytes
from vidkin._base.registry import import_part
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.features.sessions import SHIPPED, SquareEncoder, resolve_device, weights_digest

NORMALIZATIONS = ("fixed", "image")

# ONNX operator set of exported files; supported by onnxruntime 1.14 and later.
_OPSET = 17

# Typical mean and standard deviation of values in 0..1, the same for all channels.
_MEAN = 0.45
_DEVIATION = 0.25
# Added to the standard deviation of an image (as variances), so that compression noise in plain skies and roads is not
# amplified.
_MIN_DEVIATION = 0.15


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class FrameEncoderSettings:
    """Architecture of a `FrameEncoder`.

    Attributes:
        side: Side of the input in pixels.
        widths: Channels after the stem and after each block.
        strides: Stride of each block; one fewer than widths.
        grid: Side of the grid over which features are averaged before the last layer, which preserves their rough
            positions.
        dimension: Length of the vectors.
        normalization: ``"image"`` subtracts each image's mean and divides by its standard deviation, so that brightness
            has no effect and contrast little; ``"fixed"`` uses the same constants for all images.
    """

    side: int = 64
    widths: tuple[int, ...] = (24, 48, 48, 96, 96, 192, 192)
    strides: tuple[int, ...] = (2, 1, 2, 1, 2, 1)
    grid: int = 4
    dimension: int = 128
    normalization: str = "image"

    def __post_init__(self) -> None:
        if self.normalization not in NORMALIZATIONS:
            raise InvalidArgumentError(
                f"normalization must be one of {', '.join(NORMALIZATIONS)}, got {self.normalization!r}"
            )
        if len(self.widths) != len(self.strides) + 1 or not self.strides:
            raise InvalidArgumentError(
                f"widths must have one more entry than strides, got {len(self.widths)} and {len(self.strides)}"
            )
        numbers = (*self.widths, *self.strides, self.grid, self.dimension)
        if min(numbers) < 1:
            raise InvalidArgumentError(f"widths, strides, grid and dimension must be at least 1, got {self}")
        if self.side < self.grid:
            raise InvalidArgumentError(f"side must be at least grid ({self.grid}), got {self.side}")

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Create settings from a parsed JSON or TOML table."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
        }
        wrong = sorted(given.keys() - cls.__dataclass_fields__.keys())
        if wrong:
            names = ", ".join(sorted(cls.__dataclass_fields__))
            raise InvalidArgumentError(f"settings must be among {names}, got {', '.join(wrong)}")
        try:
            return cls(**given)
        except TypeError as error:
            raise InvalidArgumentError(f"settings of a frame encoder: {error}") from error

    def to_table(self) -> dict[str, Any]:
        """Return the settings as a table for JSON or TOML."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@check_constructor
class FrameEncoder(nn.Module):
    """Network from squares [N, 3, side, side] to unit vectors [N, D]: a stem, separable blocks, one linear layer.

    Args:
        settings: Architecture; the default has 474,000 parameters.
    """

    def __init__(self, settings: FrameEncoderSettings | None = None) -> None:
        super().__init__()
        self.settings = settings or FrameEncoderSettings()
        widths = self.settings.widths
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 3, 2, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True)
        )
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False),
                    nn.BatchNorm2d(before),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(before, after, 1, bias=False),
                    nn.BatchNorm2d(after),
                    nn.ReLU(inplace=True),
                )
                for before, after, stride in zip(widths[:-1], widths[1:], self.settings.strides, strict=True)
            )
        )
        self.pool = nn.AdaptiveAvgPool2d(self.settings.grid)
        self.head = nn.Linear(widths[-1] * self.settings.grid**2, self.settings.dimension)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute unit vectors [N, D] of images [N, 3, side, side] with values in 0..1."""
        return functional.normalize(self.head(self.features(images)), dim=1)

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the input of the last layer: last-block maps averaged over the grid, [N, widths[-1] * grid^2]."""
        features: torch.Tensor = self.pool(self.maps(images)).flatten(1)
        return features

    def maps(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the feature maps of the last block, [N, widths[-1], h, w]."""
        if self.settings.normalization == "fixed":
            images = (images - _MEAN) / _DEVIATION
        else:
            # torch.var_mean would take as long as half of the network.
            mean = images.mean(dim=(1, 2, 3), keepdim=True)
            variance = (images.square().mean(dim=(1, 2, 3), keepdim=True) - mean.square()).clamp(min=0)
            images = (images - mean) * (variance + _MIN_DEVIATION**2).rsqrt()
        maps: torch.Tensor = self.blocks(self.stem(images))
        return maps

    def fold(self) -> FrameEncoder:
        """Return a copy for inference, with batch norms folded into the convolutions, in channels-last layout."""
        folded = copy.deepcopy(self).eval()
        for module in list(folded.modules()):
            if isinstance(module, nn.Sequential) and isinstance(module[0], nn.Conv2d):
                # Fold each batch norm into the preceding convolution.
                for index in range(len(module) - 1):
                    convolution, norm = module[index], module[index + 1]
                    if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                        module[index] = fuse_conv_bn_eval(convolution, norm)
                        module[index + 1] = nn.Identity()
        return folded.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    def digest(self) -> str:
        """Return the :func:`~vidkin.features.sessions.weights_digest` that identifies the network."""
        weights = {name: tensor.detach().float().cpu().numpy() for name, tensor in self.state_dict().items()}
        return weights_digest(self.settings.to_table(), weights)

    def on_squares(self, device: str = "cpu") -> SquareEncoder:
        """Wrap the current network for NumPy arrays, computed by torch on a device: ``auto``, ``cpu``, ``cuda:1``."""
        place = resolve_device(device)
        network = self.fold().to(place).requires_grad_(False)

        def run(squares: NDArray[np.float32]) -> NDArray[np.float32]:
            with torch.inference_mode():
                images = (torch.from_numpy(squares).to(place) / 255).contiguous(memory_format=torch.channels_last)
                vectors: NDArray[np.float32] = network(images).cpu().numpy()
            return vectors

        settings = self.settings
        return SquareEncoder(run, side=settings.side, dimension=settings.dimension, digest=self.digest())


@check_arguments
def load_frame_encoder(path: PathLike | None = None) -> FrameEncoder:
    """Load a frame encoder from a safetensors file whose metadata contains its settings; default: the bundled one.

    Raises:
        InvalidArgumentError: The file is damaged or contains something else.
    """
    if path is None:
        return load_frame_encoder(SHIPPED.with_suffix(".safetensors"))
    from safetensors import SafetensorError, safe_open

    try:
        check_regular_file(path, follow_links=True)
        with safe_open(os.fspath(path), framework="pt") as file:
            settings = parse_json((file.metadata() or {}).get("settings", "null"))
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        if settings is None:
            raise InvalidArgumentError("its metadata has no settings")
        encoder = FrameEncoder(FrameEncoderSettings.from_table(settings))
        encoder.load_state_dict(tensors)
    except (OSError, SafetensorError, ValueError, RuntimeError, InvalidArgumentError) as error:
        raise InvalidArgumentError(
            f"{os.fspath(path)} must be the weights of a frame encoder: {str(error).splitlines()[0]}"
        ) from error
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise InvalidArgumentError(f"{os.fspath(path)} must contain finite weights, got NaN or infinity")
    return encoder.eval()


@check_arguments
def save_frame_encoder(encoder: FrameEncoder, path: PathLike) -> Path:
    """Write a frame encoder as a single file for :func:`load_frame_encoder`, and return its path.

    Raises:
        InvalidArgumentError: The file cannot be written.
    """
    from safetensors.torch import save

    file = Path(path).expanduser()
    settings = json.dumps(encoder.settings.to_table())
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.state_dict().items()}
    _write(file, save(state, metadata={"settings": settings}))
    return file


@check_arguments
def export_frame_encoder(encoder: FrameEncoder, path: PathLike) -> Path:
    """Write a frame encoder as an ONNX file that :func:`~vidkin.features.sessions.open_square_encoder` can open
    without torch, and return its path.

    The input is squares [N, 3, side, side] float32 with values in 0..255; the output is unit vectors [N, D]. The
    metadata contain the settings, and a digest that links the file to the weights.

    Raises:
        InvalidArgumentError: The file cannot be written.
        MissingPartError: onnx is not installed.
    """
    onnx = import_part("onnx", extra="train")
    side = encoder.settings.side
    folded = encoder.fold().cpu().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    with torch.no_grad(), warnings.catch_warnings(), TemporaryDirectory() as scratch:
        warnings.simplefilter("ignore")  # about this exporter; the newer one takes twenty times as long
        torch.onnx.export(
            _ByteInputEncoder(folded),
            (torch.zeros(2, 3, side, side),),
            os.path.join(scratch, "encoder.onnx"),
            input_names=["squares"],
            output_names=["vectors"],
            dynamic_axes={"squares": {0: "squares"}, "vectors": {0: "squares"}},
            opset_version=_OPSET,
            dynamo=False,
        )
        model = onnx.load(os.path.join(scratch, "encoder.onnx"))
    onnx.helper.set_model_props(
        model, {"settings": json.dumps(encoder.settings.to_table()), "digest": encoder.digest()}
    )
    file = Path(path).expanduser()
    _write(file, model.SerializeToString())
    return file


class _ByteInputEncoder(nn.Module):
    """Wrapper that takes squares with values in 0..255."""

    def __init__(self, network: FrameEncoder) -> None:
        super().__init__()
        self.network = network

    def forward(self, squares: torch.Tensor) -> torch.Tensor:
        return self.network(squares / 255)  # type: ignore[no-any-return]


def _write(file: Path, content: bytes) -> None:
    try:
        write_bytes(file, content)
    except OSError as error:
        raise InvalidArgumentError(
            f"{file}: {error.strerror or error}; choose a file in a folder that can be written"
        ) from error
