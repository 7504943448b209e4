"""Edited views of unlabeled clips, which serve as positives: settings, editing, and precomputed views."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin._base.toml import from_table
from vidkin._base.values import check_at_least, check_choice, check_positive, describe_settings
from vidkin.datasets.augmentation.clip_views import (
    ClipView,
    StrongSettings,
    TemporalSettings,
    strong_view,
    weak_view,
)
from vidkin.errors import InvalidArgumentError
from vidkin.features import FrameExtractor
from vidkin.match.learned import LEAST_INFORMATION
from vidkin.media import Frames
from vidkin.training.clip_footage import VideoSquares, Window, cache_tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSettings:
    """How clips are created from unlabeled videos; the defaults are the published values.

    Attributes:
        rate: Frames per second.
        window: Number of frames in a window. Long videos are split into windows of about this length, and all views of
            a clip come from one window.
        length: Maximum number of frames in a view.
        side: Side of the edited squares in pixels.
        fit: How frames are made square: ``stretch`` (resize the whole frame) or ``crop`` (keep the center). Must match
            the extractor (``?fit=crop``), so that training uses the same kind of images as inference.
        views: Number of strong views of each window to precompute before the first step and store as descriptors; 0
            creates new views at every step.
        teacher: Extractor whose frame similarities are the labels for `frame_quad_linear_ap`; empty for the model's
            extractor.
        teacher_weights: Safetensors file with the teacher's weights; empty for its default weights.
        teacher_sees: ``unedited``: labels come from the original frames, without distortions by edits. ``edited``:
            labels come from the edited frames, as published.
        strong: Edits of the strong view.

    Raises:
        InvalidArgumentError: A value is out of range.
    """

    rate: float = 1.0
    window: int = 56
    length: int = 28
    side: int = 96
    fit: Literal["stretch", "crop"] = "stretch"
    views: int = 0
    teacher: str = ""
    teacher_weights: str = ""
    teacher_sees: Literal["unedited", "edited"] = "unedited"
    strong: StrongSettings = field(default_factory=StrongSettings)

    def __post_init__(self) -> None:
        check_positive(rate=self.rate)
        check_at_least(4, window=self.window, length=self.length)
        check_choice("fit", self.fit, ("stretch", "crop"))
        check_choice("teacher_sees", self.teacher_sees, ("unedited", "edited"))
        check_at_least(16, side=self.side)
        check_at_least(0, views=self.views)


def clip_settings(options: Mapping[str, Any]) -> ClipSettings:
    """Read the settings in ``data.options`` of a recipe; missing settings get their defaults.

    Args:
        options: Settings of :class:`ClipSettings`; ``strong`` is a table of :class:`StrongSettings`, whose
            ``temporal`` is a table of :class:`TemporalSettings`.

    Raises:
        InvalidArgumentError: A setting is unknown or not allowed.
    """
    return from_table(ClipSettings, options, "data.options")


def describe_clip_settings() -> dict[str, Any]:
    """Return the descriptions of the settings, with the table structure of ``data.options``."""
    strong = {**describe_settings(StrongSettings), "temporal": describe_settings(TemporalSettings)}
    return {**describe_settings(ClipSettings), "strong": strong}


# Number of donors that strong_view needs.
_DONORS = 3


@dataclass(frozen=True, slots=True, eq=False)
class EditedClip:
    """An edited view of a window.

    Attributes:
        window: The window.
        view: The edited frames.
        donors: Other windows whose footage is visible in the edited frames.
    """

    window: Window
    view: ClipView
    donors: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ClipFeatures:
    """Descriptors of a view of a window, without featureless frames.

    Attributes:
        values: [T, R, D] float32 descriptors.
        sources: [T] int64, index of the video frame shown by each frame; -1 if it is covered by noise.
        windows: Indices of the visible windows, starting with the view's own window.
        videos: Indices of the windows' videos.
        lent: Start and end (exclusive) of the footage inserted from each of the other windows.
        teacher: [T, D'] float32, the teacher's unit vectors of the edited frames; None if labels come from unedited
            frames.
    """

    values: torch.Tensor
    sources: torch.Tensor
    windows: tuple[int, ...]
    videos: tuple[int, ...]
    lent: tuple[tuple[int, int], ...] = ()
    teacher: torch.Tensor | None = None


@dataclass(frozen=True, eq=False)
class ViewMaker:
    """Creates views of windows; a view depends only on the seed, the window and the number of the view.

    Attributes:
        videos: Frames of the videos.
        settings: Length and edits of views.
        extractor: Extractor of the edited frames' descriptors.
        seed: Seed for all edits.
        teacher: Extractor of the edited frames' labels; None if labels come from unedited frames or are not needed.
    """

    videos: Sequence[VideoSquares]
    settings: ClipSettings
    extractor: FrameExtractor
    seed: int
    teacher: FrameExtractor | None = None

    def move(self, window: Window, number: int) -> Window:
        """Shift a window by a random number of frames, at most half its length.

        Args:
            window: The window.
            number: Number of the shift; different numbers give different positions.
        """
        generator = self._generator(window, -1 - number)
        length, count = window.stop - window.start, self.videos[window.video].count
        low, high = max(0, window.start - length // 2), min(count - length, window.start + length // 2)
        start = int(torch.randint(low, high + 1, (), generator=generator))
        return replace(window, start=start, stop=start + length)

    def edit(
        self, window: Window, number: int, donors: Sequence[Window], *, beside: EditedClip | None = None
    ) -> EditedClip:
        """Create a weak view of a window if ``number`` is even, or a strong view if it is odd.

        Args:
            window: The window.
            number: Number of the view; different numbers give different views.
            donors: Windows whose footage may be inserted into the view; at least one.
            beside: Weak view to be compared with the strong view; the two share frames if the edits allow it.
        """
        generator = self._generator(window, number)
        clip = self._frames(window)
        if number % 2 == 0:
            return EditedClip(window, weak_view(clip, generator, length=self.settings.length))
        lent = [donors[position % len(donors)] for position in range(_DONORS)]
        rows = torch.arange(len(clip))
        others = torch.stack([frames[rows % len(frames)] for frames in map(self._frames, lent)])
        view = strong_view(
            clip,
            others,
            generator,
            settings=self.settings.strong,
            length=self.settings.length,
            beside=None if beside is None else beside.view.sources,
        )
        visible = dict.fromkeys(lent[position] for position in view.donors)
        return EditedClip(window, view, tuple(visible))

    def describe(self, clip: EditedClip) -> ClipFeatures:
        """Compute the descriptors of an edited clip."""
        squares = (clip.view.frames * 255).round().clamp(0, 255).to(torch.uint8)
        images = np.ascontiguousarray(squares.permute(0, 2, 3, 1).numpy())
        features = self.extractor.extract(Frames(images, np.arange(len(images), dtype=np.float64)))
        shows = torch.from_numpy(features.information >= LEAST_INFORMATION)
        if not bool(shows.any()):
            shows = torch.ones_like(shows)
        teacher = None if self.teacher is None else mean_vectors(self.teacher, images)[shows]
        sources = (clip.view.sources + clip.window.start).masked_fill(clip.view.filled > 0, -1)
        seen = (clip.window, *clip.donors)
        return ClipFeatures(
            torch.from_numpy(features.whole)[shows].float(),
            sources[shows],
            tuple(window.number for window in seen),
            tuple(window.video for window in seen),
            # Inserted footage starts at the donor's first frame.
            tuple((lent.start, min(lent.stop, lent.start + len(images))) for lent in clip.donors),
            teacher,
        )

    def _generator(self, window: Window, number: int) -> torch.Generator:
        return torch.Generator().manual_seed((self.seed * 1_000_003 + window.number) * 1_000_003 + number)

    def _frames(self, window: Window) -> torch.Tensor:
        """Read the frames of a window, [T, 3, side, side] with values from 0 to 1."""
        return self.videos[window.video].read(window.start, window.stop).float() / 255


OnVideo = Callable[[int, int], None]

# Parts of the cache keys; increment them whenever the views or the teacher's vectors of a video would change.
VIEWS_REVISION = 2
_TEACHER_REVISION = 1

_FRAMES_PER_PASS = 64


def store_views(
    windows: Sequence[Window],
    maker: ViewMaker,
    *,
    cache: Path | None,
    most_bytes: int,
    on_video: OnVideo | None = None,
) -> dict[int, list[ClipFeatures]]:
    """Precompute the weak view and ``maker.settings.views`` strong views of each window; return them by window number.

    Footage inserted into a strong view comes from windows of other videos.

    Args:
        windows: The windows.
        maker: Creates the views.
        cache: Folder for one cache file per video; None disables the cache.
        most_bytes: Maximum total size of the descriptors in bytes.
        on_video: Callback that receives (videos done, total number of videos) after each video.

    Raises:
        InvalidArgumentError: The descriptors are larger than ``most_bytes``.
    """
    facts = [VIEWS_REVISION, maker.extractor.fingerprint, maker.seed, asdict(maker.settings)]
    facts += [] if maker.teacher is None else [maker.teacher.fingerprint]
    facts += [(window.number, maker.videos[window.video].key, window.start, window.stop) for window in windows]
    run = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    by_video: dict[int, list[Window]] = defaultdict(list)
    for window in windows:
        by_video[window.video].append(window)
    stored: dict[int, list[ClipFeatures]] = {}
    size = 0
    for done, (video, own) in enumerate(by_video.items(), 1):
        path = None if cache is None else cache / run / f"{maker.videos[video].key}.safetensors"
        others = [window for window in windows if window.video != video]
        tensors = cache_tensors(path, lambda own=own, others=others: _views(own, others, maker))  # type: ignore[misc]
        lengths, counts = tensors["lengths"].tolist(), tensors["counts"].tolist()
        parts = (torch.split(tensors["values"], lengths), torch.split(tensors["sources"], lengths))
        labels: Sequence[torch.Tensor | None] = [None] * len(lengths)
        if maker.teacher is not None:
            labels = torch.split(tensors["teacher"], lengths)
        views = [
            ClipFeatures(
                values,
                sources,
                tuple(seen[:, 0].tolist()),
                tuple(seen[:, 1].tolist()),
                tuple((start, stop) for start, stop in seen[1:, 2:].tolist()),
                label,
            )
            for values, sources, seen, label in zip(*parts, torch.split(tensors["seen"], counts), labels, strict=True)
        ]
        size += sum(view.values.nbytes + (0 if view.teacher is None else view.teacher.nbytes) for view in views)
        if size > most_bytes:
            raise InvalidArgumentError(
                f"the descriptors of {done} of {len(by_video)} videos take {size / 2**30:.1f} GiB, more than "
                "data.memory; increase data.memory, or reduce data.options.views (0 stores no views)"
            )
        count = 1 + maker.settings.views
        for position, window in enumerate(own):
            stored[window.number] = views[position * count : (position + 1) * count]
        if on_video is not None:
            on_video(done, len(by_video))
    return stored


def teacher_vectors(
    videos: Sequence[VideoSquares],
    teacher: FrameExtractor,
    *,
    cache: Path | None,
    on_video: OnVideo | None = None,
) -> list[torch.Tensor]:
    """Compute the teacher's unit vectors [T, D] of each video's frames, averaged over regions.

    Args:
        videos: Frames of the videos.
        teacher: A frozen extractor.
        cache: Folder for one cache file per video; None disables the cache.
        on_video: Callback that receives (videos done, total number of videos) after each video.
    """
    vectors = []
    label = hashlib.sha256(f"{_TEACHER_REVISION} {teacher.fingerprint}".encode()).hexdigest()[:16]
    for done, video in enumerate(videos, 1):
        path = None if cache is None else cache / label / f"{video.key}.safetensors"
        stored = cache_tensors(path, lambda video=video: {"vectors": _vectors(video, teacher)})  # type: ignore[misc]
        vectors.append(stored["vectors"])
        if on_video is not None:
            on_video(done, len(videos))
    return vectors


def _views(own: Sequence[Window], others: Sequence[Window], maker: ViewMaker) -> dict[str, torch.Tensor]:
    """Create the views of the windows of a video, concatenated."""
    views = []
    for window in own:
        generator = torch.Generator().manual_seed(maker.seed * 1_000_003 + window.number)
        weak: EditedClip | None = None
        for number in [0, *range(1, 2 * maker.settings.views, 2)]:
            lent = [others[position] for position in torch.randperm(len(others), generator=generator)[:3].tolist()]
            edited = maker.edit(window, number, lent, beside=weak)
            weak = weak or edited
            views.append(maker.describe(edited))
    # No footage is inserted from the view's own window, whose frames are the view's sources.
    seen = [
        torch.tensor(
            [
                (number, video, *stretch)
                for number, video, stretch in zip(view.windows, view.videos, ((0, 0), *view.lent), strict=True)
            ]
        )
        for view in views
    ]
    teacher = [view.teacher for view in views if view.teacher is not None]
    return {
        **({"teacher": torch.cat(teacher)} if teacher else {}),
        "values": torch.cat([view.values for view in views]),
        "sources": torch.cat([view.sources for view in views]),
        "lengths": torch.tensor([len(view.values) for view in views]),
        "seen": torch.cat(seen),
        "counts": torch.tensor([len(pairs) for pairs in seen]),
    }


def _vectors(video: VideoSquares, teacher: FrameExtractor) -> torch.Tensor:
    parts = []
    for start in range(0, video.count, _FRAMES_PER_PASS):
        squares = video.read(start, min(video.count, start + _FRAMES_PER_PASS))
        parts.append(mean_vectors(teacher, np.ascontiguousarray(squares.permute(0, 2, 3, 1).numpy())))
    return torch.cat(parts)


def mean_vectors(teacher: FrameExtractor, images: NDArray[np.uint8]) -> torch.Tensor:
    """Compute unit vectors [T, D] of images [T, H, W, 3], averaged over regions."""
    features = teacher.extract(Frames(images, np.arange(len(images), dtype=np.float64)))
    return functional.normalize(torch.from_numpy(features.whole).float().mean(1), dim=-1)
