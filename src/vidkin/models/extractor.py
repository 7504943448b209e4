"""Use trained models as extractors without torch: cut clips from a stream of frames and embed them."""

from __future__ import annotations

import bisect
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike
from vidkin._base.registry import load_attribute, parse_name
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features import ClipPlan, FrameExtractor, frame_information
from vidkin.features.sessions import SquareEncoder, check_device, has_cuda
from vidkin.features.square_extractor import SquareExtractor
from vidkin.media.frames import earliest, fit_to_square, is_before, latest
from vidkin.models.comparator_extractor import is_comparator, open_comparator_extractor
from vidkin.models.config import EncoderConfig
from vidkin.models.stored import (
    GRAPH_FILE,
    HEAD_FILE,
    WEIGHTS_FILE,
    Graph,
    ModelInfo,
    has_torch,
    read_model_info,
    read_weights,
    weights_digest,
)
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.media import Frames

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedClip:
    """A clip cut from a stream of frames.

    Attributes:
        items: [n, ...], one item per frame (see :class:`ClipBuffer`).
        time: Midpoint of the clip in seconds.
        information: Mean information of the frames.
    """

    items: NDArray[np.float32]
    time: float
    information: float


class ClipBuffer:
    """Cuts clips from frames pushed in order, and discards frames that no later clip needs.

    An item is what is stored for a frame: its image or its features.

    Args:
        plan: Clips to cut. If the plan lists times, each clip contains the frame shown at each of its times. Otherwise
            a clip consists of ``frames`` consecutive frames; clips start every ``plan.step`` seconds, and the last one
            ends with the video. A video with fewer frames becomes one short clip. If the plan has no rate, a single
            clip contains frames spaced evenly over the whole video.
        frames: Number of frames in a clip.
    """

    def __init__(self, plan: ClipPlan, frames: int) -> None:
        self._plan = plan
        self._frames = frames
        self._times: list[float] = []
        self._items: list[NDArray[np.float32]] = []
        self._information: list[float] = []
        self._made = 0
        self._started = self._covered = float("-inf")

    def push(self, items: NDArray[np.float32], times: list[float], information: list[float]) -> Iterator[PlannedClip]:
        """Add the items [n, ...] of frames with their times, and yield the clips that are now complete."""
        self._times += times
        self._items += list(items)
        self._information += information
        if self._plan.clips:
            return self._iter_planned(last=False)
        return iter(()) if self._plan.rate is None else self._iter_consecutive()

    def finish(self) -> Iterator[PlannedClip]:
        """Yield the remaining clips at the end of the video."""
        if self._plan.clips:
            yield from self._iter_planned(last=True)
        elif self._plan.rate is None and self._times:
            begin, end = self._times[0], self._times[-1]
            parts = [begin + (end - begin) * (index + 0.5) / self._frames for index in range(self._frames)]
            yield self._clip(self._rows(parts), (begin + end) / 2)
        elif self._times and (self._covered == float("-inf") or self._times[-1] - self._covered > self._plan.step / 2):
            rows = range(max(0, len(self._times) - self._frames), len(self._times))
            yield self._clip(list(rows), (self._times[rows[0]] + self._times[-1]) / 2)

    def _iter_consecutive(self) -> Iterator[PlannedClip]:
        while self._times:
            begin = self._plan.start + self._made * self._plan.step
            first = bisect.bisect_left(self._times, earliest(begin))
            if first + self._frames > len(self._times):
                # Earlier frames are needed only if the video ends before this clip is complete.
                self._drop(min(first, len(self._times) - self._frames))
                return
            if self._times[first] <= self._started:
                self._made += 1  # with less than one frame per step, this clip would repeat the previous one
                continue
            rows = list(range(first, first + self._frames))
            yield self._clip(rows, (self._times[rows[0]] + self._times[rows[-1]]) / 2)

    def _iter_planned(self, *, last: bool) -> Iterator[PlannedClip]:
        while self._made < len(self._plan.clips):
            times = self._plan.clips[self._made]
            if not last and not (self._times and is_before(times[-1], self._times[-1])):
                return
            rows = self._rows(times)
            yield self._clip(rows, (times[0] + times[-1]) / 2)
            self._drop(rows[-1])

    def _rows(self, times: Sequence[float]) -> list[int]:
        """Return the row of the frame shown at each time."""
        return [max(0, bisect.bisect_right(self._times, latest(time)) - 1) for time in times]

    def _clip(self, rows: list[int], time: float) -> PlannedClip:
        self._made += 1
        self._started, self._covered = self._times[rows[0]], self._times[rows[-1]]
        information = sum(self._information[row] for row in rows) / len(rows)
        return PlannedClip(np.stack([self._items[row] for row in rows]), time, information)

    def _drop(self, count: int) -> None:
        if count > 0:
            del self._times[:count], self._items[:count], self._information[:count]


class EncoderNetwork(Protocol):
    """A trained encoder that works on NumPy arrays. B images or clips, T frames, S pixels per side.

    Attributes:
        config: Kind, sizes and input of the model.
        dimension: D, dimension of an embedding.
        digest: SHA-256 of the configuration and weights (:func:`vidkin.models.model_digest`).
        square_digest: For kind ``frame_encoder``: digest of the network alone, like that of vidkin's built-in encoder.
        batch: Number of inputs to pass at a time.
    """

    config: EncoderConfig
    dimension: int
    digest: str
    square_digest: str
    batch: int

    def embed(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Embed images [B, 3, S, S] or clips [B, T, 3, S, S] with values from 0 to 1 as unit vectors [B, D]."""

    def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """For kind ``clip``: compute features [B, F] of frames [B, 3, S, S] with values from 0 to 1."""

    def head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """For kind ``clip``: compute unit vectors [B, D] of clips from their frame features [B, T, F]."""


@check_arguments
def open_encoder(folder: PathLike, *, device: str = "auto") -> EncoderNetwork:
    """Open the encoder in a folder with ONNX Runtime, or with torch where ONNX Runtime cannot run it.

    Torch is needed if the folder has no ``model.onnx`` (as written by version 0.1), if its ``model.onnx`` was exported
    from different weights, or if the device is a CUDA device that onnxruntime does not support.

    Args:
        folder: Folder of a trained encoder.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        MissingPartError: Torch is needed but not installed.
        InvalidArgumentError: The folder is damaged, or the device does not exist.
    """
    path, info = Path(folder).expanduser(), read_model_info(folder)
    if not (check_device(device).startswith("cuda") and has_torch() and not has_cuda()):
        try:
            return OnnxEncoder(path, info, device=device)
        except MissingPartError as error:
            if not has_torch():
                raise
            if (path / GRAPH_FILE).exists():
                _log.warning("%s", error)
    # Loaded by name to avoid a circular import: the torch modules import this one.
    wrap = load_attribute("vidkin.models.encoder:TorchEncoder")
    network: EncoderNetwork = wrap(load_attribute("vidkin.models.model_folder:load_model")(path), device=device)
    return network


# Chunks are always padded to full size, so that results do not depend on how frames are batched.
CHUNK = {"cpu": 4, "cuda": 32}
"""Number of images or clips passed to a network at a time, by device type."""


class OnnxEncoder:
    """Runs the encoder in a folder with ONNX Runtime; see :class:`EncoderNetwork`.

    Args:
        folder: Folder of the model.
        info: Content of the folder's ``config.toml``.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        MissingPartError: An ONNX file is missing, damaged or stale.
        InvalidArgumentError: The weights are damaged, or the device does not exist.
    """

    def __init__(self, folder: Path, info: ModelInfo, *, device: str = "auto") -> None:
        self.config: EncoderConfig = info.config
        self.digest = weights_digest(info.config.to_mapping(), read_weights(folder / WEIGHTS_FILE))
        self._graph = Graph(folder / GRAPH_FILE, self.digest, device=device)
        self._head = Graph(folder / HEAD_FILE, self.digest, device=device) if self.config.kind == "clip" else None
        self.dimension = self._graph.dimension
        self.square_digest = self._graph.square_digest
        self.batch = CHUNK["cuda" if self._graph.on_cuda else "cpu"]

    def embed(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Embed images [B, 3, S, S] or clips [B, T, 3, S, S] from 0 to 1 as unit vectors [B, D]."""
        if self._head is not None:
            features = self.frame_features(inputs.reshape(-1, *inputs.shape[2:]))
            return self.head(features.reshape(*inputs.shape[:2], -1))
        if inputs.ndim == 5 and self.config.kind != "c3d" and inputs.shape[1] != self.config.frames:
            raise InvalidArgumentError(f"clips must have {self.config.frames} frames, got {inputs.shape[1]}")
        return self._graph.run(inputs)

    def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute features [B, F] of frames [B, 3, S, S] from 0 to 1."""
        return self._graph.run(images)

    def head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute unit vectors [B, D] of clips from their frame features [B, T, F]."""
        assert self._head is not None
        return self._head.run(features)


# Minimum information of a frame. Trained models can distinguish even uniform frames, such as a plain sky, so these are
# not excluded from the index.
_MIN_INFORMATION = 0.0625


@check_constructor
class ModelExtractor:
    """Embeds single frames with a trained model: [T, 1, D].

    Args:
        model: An image model (``image``, ``deep_ranking``), from :func:`open_encoder`.
        name: Name under which this extractor was opened.

    Attributes:
        fingerprint: Kind and a short hash of the configuration and weights, independent of the folder's path.
        short_side: Side of the model's input in pixels.
    """

    scorer = "kinds"
    describes_boxes = False

    def __init__(self, model: EncoderNetwork, *, name: str) -> None:
        self.model = model
        self.name: Final = name
        self.fingerprint: Final = f"model-{model.config.kind}-{model.digest[:12]}"
        self.short_side: Final = model.config.size

    def extract(self, frames: Frames, *, boxes: NDArray[np.floating] | None = None) -> FrameFeatures:
        """Embed single frames [T, H, W, 3].

        The scorer ``kinds`` compares whole frames, so ``boxes`` is ignored.
        """
        images = encoder_input(frames.images, self.model.config)
        return FrameFeatures.of_whole(
            self._run_in_chunks(images, self.model.embed)[:, None],
            frames.timestamps.copy(),
            np.maximum(frame_information(frames.images), np.float32(_MIN_INFORMATION)),
            self.fingerprint,
        )

    def _run_in_chunks(
        self, inputs: NDArray[np.float32], network: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Apply ``network`` to inputs [N, ...] in full chunks."""
        size = self.model.batch
        parts = []
        for first in range(0, len(inputs), size):
            chunk = inputs[first : first + size]
            missing = np.zeros((size - len(chunk), *inputs.shape[1:]), np.float32)
            parts.append(network(np.concatenate([chunk, missing]))[: len(chunk)])
        return np.concatenate(parts) if parts else np.zeros((0, self.model.dimension), np.float32)


class ClipModelExtractor(ModelExtractor):
    """Embeds clips with a trained model: [T, 1, D] for T clips.

    A model with a ``rate`` gets clips of ``frames`` consecutive frames at that rate, with the requested number of clips
    per second. A model without a rate gets ``frames`` frames spaced evenly over the video, or over pieces of about
    ``seconds``. Frames are read, resized and selected exactly as for labeled items in training. A frame network
    processes each frame only once, even if the frame belongs to several clips.

    Args:
        model: A clip model (``clip``, ``c3d``, ``deep_sbd``), from :func:`open_encoder`.
        name: Name under which this extractor was opened.
    """

    def plan(self, duration: float, *, rate: float, start: float = 0.0, end: float | None = None) -> ClipPlan:
        """Plan the frames to read and the clips to cut; see :meth:`vidkin.features.ClipExtractor.plan`."""
        config = self.model.config
        if config.rate is not None:
            return ClipPlan(start, end, config.rate, step=1.0 / rate)
        stop = duration if end is None else min(end, duration or end)
        length = stop - start
        if not length > 0:
            # An image or a file of unknown duration: read all frames, and space the clip's frames evenly.
            return ClipPlan(start, end, None)
        pieces = 1 if config.seconds is None else max(1, round(length / config.seconds))
        step = length / (pieces * config.frames)
        times = [start + (index + 0.5) * step for index in range(pieces * config.frames)]
        clips = (times[first : first + config.frames] for first in range(0, len(times), config.frames))
        return ClipPlan(times[0], times[-1] + step / 4, 1.0 / step, clips=tuple(map(tuple, clips)))

    def describe_clips(self, batches: Iterator[Frames], plan: ClipPlan) -> Iterator[FrameFeatures]:
        """Extract features of the clips in a plan; see :meth:`vidkin.features.ClipExtractor.describe_clips`."""
        buffer = ClipBuffer(plan, self.model.config.frames)
        waiting: list[PlannedClip] = []
        for frames in batches:
            items = self._frame_items(frames)
            information = frame_information(frames.images).tolist()
            waiting += buffer.push(items, frames.timestamps.tolist(), information)
            if len(waiting) >= self.model.batch:
                yield self._describe(waiting)
                waiting = []
        waiting += buffer.finish()
        if waiting:
            yield self._describe(waiting)

    def extract(self, frames: Frames, *, boxes: NDArray[np.floating] | None = None) -> FrameFeatures:
        """Embed the clip around each frame.

        A clip consists of the nearest frames in order, up to the model's number of frames. For whole files use
        :meth:`describe_clips`, which reads frames at the model's rate.
        """
        items = self._frame_items(frames)
        information = frame_information(frames.images)
        length = min(self.model.config.frames, len(frames))
        clips = []
        for index, time in enumerate(frames.timestamps.tolist()):
            first = min(max(0, index - length // 2), len(frames) - length)
            clips.append(PlannedClip(items[first : first + length], time, float(information[index])))
        return self._describe(clips)

    def _frame_items(self, frames: Frames) -> NDArray[np.float32]:
        """Return the item to buffer for each frame: its features, or the image if the model has no frame network."""
        images = encoder_input(frames.images, self.model.config)
        if self.model.config.kind == "clip":
            return self._run_in_chunks(images, self.model.frame_features)
        return images

    def _describe(self, clips: list[PlannedClip]) -> FrameFeatures:
        values = np.zeros((len(clips), 1, self.model.dimension), np.float32)
        head = self.model.head if self.model.config.kind == "clip" else self.model.embed
        for length in sorted({len(clip.items) for clip in clips}):
            rows = [row for row, clip in enumerate(clips) if len(clip.items) == length]
            values[rows, 0] = self._run_in_chunks(np.stack([clips[row].items for row in rows]), head)
        information = np.array([clip.information for clip in clips], np.float32)
        return FrameFeatures.of_whole(
            values,
            np.array([clip.time for clip in clips], np.float64),
            np.maximum(information, np.float32(_MIN_INFORMATION)),
            self.fingerprint,
        )


@check_arguments
def open_model_extractor(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> FrameExtractor:
    """Open a trained model's folder as an extractor; the entry point ``model`` in the group ``vidkin.extractors``.

    Args:
        name: ``path/to/model`` or ``model:path/to/model``; for a comparator, settings may follow after a question mark
            (:func:`vidkin.models.comparator_extractor.open_comparator_extractor`).
        weights, whitening: Must be None, because the folder is self-contained.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The folder is damaged, or weights, a whitening or unsupported settings were passed.
    """
    parsed = parse_name(name)
    folder = parsed.path.removeprefix("model:")
    compares = is_comparator(folder)
    settings = None if compares else parsed.query
    for what, given in (("weights", weights), ("whitening", whitening), ("settings", settings)):
        if given is not None:
            raise InvalidArgumentError(
                f"a trained model accepts no {what}, got {os.fspath(given)!r} with {parsed.path!r}; its folder is "
                "self-contained"
            )
    if compares:
        return open_comparator_extractor(name, device=device)
    model = open_encoder(folder, device=device)
    if model.config.kind == "frame_encoder":
        return SquareExtractor(_wrap_square_encoder(model), name=name)
    kind = ClipModelExtractor if model.config.takes_clips else ModelExtractor
    return kind(model, name=name)


@check_arguments
def encoder_input(images: NDArray[np.uint8], config: EncoderConfig) -> NDArray[np.float32]:
    """Convert frames [T, H, W, 3] uint8 to squares [T, 3, S, S] from 0 to 1, prepared like the training data.

    Args:
        images: RGB images, preferably decoded with a short side of S, like labeled items.
        config: Configuration of the model; only ``size`` and ``fit`` are used.
    """
    squares = np.empty((len(images), config.size, config.size, 3), dtype=np.uint8)
    for index, image in enumerate(images):
        squares[index] = fit_to_square(image, config.size, config.fit)
    return np.ascontiguousarray(squares.transpose(0, 3, 1, 2)).astype(np.float32) / np.float32(255)


def _wrap_square_encoder(model: EncoderNetwork) -> SquareEncoder:
    """Wrap a model of kind ``frame_encoder`` for use by the ``squares`` extractor class."""
    return SquareEncoder(
        lambda squares: model.embed(squares / np.float32(255)),
        side=model.config.size,
        dimension=model.dimension,
        digest=model.square_digest,
    )
