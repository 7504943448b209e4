"""Contracts of the extractors for frames and for clips, and the registry of their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.registry import Name, Registry, parse_name
from vidkin.errors import UnknownExtractorError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.media import Frames
    from vidkin.similarity import FrameFeatures


class FrameExtractor(Protocol):
    """Turns frames into regional descriptors.

    Implementations do their own resizing and whitening and are deterministic: the same frames give the same features,
    however they are batched.
    """

    @property
    def name(self) -> str:
        """The name that the registry resolves to this extractor: ``classical``, ``timm:resnet50``."""
        ...

    @property
    def fingerprint(self) -> str:
        """Name plus a short hash of settings and weights."""
        ...

    @property
    def short_side(self) -> int:
        """Short side in pixels to which frames may be downscaled when decoded; larger frames are also accepted."""
        ...

    @property
    def scorer(self) -> str:
        """The scorer that these features are made for (:func:`vidkin.match.scorer_of`).

        ``copies``: the same footage is similar, everything else is unrelated. ``kinds``: similarity is graded, and only
        the order is meaningful: the same thing, the same kind of thing, something else. ``learned``: the extractor
        provides its own scorer, a trained comparator.
        """
        ...

    @property
    def describes_boxes(self) -> bool:
        """Whether rectangles found in frames are described as well; see :mod:`vidkin.features.views`."""
        ...

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Describe frames [T, H, W, 3].

        Args:
            frames: T frames with their times.
            boxes: [V, 4] views as fractions of the frame; None describes only the full frame, which is the only view
                that extractors of clips support.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClipPlan:
    """The frames of a file that an extractor needs, given as arguments of :func:`vidkin.media.iter_frames`.

    Attributes:
        start: Time of the first sample in seconds.
        end: Time in seconds at which sampling ends, exclusive; None reads to the end.
        rate: Samples per second; None takes every frame.
        clips: Times of each clip's frames in seconds; empty if clips consist of consecutive samples.
        step: For consecutive samples, the seconds between the starts of adjacent clips.
    """

    start: float
    end: float | None
    rate: float | None
    clips: tuple[tuple[float, ...], ...] = ()
    step: float = 1.0


@runtime_checkable
class ClipExtractor(FrameExtractor, Protocol):
    """An extractor that describes clips: it plans which frames it needs and processes them as they arrive."""

    def plan(self, duration: float, *, rate: float, start: float = 0.0, end: float | None = None) -> ClipPlan:
        """Plan which frames to read from a file, or from the clip between ``start`` and ``end``.

        Args:
            duration: Duration of the file in seconds; 0 if unknown or for images.
            rate: Descriptors per second.
            start: Start of the clip in seconds.
            end: End of the clip in seconds; None is the end of the file.
        """
        ...

    def describe_clips(self, batches: Iterator[Frames], plan: ClipPlan) -> Iterator[FrameFeatures]:
        """Yield the features of clips as soon as their frames have arrived; every video has at least one clip."""
        ...


class ExtractorFactory(Protocol):
    """Factory that opens an extractor by name, as passed to :func:`register_extractor`."""

    def __call__(
        self, name: str, *, weights: PathLike | None, whitening: PathLike | None, device: str
    ) -> FrameExtractor:
        """Open the extractor with the full ``name``, including its prefix and settings."""
        ...


_EXTRACTORS: Registry[ExtractorFactory] = Registry(
    "extractor",
    # Targets are named rather than imported to keep this module light. Trained models come from an entry point.
    {
        "classical": "vidkin.features.classical:open_classical",
        "onnx": "vidkin.features.onnx:open_onnx",
        "squares": "vidkin.features.square_extractor:open_square_extractor",
        "timm": "vidkin.features.backbone:BackboneExtractor",
        "torchvision": "vidkin.features.backbone:BackboneExtractor",
        "vidkin": "vidkin.features.frame_extractor:open_frame_extractor",
    },
    usages={
        "classical": "classical",
        "squares": "squares",
        "vidkin": "vidkin",
        "model": "model:<folder>",
        "onnx": "onnx:<file>",
        "timm": "timm:<model>",
        "torchvision": "torchvision:<model>",
    },
    usage="{prefix}:<name>",
    group="vidkin.extractors",
    researched=True,
    error=UnknownExtractorError,
)
_MODEL_PREFIX = "model"
# Prefixes that precede a path.
_PATH_PREFIXES = (_MODEL_PREFIX, "onnx")
# A folder that contains this file is a trained model.
_MODEL_FILE = "config.toml"


def default_extractor(whitening: PathLike | None = None) -> str:
    """Return the name of the default extractor: ``vidkin``, or, with a whitening, ``classical``; ``vidkin`` takes none.

    Args:
        whitening: A file written by :meth:`vidkin.features.Whitening.save`, or None.
    """
    return "vidkin" if whitening is None else "classical"


@check_arguments
def open_extractor(
    name: str | None = None,
    *,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    device: str = "auto",
) -> FrameExtractor:
    """Open an extractor by name.

    Args:
        name: ``vidkin`` (the default: one vector per frame from vidkin's own network), ``squares`` (a smaller network
            that describes the frame, or ten regions of it, and that can be trained further), ``classical`` (color,
            gradients and texture of the whole frame), ``classical:<feature>`` (one classical image feature, from the
            package vidkin-research), ``timm:<model>``, ``torchvision:<model>``, ``onnx:<file>`` (any image encoder, see
            :class:`~vidkin.features.onnx.OnnxExtractor`), the folder of a trained model (``path/to/model`` or
            ``model:path/to/model``), or a prefix that was registered or belongs to an installed plugin (entry point
            group ``vidkin.extractors``). Settings follow a question mark:
            ``timm:mobilenetv2_100?pad_type=same&size=256`` (see :class:`~vidkin.features.backbone.BackboneExtractor`).
        weights: A safetensors file with the network's weights; by default, weights come from the local cache or the
            hub. For ``classical:<feature>``, the fitted state; not accepted by ``classical`` and ``onnx:<file>``.
        whitening: A safetensors file written by :meth:`vidkin.features.Whitening.save`.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``: the device set by :func:`vidkin.features.set_device`,
            otherwise CUDA if available. ``classical`` always runs on the CPU.

    Raises:
        UnknownExtractorError: No extractor has this name; the message lists the available ones.
        WeightsUnavailableError: The weights are not given, not cached, and cannot be downloaded.
        InvalidArgumentError: A setting is invalid.
    """
    name = default_extractor(whitening) if name is None else name
    parsed = parse_name(name) if name else None
    factory = _EXTRACTORS.find(_prefix(parsed), addressed=parsed.address is not None) if parsed else None
    if factory is None:
        raise _EXTRACTORS.unknown(name)
    return factory(name, weights=weights, whitening=whitening, device=device)


def available_extractors() -> tuple[str, ...]:
    """List the name formats that :func:`open_extractor` accepts, sorted."""
    return _EXTRACTORS.usages()


@check_arguments
def absolute_name(name: str) -> str:
    """Make the path of a model or ONNX file in a name absolute, for storage; other names are returned unchanged."""
    parsed = parse_name(name)
    prefix = _prefix(parsed)
    if prefix not in _PATH_PREFIXES:
        return name
    path = Path(parsed.path.removeprefix(f"{prefix}:")).expanduser().absolute()
    return f"{prefix}:{path}{name[len(parsed.path) :]}"


@check_arguments
def register_extractor(prefix: str, factory: ExtractorFactory, *, usage: str | None = None) -> None:
    """Make :func:`open_extractor` accept the names ``prefix`` and ``prefix:...`` (with or without ``?settings``).

    Args:
        prefix: A new prefix of letters, digits, ``_`` and ``-``.
        factory: Function called as ``factory(name, weights=..., whitening=..., device=...)``.
        usage: Format of the name in lists and messages; default: ``prefix:<name>``.

    Raises:
        InvalidArgumentError: The prefix is malformed or already in use.
    """
    _EXTRACTORS.register(prefix, factory, usage=usage)


def _prefix(name: Name) -> str:
    """Return the part of a name that selects the factory; a registered prefix takes precedence over a folder with the
    same name."""
    if name.prefix not in _EXTRACTORS and (Path(name.path).expanduser() / _MODEL_FILE).is_file():
        return _MODEL_PREFIX
    return name.prefix
