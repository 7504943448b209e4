"""Any image encoder in an ONNX file as an extractor."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin._base.names import parse_name
from vidkin._base.plain_values import short_digest
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.information import bar_boxes
from vidkin.features.networks.backbone import optional_triple
from vidkin.features.networks.onnx_network import InputLayout, OnnxNetwork
from vidkin.features.networks.pooling import region_max_pool
from vidkin.features.views import check_views, features_of_views, grid_suffix
from vidkin.features.whitening import Whitening
from vidkin.media.squares import Fit, fit_to_square
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

__all__ = ["OnnxExtractor", "open_onnx"]

PathLike = str | os.PathLike[str]
Pool = Literal["regions", "mean", "first"]
Triple = tuple[float, float, float]

# Part of the fingerprint: increment it when the same frame would get different numbers.
_REVISION = 1
# Pools by the number of axes of the output for one image; the first is the default.
_POOLS: dict[int, tuple[Pool, ...]] = {1: (), 2: ("first", "mean"), 3: ("regions", "mean")}


class OnnxExtractor:
    """Descriptors from an ONNX file: unit vectors, one per frame, or one for each of nine regions if the output is a
    map.

    Settings follow a question mark in the name, as in ``onnx:FILE?mean=0.485,0.456,0.406&std=0.229,0.224,0.225``. A
    file written by ``vidkin export`` needs none.

    ========== ==================================================================================================
    ``size``   side of the input, pixels; default the file's own
    ``fit``    ``stretch`` (default): the whole picture is resized to a square; ``crop``: its middle; ``letterbox``:
               with black bars
    ``bars``   ``trim`` (default with ``stretch``): letterbox and pillarbox bars are cut off first; ``keep``
    ``range``  the value of white before ``mean`` and ``std``: ``1`` (default; for uint8 ``255``) or another number
    ``mean``   subtracted, in units of ``range``, one number or three in the order of ``color``; default 0
    ``std``    divided by, likewise; default 1
    ``color``  ``rgb`` (default) or ``bgr``
    ``layout`` ``nchw`` or ``nhwc``; default as the input's shape says
    ``output`` name or number (from 0) of the output; needed if there are several
    ``pool``   of an output [B, N, D] ``first`` (class token) or ``mean``, which must be named; of a map ``regions``
               (default, 3 x 3, maximum) or ``mean``
    ``scorer`` ``copies`` (default) or ``kinds``, see :class:`~vidkin.features.FrameExtractor`
    ``views``  which side of a comparison is described in parts, too: ``none`` (default), ``query``, ``both``
    ========== ==================================================================================================

    Args:
        name: ``onnx:FILE[?settings]``.
        whitening: A file written by :meth:`vidkin.features.Whitening.save`.
        device: ``auto`` (CUDA if torch and onnxruntime support it), ``cpu``, ``cuda``, ``cuda:1``.

    Attributes:
        name: The name under which it was opened, settings included.
        fingerprint: A short hash of the file, its settings and the whitening: the same wherever the file is.
        short_side: Side of the input, pixels.
        scorer: The scorer set in the name; default ``copies``, or ``kinds`` for exported models that learned from
            labels.
        views: The views set in the name; default ``none``.

    Raises:
        UnknownExtractorError: The file does not exist.
        MissingPartError: onnxruntime is not installed.
        InvalidArgumentError: The file is not an image encoder, or a setting is invalid.
    """

    def __init__(self, name: str, *, whitening: PathLike | None = None, device: str = "auto") -> None:
        self.name: Final = name
        parsed = parse_name(name)
        if parsed.prefix != "onnx" or not parsed.address:
            raise UnknownExtractorError(f"the name must be onnx:<file>, got {name!r}")
        given = parsed.settings()
        unknown = [setting for setting in given if setting not in _ALLOWED]
        if unknown:
            raise InvalidArgumentError(
                f"onnx: has no setting {unknown[0]!r}; choose from {', '.join(_ALLOWED)}"
            )
        for setting, choices in _ALLOWED.items():
            if choices and setting in given and given[setting] not in choices:
                raise InvalidArgumentError(
                    f"{setting} must be {' or '.join(choices)}, got {given[setting]!r}"
                )
        size = given.get("size")
        if size is not None and not (size.isdecimal() and 16 <= int(size) <= 4096):
            raise InvalidArgumentError(f"size must be a whole number of pixels from 16 to 4096, got {size!r}")
        self._network = OnnxNetwork(
            parsed.address,
            layout=given.get("layout"),  # type: ignore[arg-type]  # checked above
            size=None if size is None else int(size),
            output=given.get("output"),
            device=device,
        )
        self._input = _input_settings(given, self._network)
        self._pool = _pool_of(given.get("pool"), self._network)
        # Exported models that learned kinds from labels; all other files are assumed to find copies.
        learned_kinds = self._network.about.get("kind") in ("image", "deep_ranking")
        self.scorer: Final = given.get("scorer", "kinds" if learned_kinds else "copies")
        self.views: Final = check_views(given.get("views", "none"))
        self._whitening = None if whitening is None else Whitening.load(whitening)
        if self._whitening is not None:
            self._whitening.check_length(
                self._network.shape[0 if len(self._network.shape) == 3 else -1], name
            )
        facts = {
            "revision": _REVISION,
            "file": self._network.digest,
            "size": self._network.size,
            "layout": self._network.layout,
            "output": self._network.output,
            "input": asdict(self._input),
            "pool": self._pool,
            "scorer": self.scorer,
            "views": self.views,
            "whitening": None if self._whitening is None else self._whitening.digest(),
        }
        self.fingerprint: Final = f"onnx-{short_digest(facts)}{grid_suffix(self.views)}"
        self.short_side: Final = self._network.size

    def extract(
        self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None
    ) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""

        def describe(images: NDArray[np.uint8]) -> torch.Tensor:
            values = self.describe(images)
            return values if self._whitening is None else self._whitening.apply(values)

        return features_of_views(describe, frames, self.fingerprint, mirror=mirror, boxes=boxes)

    def describe(self, images: NDArray[np.uint8]) -> torch.Tensor:
        """Descriptors of images [T, H, W, 3] before whitening, [T, R, D], to fit a whitening on.

        Values that are not finite, for example where a network divides black by its length, become zero: no content.
        """
        output = self._network.run(self.prepare(images)).nan_to_num(0.0, 0.0, 0.0)
        if self._pool == "regions":
            return region_max_pool([output])
        if self._pool == "first":
            output = output[:, 0]
        elif self._pool == "mean":
            output = output.mean(dim=1) if output.ndim == 3 else output.mean(dim=(2, 3))
        return functional.normalize(output, dim=-1)[:, None]

    def prepare(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The network's input for images [T, H, W, 3] uint8, before its layout: [T, size, size, 3] float32."""
        size, settings = self._network.size, self._input
        squares = np.empty((len(images), size, size, 3), dtype=np.float32)
        edges = bar_boxes(images) if settings.bars == "trim" else None
        for index, image in enumerate(images):
            picture = image
            if edges is not None:
                top, bottom, left, right = edges[index].tolist()
                picture = image[top:bottom, left:right]
            squares[index] = fit_to_square(picture, size, settings.fit)
        channels = squares if settings.color == "rgb" else squares[..., ::-1]
        scaled = channels / np.float32(255 / settings.range)
        mean, std = np.array(settings.mean, dtype=np.float32), np.array(settings.std, dtype=np.float32)
        return np.asarray((scaled - mean) / std, dtype=np.float32)


def open_onnx(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> OnnxExtractor:
    """Open an ``onnx:`` network; a factory of the registry. The file holds its weights, so ``weights`` must be
    None."""
    if weights is not None:
        raise InvalidArgumentError(
            f"an ONNX file holds its weights, got {os.fspath(weights)!r} beside {name!r}; leave it out"
        )
    return OnnxExtractor(name, whitening=whitening, device=device)


@dataclass(frozen=True, slots=True)
class _Input:
    """How images become the network's input."""

    fit: Fit
    bars: Literal["trim", "keep"]
    color: Literal["rgb", "bgr"]
    range: float
    mean: Triple
    std: Triple


# Settings after the question mark, and their choices; without choices any text is accepted.
_ALLOWED: dict[str, tuple[str, ...]] = {
    "size": (),
    "fit": get_args(Fit),
    "bars": ("trim", "keep"),
    "range": (),
    "mean": (),
    "std": (),
    "color": ("rgb", "bgr"),
    "layout": get_args(InputLayout),
    "output": (),
    "pool": get_args(Pool),
    "scorer": ("copies", "kinds"),
    "views": (),
}


def _input_settings(given: dict[str, str], network: OnnxNetwork) -> _Input:
    own = network.about.get("fit")
    fit = given.get("fit", own if own in get_args(Fit) else "stretch")
    bars = "trim" if fit == "stretch" and not network.about else "keep"
    text = given.get("range", "255" if network.takes_bytes else "1")
    try:
        white = float(text)
    except ValueError:
        white = 0.0
    if not 0 < white < float("inf"):
        raise InvalidArgumentError(f"range must be a number above 0, such as 1 or 255, got {text!r}")
    mean = optional_triple(given, "mean") or (0.0, 0.0, 0.0)
    std = optional_triple(given, "std") or (1.0, 1.0, 1.0)
    if network.takes_bytes and (white != 255 or set(mean) != {0.0} or set(std) != {1.0}):
        raise InvalidArgumentError(
            "the file takes whole numbers from 0 to 255 (uint8), so range, mean and std must be left out"
        )
    return _Input(
        fit,  # type: ignore[arg-type]  # one of _ALLOWED
        "keep" if given.get("bars", bars) == "keep" else "trim",
        "bgr" if given.get("color") == "bgr" else "rgb",
        white,
        mean,
        std,
    )


def _pool_of(pool: str | None, network: OnnxNetwork) -> Pool | None:
    """The pool of an output; None if it already is one vector per image."""
    choices = _POOLS[len(network.shape)]
    if pool is None and len(choices) and len(network.shape) == 2:
        raise InvalidArgumentError(
            f"the output {network.output} has {network.shape[0]} vectors for each image; add pool=first (class token) "
            "or pool=mean"
        )
    if pool is None:
        return choices[0] if choices else None
    if pool not in choices:
        raise InvalidArgumentError(
            f"pool must be {' or '.join(choices) or 'left out'} for the output {network.output} of shape "
            f"{list(network.shape)}, got {pool!r}"
        )
    return pool
