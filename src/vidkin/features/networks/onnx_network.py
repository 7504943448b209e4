"""ONNX files that take images: checked when they are opened, and run by onnxruntime."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.plain_values import parse_json
from vidkin.errors import ExtractorError, InvalidArgumentError, MissingPartError, UnknownExtractorError
from vidkin.features.networks.backbone import resolve_device

__all__ = ["InputLayout", "OnnxNetwork", "import_onnxruntime"]

InputLayout = Literal["nchw", "nhwc"]

_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}
# Chunks are always full, so that results do not depend on how the frames arrive.
_CHUNK = {"cpu": 4, "cuda": 32}
# Bytes that introduce the name of a second file with weights in a protocol buffer; the length of the name follows.
_LOCATION = re.compile(rb"\n\x08location\x12")


class OnnxNetwork:
    """A network of images in an ONNX file.

    Weights beside the file (``model.onnx.data``) are read, too, if they are in the same folder or below it.

    Args:
        path: The ONNX file; its only input is a batch of squares with three channels.
        layout: Order of the input's axes; None: read from its shape.
        size: Side of the squares in pixels; None: read from the input's shape.
        output: Name or number of the output; None if there is only one.
        device: ``auto`` (CUDA if torch and onnxruntime support it), ``cpu``, ``cuda``, ``cuda:1``.

    Attributes:
        size: Side of the input, pixels.
        layout: Order of the input's axes.
        takes_bytes: Whether the input has whole numbers from 0 to 255.
        shape: Shape of the output for one image: [D], [N, D] or [C, H, W] (whatever the layout).
        output: Name of the output.
        about: Description of the model that `vidkin export` wrote; empty for other files.
        digest: SHA-256 of the file and of its weights.

    Raises:
        UnknownExtractorError: The file does not exist.
        MissingPartError: onnxruntime is not installed.
        InvalidArgumentError: The file is damaged, has another kind of input, or an argument does not fit it.
        ExtractorError: The network returns values that are not finite.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        layout: InputLayout | None = None,
        size: int | None = None,
        output: str | None = None,
        device: str = "auto",
    ) -> None:
        self._path = Path(path).expanduser()
        if not self._path.is_file():
            raise UnknownExtractorError(f"{self._path}: there is no such ONNX file; check the path")
        self.digest = _digest(self._path)
        self._session, kind = _open_session(self._path, device)
        about = self._session.get_modelmeta().custom_metadata_map.get("vidkin")
        try:
            self.about: dict[str, Any] = dict(parse_json(about or "{}"))
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"{self._path}: what `vidkin export` wrote into it is damaged ({error}); export the model again"
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
        self.layout = _layout_of(self._path, shape, layout)
        self.size = _size_of(self._path, shape, self.layout, size)
        self._batch = shape[0] if isinstance(shape[0], int) else _CHUNK[kind]
        self.output = _output_of(self._path, [item.name for item in self._session.get_outputs()], output)
        # A picture of noise shows the output's shape, and whether the network accepts the size.
        noise = np.random.default_rng(0).random((1, self.size, self.size, 3), dtype=np.float32)
        probe = self.run(noise * 255 if self.takes_bytes else noise)
        if not bool(probe.isfinite().all()):
            raise ExtractorError(
                f"{self._path}: the output {self.output} is not finite for a picture of noise; choose another file or "
                "output"
            )
        self.shape = tuple(probe.shape[1:])

    def run(self, images: NDArray[np.float32]) -> torch.Tensor:
        """The output for images [T, size, size, 3], in the network's own units: [T, *shape] float32, on the CPU.

        Raises:
            InvalidArgumentError: The network does not accept the images, or does not return one output for each of
                them.
        """
        batch = images.transpose(0, 3, 1, 2) if self.layout == "nchw" else images
        parts = []
        for first in range(0, len(batch), self._batch):
            chunk = batch[first : first + self._batch]
            full = np.zeros((self._batch, *batch.shape[1:]), dtype=self._type)
            full[: len(chunk)] = chunk
            try:
                (values,) = self._session.run([self.output], {self._input: full})
            except _failures() as error:
                raise InvalidArgumentError(
                    f"{self._path}: does not run on images of {self.size} x {self.size} pixels: {_cause(error)}"
                ) from error
            if (
                not isinstance(values, np.ndarray)
                or values.ndim not in (2, 3, 4)
                or len(values) != self._batch
            ):
                raise InvalidArgumentError(
                    f"{self._path}: the output {self.output} must be [B, D], [B, N, D] or a map of four axes, got "
                    f"{list(np.shape(values))} for {self._batch} images; choose another with output=NAME"
                )
            parts.append(torch.from_numpy(values[: len(chunk)].astype(np.float32)))
        output = torch.cat(parts) if parts else torch.zeros(0, *self.shape)
        return output.permute(0, 3, 1, 2) if self.layout == "nhwc" and output.ndim == 4 and parts else output


def import_onnxruntime() -> Any:
    """The module onnxruntime.

    Raises:
        MissingPartError: onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingPartError(
            "onnxruntime is not installed; install it with: pip install 'vidkin[onnx]'"
        ) from error
    return onnxruntime


def _open_session(path: Path, device: str) -> tuple[Any, str]:
    onnxruntime = import_onnxruntime()
    place = resolve_device(device)
    if place.type == "cuda" and "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        if device != "auto":
            raise InvalidArgumentError(
                f"this onnxruntime has no CUDA for device {device!r}; install onnxruntime-gpu, or use cpu"
            )
        place = torch.device("cpu")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    options.intra_op_num_threads = torch.get_num_threads()
    options.use_deterministic_compute = True
    # Waiting threads would take processor time from the other workers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers: list[Any] = ["CPUExecutionProvider"]
    if place.type == "cuda":
        providers = [("CUDAExecutionProvider", {"device_id": place.index or 0, "use_tf32": 0}), *providers]
    try:
        return onnxruntime.InferenceSession(os.fspath(path), options, providers=providers), place.type
    except _failures() as error:
        raise InvalidArgumentError(
            f"{path}: onnxruntime {onnxruntime.__version__} cannot open this file: {_cause(error)}"
        ) from error


def _failures() -> tuple[type[Exception], ...]:
    """Exceptions that onnxruntime raises; they have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = (kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception))
    return (*own, RuntimeError, ValueError)


def _cause(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _digest(path: Path) -> str:
    """SHA-256 of a file and of the weights files it names."""
    content = path.read_bytes()
    digest = hashlib.sha256(content)
    names = set()
    for match in _LOCATION.finditer(content):
        start, length = match.end() + 1, content[match.end()]
        if length >= 128:  # two bytes of seven bits each, the lower first
            start, length = start + 1, length - 128 + (content[start] << 7)
        names.add(content[start : start + length].decode(errors="replace"))
    for name in sorted(names):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InvalidArgumentError(
                f"{path}: its weights must be in its own folder, got {name!r}; save it as one file"
            )
        weights = path.parent / name
        if not weights.is_file():
            raise InvalidArgumentError(
                f"{path}: its weights are in {name!r}, which is not beside it; copy it there"
            )
        with open(weights, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _layout_of(path: Path, shape: list[Any], layout: InputLayout | None) -> InputLayout:
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


def _size_of(path: Path, shape: list[Any], layout: InputLayout, size: int | None) -> int:
    sides = {side for side in (shape[2:] if layout == "nchw" else shape[1:3]) if isinstance(side, int)}
    if len(sides) == 2:
        raise InvalidArgumentError(f"{path}: the input must be a square, got {_text(shape)}")
    if not sides and size is None:
        raise InvalidArgumentError(f"{path}: takes images of any size; add the one to use, such as size=224")
    if sides and size not in (None, *sides):
        raise InvalidArgumentError(
            f"{path}: size must be {min(sides)}, as the input is {_text(shape)}, got {size}"
        )
    return int(size or min(sides))


def _output_of(path: Path, outputs: list[str], output: str | None) -> str:
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
