"""Use any image encoder in an ONNX file as an extractor; the file is validated when it is opened."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin._base.values import parse_json, short_digest
from vidkin.errors import ExtractorError, InvalidArgumentError, UnknownExtractorError
from vidkin.features.information import bar_boxes
from vidkin.features.networks import Triple, optional_triple, region_max_pool, unit_vectors
from vidkin.features.onnx_file import read_onnx
from vidkin.features.sessions import open_session, run_session, session_failures
from vidkin.features.views import features_of_views
from vidkin.features.whitening import Whitening
from vidkin.media.frames import Fit, fit_to_square
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames


InputLayout = Literal["nchw", "nhwc"]

_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}

# Chunks are always full, so that results do not depend on the batching of frames.
_CHUNK = {"cpu": 4, "cuda": 32}


class OnnxNetwork:
    """An image network in an ONNX file.

    The weights must be in the file itself; files that refer to external data are rejected.

    Args:
        path: The ONNX file; its only input must be a batch of squares with three channels.
        layout: Order of the input's axes; default: inferred from its shape.
        size: Side of the squares in pixels; default: read from the input's shape.
        output: Name or index of the output; None if there is only one.
        device: ``auto`` (CUDA if onnxruntime supports it and finds a device), ``cpu``, ``cuda`` or ``cuda:1``.

    Attributes:
        size: Side of the input in pixels.
        layout: Order of the input's axes.
        takes_bytes: Whether the input consists of integers from 0 to 255.
        shape: Shape of the output for one image: [D], [N, D] or [C, H, W] (regardless of the layout).
        output: Name of the output.
        about: Description written by `vidkin export`; empty for other files.
        digest: SHA-256 of the file.

    Raises:
        UnknownExtractorError: The file does not exist.
        InvalidArgumentError: The file is damaged, has another kind of input, or an argument does not fit it.
        ExtractorError: The network returns non-finite values.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        layout: InputLayout | None = None,
        size: int | None = None,
        output: str | None = None,
        device: str = "auto",
    ) -> None:
        self._path = Path(path).expanduser()
        if not self._path.is_file():
            raise UnknownExtractorError(f"{self._path}: no such ONNX file; check the path")
        content = _read(self._path)
        self.digest = hashlib.sha256(content).hexdigest()
        self._session = open_session(content, device=device, name=os.fspath(self._path))
        kind = "cpu" if self._session.get_providers()[0] == "CPUExecutionProvider" else "cuda"
        about = self._session.get_modelmeta().custom_metadata_map.get("vidkin")
        try:
            self.about: dict[str, Any] = dict(parse_json(about or "{}"))
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"{self._path}: its description by `vidkin export` is damaged ({error}); export the model again"
            ) from error
        inputs = self._session.get_inputs()
        shape = list(inputs[0].shape) if inputs else []
        if len(inputs) != 1 or len(shape) != 4 or inputs[0].type not in _TYPES:
            takes = ", ".join(f"{item.name} {_text(item.shape)} {item.type}" for item in inputs)
            advice = "; use the folder of the model with --model" if "clips" in takes and self.about else ""
            raise InvalidArgumentError(
                f"{self._path}: an encoder must take one batch of images (4 axes; float, float16, double or uint8), "
                f"this file takes {takes or 'nothing'}{advice}"
            )
        self._input = inputs[0].name
        self._type = _TYPES[inputs[0].type]
        self.takes_bytes = self._type is np.uint8
        self.layout = _resolve_layout(self._path, shape, layout)
        self.size = _resolve_size(self._path, shape, self.layout, size)
        self._batch = shape[0] if isinstance(shape[0], int) else _CHUNK[kind]
        self.output = _resolve_output(self._path, [item.name for item in self._session.get_outputs()], output)
        # Running the network on noise shows the output's shape, and whether the network accepts the size.
        noise = np.random.default_rng(0).random((1, self.size, self.size, 3), dtype=np.float32)
        probe = self.run(noise * 255 if self.takes_bytes else noise)
        if not np.isfinite(probe).all():
            raise ExtractorError(
                f"{self._path}: the output {self.output} is not finite for an image of noise; choose another file or "
                "output"
            )
        self.shape = tuple(probe.shape[1:])

    def run(self, images: NDArray[np.float32] | NDArray[np.uint8]) -> NDArray[np.float32]:
        """Run the network on images [T, size, size, 3] in the network's input range; return [T, *shape] float32.

        Raises:
            InvalidArgumentError: The network does not accept the images, or does not return one output per image.
        """
        batch = images.transpose(0, 3, 1, 2) if self.layout == "nchw" else images
        parts = []
        for first in range(0, len(batch), self._batch):
            chunk = batch[first : first + self._batch]
            full = np.zeros((self._batch, *batch.shape[1:]), dtype=self._type)
            full[: len(chunk)] = chunk
            try:
                (values,) = run_session(self._session, [self.output], {self._input: full})
            except session_failures() as error:
                raise InvalidArgumentError(
                    f"{self._path}: does not run on images of {self.size} x {self.size} pixels: {_first_line(error)}"
                ) from error
            if not isinstance(values, np.ndarray) or values.ndim not in (2, 3, 4) or len(values) != self._batch:
                raise InvalidArgumentError(
                    f"{self._path}: the output {self.output} must be [B, D], [B, N, D] or a map of four axes, got "
                    f"{list(np.shape(values))} for {self._batch} images; choose another with output=NAME"
                )
            parts.append(values[: len(chunk)].astype(np.float32, copy=False))
        if not parts:
            return np.zeros((0, *self.shape), np.float32)
        output = np.concatenate(parts)
        return output.transpose(0, 3, 1, 2) if self.layout == "nhwc" and output.ndim == 4 else output


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _read(path: Path) -> bytes:
    try:
        return read_onnx(path)
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read ({error.strerror or error})") from error


def _resolve_layout(path: Path, shape: list[Any], layout: InputLayout | None) -> InputLayout:
    channels: dict[InputLayout, Any] = {"nchw": shape[1], "nhwc": shape[3]}
    if layout is None:
        possible = [name for name, length in channels.items() if length == 3]
        if len(possible) != 1:
            raise InvalidArgumentError(
                f"{path}: the input {_text(shape)} does not say where its three channels are; add layout=nchw or "
                "layout=nhwc"
            )
        return possible[0]
    if isinstance(channels[layout], int) and channels[layout] != 3:
        raise InvalidArgumentError(
            f"{path}: layout must have three channels, got {layout} for the input {_text(shape)}"
        )
    return layout


def _resolve_size(path: Path, shape: list[Any], layout: InputLayout, size: int | None) -> int:
    sides = {side for side in (shape[2:] if layout == "nchw" else shape[1:3]) if isinstance(side, int)}
    if len(sides) == 2:
        raise InvalidArgumentError(f"{path}: the input must be a square, got {_text(shape)}")
    if not sides and size is None:
        raise InvalidArgumentError(f"{path}: takes images of any size; add the size to use, such as size=224")
    if sides and size not in (None, *sides):
        raise InvalidArgumentError(f"{path}: size must be {min(sides)}, as the input is {_text(shape)}, got {size}")
    return int(size or min(sides))


def _resolve_output(path: Path, outputs: list[str], output: str | None) -> str:
    if output is None and len(outputs) == 1:
        return outputs[0]
    if output in outputs:
        return str(output)
    if output is not None and output.isdecimal() and int(output) < len(outputs):
        return outputs[int(output)]
    listed = f"its outputs are {', '.join(outputs)}"
    if output is None:
        raise InvalidArgumentError(f"{path}: {listed}; choose one with output=NAME")
    raise InvalidArgumentError(f"{path}: there is no output {output!r}; {listed}")


def _text(shape: list[Any]) -> str:
    return f"[{', '.join(str(length) if isinstance(length, int) else length or '?' for length in shape)}]"


Pool = Literal["regions", "mean", "first"]

# Part of the fingerprint; increment it whenever the same frame would get different vectors.
_REVISION = 1

# Pooling methods by the number of axes of the output for one image; the first is the default.
_POOLS: dict[int, tuple[Pool, ...]] = {1: (), 2: ("first", "mean"), 3: ("regions", "mean")}


@check_constructor
class OnnxExtractor:
    """Unit vectors from a network in an ONNX file: one per frame, or one for each of nine regions if the output is a
    feature map.

    Settings follow a question mark in the name, as in ``onnx:FILE?mean=0.485,0.456,0.406&std=0.229,0.224,0.225``. A
    file written by ``vidkin export`` needs no settings.

    ========== ==================================================================================================
    ``size``   side of the input in pixels; default: read from the file
    ``fit``    ``stretch`` (default): the whole frame is resized to a square; ``crop``: its center; ``letterbox``:
               the whole frame between black bars
    ``bars``   ``trim`` (default with ``stretch``): letterbox and pillarbox bars are cut off first; ``keep``
    ``range``  value of white before ``mean`` and ``std``: ``1`` (default; for uint8 ``255``) or another number
    ``mean``   subtracted, in units of ``range``: one number, or three in the order of ``color``; default 0
    ``std``    divisor, in the same format; default 1
    ``color``  ``rgb`` (default) or ``bgr``
    ``layout`` ``nchw`` or ``nhwc``; default: inferred from the input's shape
    ``output`` name or index (from 0) of the output; required if there are several
    ``pool``   for an output [B, N, D], ``first`` (class token) or ``mean``, required; for a feature map, ``regions``
               (default: 3 x 3, maximum) or ``mean``
    ``scorer`` ``copies`` (default) or ``kinds``, see :class:`~vidkin.features.FrameExtractor`
    ========== ==================================================================================================

    Args:
        name: ``onnx:FILE[?settings]``.
        whitening: A file written by :meth:`vidkin.features.Whitening.save`.
        device: ``auto`` (CUDA if onnxruntime supports it and finds a device), ``cpu``, ``cuda`` or ``cuda:1``.

    Attributes:
        name: The name under which the extractor was opened, including settings.
        fingerprint: A short hash of the file's content, its settings and the whitening, independent of its path.
        short_side: Side of the input in pixels.
        scorer: The scorer set in the name; default: ``copies``, or ``kinds`` for exported models that were trained on
            labels.

    Raises:
        UnknownExtractorError: The file does not exist.
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
            raise InvalidArgumentError(f"onnx: has no setting {unknown[0]!r}; choose from {', '.join(_ALLOWED)}")
        for setting, choices in _ALLOWED.items():
            if choices and setting in given and given[setting] not in choices:
                raise InvalidArgumentError(f"{setting} must be {' or '.join(choices)}, got {given[setting]!r}")
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
        self._pool = _resolve_pool(given.get("pool"), self._network)
        # Exported models trained on labels rank by kind; all other files are assumed to find copies.
        learned_kinds = self._network.about.get("kind") in ("image", "deep_ranking")
        self.scorer: Final = given.get("scorer", "kinds" if learned_kinds else "copies")
        self.describes_boxes: Final = self.scorer == "copies"
        self._whitening = None if whitening is None else Whitening.load(whitening)
        if self._whitening is not None:
            self._whitening.check_length(self._network.shape[0 if len(self._network.shape) == 3 else -1], name)
        facts = {
            "revision": _REVISION,
            "file": self._network.digest,
            "size": self._network.size,
            "layout": self._network.layout,
            "output": self._network.output,
            "input": asdict(self._input),
            "pool": self._pool,
            "scorer": self.scorer,
            "whitening": None if self._whitening is None else self._whitening.digest(),
        }
        self.fingerprint: Final = f"onnx-{short_digest(facts)}"
        self.short_side: Final = self._network.size

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Describe frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""

        def describe(images: NDArray[np.uint8]) -> NDArray[np.float32]:
            values = self.describe(images)
            return values if self._whitening is None else self._whitening.apply(values)

        return features_of_views(describe, frames, self.fingerprint, boxes=boxes)

    def describe(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Compute descriptors [T, R, D] of images [T, H, W, 3] before whitening, to fit a whitening to.

        Non-finite values, for example from normalizing a black image, become zero, which means "no content".
        """
        output = np.nan_to_num(self._network.run(self.prepare(images)), nan=0.0, posinf=0.0, neginf=0.0)
        if self._pool == "regions":
            return region_max_pool([output])
        if self._pool == "first":
            output = output[:, 0]
        elif self._pool == "mean":
            output = output.mean(axis=1) if output.ndim == 3 else output.mean(axis=(2, 3))
        return unit_vectors(output)[:, None]

    def prepare(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Convert images [T, H, W, 3] uint8 to network input [T, size, size, 3] float32, before any layout change."""
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
    """Open an ``onnx:`` network; factory for the registry. ``weights`` must be None, because the file contains the
    weights."""
    if weights is not None:
        raise InvalidArgumentError(
            f"an ONNX file contains its weights, got {os.fspath(weights)!r} as well as {name!r}; leave weights out"
        )
    return OnnxExtractor(name, whitening=whitening, device=device)


@dataclass(frozen=True, slots=True)
class _Input:
    """Settings for converting images to the network's input."""

    fit: Fit
    bars: Literal["trim", "keep"]
    color: Literal["rgb", "bgr"]
    range: float
    mean: Triple
    std: Triple


# Settings after the question mark and their choices; a setting without choices accepts any text.
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
            "the file takes integers from 0 to 255 (uint8), so range, mean and std must be left out"
        )
    return _Input(
        fit,  # type: ignore[arg-type]  # one of _ALLOWED
        "keep" if given.get("bars", bars) == "keep" else "trim",
        "bgr" if given.get("color") == "bgr" else "rgb",
        white,
        mean,
        std,
    )


def _resolve_pool(pool: str | None, network: OnnxNetwork) -> Pool | None:
    """Return the pooling of an output; None if the output already is one vector per image."""
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
