"""Cut frames, as they arrive, into the clips of a plan."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError
from vidkin.features import ClipPlan, FrameExtractor, Views, frame_information, resolve_device
from vidkin.features.frame_extractor import FrameEncoderExtractor
from vidkin.media import Frames
from vidkin.media.frames import fit_to_square
from vidkin.media.time import SAME_TIME
from vidkin.models.clip_encoder import ClipEncoder
from vidkin.models.comparator_folder import is_comparator, open_comparator_extractor
from vidkin.models.config import EncoderConfig
from vidkin.models.encoder import Encoder
from vidkin.models.frame_model import FrameEncoderModel
from vidkin.models.model_folder import load_model, model_digest
from vidkin.similarity import FrameFeatures


@dataclass(frozen=True, slots=True, eq=False)
class PlannedClip:
    """One clip.

    Attributes:
        items: [n, ...], the items pushed for its frames.
        time: Middle of the clip in seconds.
        information: Mean information of its frames.
    """

    items: torch.Tensor
    time: float
    information: float


class ClipBuffer:
    """Takes frames in order, returns clips as they become complete, and drops frames that no later clip needs.

    Args:
        plan: Which clips to make. If it lists times, a clip holds the frame on screen at each of them. Otherwise a
            clip is ``frames`` consecutive frames, with one clip every ``plan.step`` seconds and the last at the end of
            the video; a video with fewer frames is one short clip. If the plan reads every frame, the result is one
            clip whose frames are spread evenly over the whole video.
        frames: Number of frames in a clip.
    """

    def __init__(self, plan: ClipPlan, frames: int) -> None:
        self._plan = plan
        self._frames = frames
        self._times: list[float] = []
        self._items: list[torch.Tensor] = []
        self._information: list[float] = []
        self._made = 0
        self._started = self._covered = float("-inf")

    def push(self, items: torch.Tensor, times: list[float], information: list[float]) -> Iterator[PlannedClip]:
        """Add frames [n, ...] with their times and yield the clips that are complete now."""
        self._times += times
        self._items += list(items)
        self._information += information
        if self._plan.clips:
            return self._spread(last=False)
        return iter(()) if self._plan.rate is None else self._consecutive()

    def finish(self) -> Iterator[PlannedClip]:
        """The clips that end with the video."""
        if self._plan.clips:
            yield from self._spread(last=True)
        elif self._plan.rate is None and self._times:
            begin, end = self._times[0], self._times[-1]
            parts = [begin + (end - begin) * (index + 0.5) / self._frames for index in range(self._frames)]
            yield self._clip(self._rows(parts), (begin + end) / 2)
        elif self._times and (self._covered == float("-inf") or self._times[-1] - self._covered > self._plan.step / 2):
            rows = range(max(0, len(self._times) - self._frames), len(self._times))
            yield self._clip(list(rows), (self._times[rows[0]] + self._times[-1]) / 2)

    def _consecutive(self) -> Iterator[PlannedClip]:
        while self._times:
            begin = self._plan.start + self._made * self._plan.step
            first = bisect.bisect_left(self._times, begin - SAME_TIME)
            if first + self._frames > len(self._times):
                # Frames before this clip are needed only if the video ends in the middle of it.
                self._drop(min(first, len(self._times) - self._frames))
                return
            if self._times[first] <= self._started:
                self._made += 1  # fewer frames than steps: this would be the previous clip again
                continue
            rows = list(range(first, first + self._frames))
            yield self._clip(rows, (self._times[rows[0]] + self._times[rows[-1]]) / 2)

    def _spread(self, *, last: bool) -> Iterator[PlannedClip]:
        while self._made < len(self._plan.clips):
            times = self._plan.clips[self._made]
            if not last and not (self._times and self._times[-1] > times[-1] + SAME_TIME):
                return
            rows = self._rows(times)
            yield self._clip(rows, (times[0] + times[-1]) / 2)
            self._drop(rows[-1])

    def _rows(self, times: Sequence[float]) -> list[int]:
        """The row of the frame that is on screen at each time."""
        return [max(0, bisect.bisect_right(self._times, time + SAME_TIME) - 1) for time in times]

    def _clip(self, rows: list[int], time: float) -> PlannedClip:
        self._made += 1
        self._started, self._covered = self._times[rows[0]], self._times[rows[-1]]
        information = sum(self._information[row] for row in rows) / len(rows)
        return PlannedClip(torch.stack([self._items[row] for row in rows]), time, information)

    def _drop(self, count: int) -> None:
        if count > 0:
            del self._times[:count], self._items[:count], self._information[:count]


# A trained model as an extractor for indexing and search.


# Chunks are always full, so that results do not depend on how the frames arrive.
_CHUNK = {"cpu": 4, "cuda": 32}

# A trained model decides what matters, so even a plain sky is indexed.
_LEAST_INFORMATION = 0.0625


class ModelExtractor:
    """Embeddings of single frames by a trained model: [T, 1, D].

    Args:
        model: A model of images (``image``, ``deep_ranking``).
        name: As it was opened.
        device: Where it computes.

    Attributes:
        fingerprint: Kind and a short hash of configuration and weights: the same wherever the folder is.
        short_side: Side of the model's input, pixels.
    """

    scorer = "kinds"
    views: Views = "none"

    def __init__(self, model: Encoder, *, name: str, device: torch.device) -> None:
        self.model = model.eval().requires_grad_(False).to(device)
        self.name: Final = name
        self._device = device
        self.fingerprint: Final = f"model-{model.config.kind}-{model_digest(model)[:12]}"
        self.short_side: Final = model.config.size

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        """Embeddings of single frames [T, H, W, 3], or of their mirror images if ``mirror``.

        Scores of kinds compare whole pictures, so only the whole frame is described, whatever the ``boxes``.
        """
        images = encoder_input(frames.images, self.model.config, mirror=mirror)
        return FrameFeatures.of_whole(
            self._in_chunks(images, self.model.embed)[:, None],
            torch.from_numpy(frames.timestamps.copy()),
            frame_information(frames.images).clamp(min=_LEAST_INFORMATION),
            self.fingerprint,
        )

    def _in_chunks(self, inputs: torch.Tensor, network: object) -> torch.Tensor:
        """Apply ``network`` to inputs [N, ...] in full chunks; the result is on the CPU."""
        assert callable(network)
        size = _CHUNK[self._device.type]
        parts = []
        with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            for chunk in torch.split(inputs, size):
                missing = inputs.new_zeros(size - len(chunk), *inputs.shape[1:])
                output = network(torch.cat([chunk, missing]).to(self._device))
                parts.append(output[: len(chunk)].float().cpu())
        return torch.cat(parts) if parts else torch.zeros(0, self.model.dimension)


class ClipModelExtractor(ModelExtractor):
    """Embeddings of clips by a trained model: [T, 1, D], T clips.

    A model with a ``rate`` sees clips of ``frames`` consecutive frames at that rate, as many per second as requested;
    one without a rate sees ``frames`` frames spread evenly over the video, or over pieces of about ``seconds``. Frames
    are read, resized and spread exactly as labeled items are in training. A frame network sees each frame once,
    however many clips the frame belongs to.

    Args:
        model: A model of clips (``clip``, ``c3d``, ``deep_sbd``).
        name: As it was opened.
        device: Where it computes.
    """

    def plan(self, duration: float, *, rate: float, start: float = 0.0, end: float | None = None) -> ClipPlan:
        """Which frames to read; see :meth:`vidkin.features.ClipExtractor.plan`."""
        config = self.model.config
        if config.rate is not None:
            return ClipPlan(start, end, config.rate, step=1.0 / rate)
        stop = duration if end is None else min(end, duration or end)
        length = stop - start
        if not length > 0:
            # An image or a file of unknown length: all frames, spread evenly by index.
            return ClipPlan(start, end, None)
        pieces = 1 if config.seconds is None else max(1, round(length / config.seconds))
        step = length / (pieces * config.frames)
        times = [start + (index + 0.5) * step for index in range(pieces * config.frames)]
        clips = (times[first : first + config.frames] for first in range(0, len(times), config.frames))
        return ClipPlan(times[0], times[-1] + step / 4, 1.0 / step, clips=tuple(map(tuple, clips)))

    def describe_clips(
        self, batches: Iterator[Frames], plan: ClipPlan, *, mirror: bool = False
    ) -> Iterator[FrameFeatures]:
        """Features of the clips of a plan; see :meth:`vidkin.features.ClipExtractor.describe_clips`."""
        buffer = ClipBuffer(plan, self.model.config.frames)
        waiting: list[PlannedClip] = []
        for frames in batches:
            items = self._frame_items(frames, mirror=mirror)
            information = frame_information(frames.images).tolist()
            waiting += buffer.push(items, frames.timestamps.tolist(), information)
            if len(waiting) >= _CHUNK[self._device.type]:
                yield self._describe(waiting)
                waiting = []
        waiting += buffer.finish()
        if waiting:
            yield self._describe(waiting)

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        """The embedding of the clip around each frame.

        A clip consists of the frames nearest in order, as many as the model takes, or all if there are fewer.
        Whole files are described by :meth:`describe_clips`, which reads them at the model's own rate.
        """
        items = self._frame_items(frames, mirror=mirror)
        information = frame_information(frames.images)
        length = min(self.model.config.frames, len(frames))
        clips = []
        for index, time in enumerate(frames.timestamps.tolist()):
            first = min(max(0, index - length // 2), len(frames) - length)
            clips.append(PlannedClip(items[first : first + length], time, float(information[index])))
        return self._describe(clips)

    def _frame_items(self, frames: Frames, *, mirror: bool) -> torch.Tensor:
        """What to store for each frame: its features, or the image itself if the model has no frame network."""
        images = encoder_input(frames.images, self.model.config, mirror=mirror)
        if isinstance(self.model, ClipEncoder):
            return self._in_chunks(images, self.model.frame_features)
        return images

    def _describe(self, clips: list[PlannedClip]) -> FrameFeatures:
        values = torch.zeros(len(clips), 1, self.model.dimension)
        for length in sorted({len(clip.items) for clip in clips}):
            rows = [row for row, clip in enumerate(clips) if len(clip.items) == length]
            items = torch.stack([clips[row].items for row in rows])
            head = self.model.head if isinstance(self.model, ClipEncoder) else self.model.embed
            values[rows, 0] = self._in_chunks(items, head)
        return FrameFeatures.of_whole(
            values,
            torch.tensor([clip.time for clip in clips], dtype=torch.float64),
            torch.tensor([clip.information for clip in clips]).clamp(min=_LEAST_INFORMATION),
            self.fingerprint,
        )


def open_model_extractor(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> FrameExtractor:
    """Open the folder of a trained model as an extractor; the target of the entry point ``vidkin.extractors: model``.

    Args:
        name: ``path/to/model`` or ``model:path/to/model``; a comparator accepts settings after a question mark
            (:func:`vidkin.models.comparator_folder.open_comparator_extractor`).
        weights, whitening: Not accepted: the folder holds everything.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder is damaged, or weights, a whitening or settings were passed.
    """
    parsed = parse_name(name)
    folder = parsed.path.removeprefix("model:")
    compares = is_comparator(folder)
    settings = None if compares else parsed.query
    for what, given in (("weights", weights), ("whitening", whitening), ("settings", settings)):
        if given is not None:
            raise InvalidArgumentError(
                f"a trained model accepts no {what}, got {os.fspath(given)!r} with {parsed.path!r}; its folder holds "
                "everything"
            )
    if compares:
        return open_comparator_extractor(name, device=device)
    where = resolve_device(device)
    model = load_model(folder)
    if isinstance(model, FrameEncoderModel):
        return FrameEncoderExtractor(model.network.on_squares(device), name=name)
    kind = ClipModelExtractor if model.config.takes_clips else ModelExtractor
    return kind(model, name=name, device=where)


def encoder_input(images: NDArray[np.uint8], config: EncoderConfig, *, mirror: bool = False) -> torch.Tensor:
    """Frames [T, H, W, 3] uint8 as squares [T, 3, S, S] from 0 to 1, prepared like the training data.

    Args:
        images: RGB, preferably decoded with a short side of S, as labeled items are.
        config: Configuration of the model; only ``size`` and ``fit`` are used.
        mirror: Flip left to right.
    """
    squares = np.empty((len(images), config.size, config.size, 3), dtype=np.uint8)
    for index, image in enumerate(images):
        squares[index] = fit_to_square(image, config.size, config.fit)
    if mirror:
        squares = squares[:, :, ::-1].copy()
    return torch.from_numpy(squares).permute(0, 3, 1, 2).float() / 255
