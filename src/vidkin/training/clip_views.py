"""How positive clips are made from unlabeled videos: settings of a recipe, edited views, and data stored for them."""

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
from vidkin.media import Frames
from vidkin.similarity.learned import LEAST_INFORMATION
from vidkin.training.clip_footage import VideoSquares, Window, stored_tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSettings:
    """How unlabeled videos become clips; the defaults are the published values.

    Attributes:
        rate: Frames per second.
        window: Number of frames in a stretch of video, from which all views of one clip are made: long videos are cut
            into stretches of about this length.
        length: Maximum number of frames in a view.
        side: Side of the edited squares in pixels.
        fit: How frames become squares: ``stretch`` squeezes the whole frame, ``crop`` cuts out the middle. It must be
            what the extractor does (``?fit=crop``), so that training sees the pictures that the model will get.
        views: Number of strong views of each stretch that are made once, before the first step, and kept as
            descriptors; 0 makes new views at every step.
        teacher: Extractor whose similarities of frames are the labels of `frame_quad_linear_ap`; empty: the
            model's extractor.
        teacher_weights: A safetensors file with the teacher's weights; empty: its own weights.
        teacher_sees: ``unedited``: the labels compare the frames of the videos as they are, which edits do not mislead.
            ``edited``: they compare what the model sees, as published.
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
    """The settings in ``data.options`` of a recipe; missing settings get their defaults.

    Args:
        options: Settings of :class:`ClipSettings`; ``strong`` is a table of :class:`StrongSettings`, in which
            ``temporal`` is a table of :class:`TemporalSettings`.

    Raises:
        InvalidArgumentError: A setting is unknown or not allowed.
    """
    return from_table(ClipSettings, options, "data.options")


def describe_clip_settings() -> dict[str, Any]:
    """The meaning of each setting, in the tables of ``data.options``."""
    strong = {**describe_settings(StrongSettings), "temporal": describe_settings(TemporalSettings)}
    return {**describe_settings(ClipSettings), "strong": strong}


# strong_view draws from three donors.
_DONORS = 3


@dataclass(frozen=True, slots=True, eq=False)
class EditedClip:
    """A view of a window as pictures.

    Attributes:
        window: The window.
        view: Its edited frames.
        donors: Other windows visible in the picture.
    """

    window: Window
    view: ClipView
    donors: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ClipFeatures:
    """A view of a window as descriptors; frames that show nothing are left out.

    Attributes:
        values: [T, R, D] float32 descriptors.
        sources: [T] int64, the frame of the video shown by each frame; -1 if it was covered by noise.
        windows: Numbers of the windows in the picture, the view's own first.
        videos: Numbers of the windows' videos.
        lent: First frame, and first frame after it, of what each of the other windows lends to the picture.
        teacher: [T, D'] float32, the teacher's unit vectors of the edited frames; None if it sees unedited ones.
    """

    values: torch.Tensor
    sources: torch.Tensor
    windows: tuple[int, ...]
    videos: tuple[int, ...]
    lent: tuple[tuple[int, int], ...] = ()
    teacher: torch.Tensor | None = None


@dataclass(frozen=True, eq=False)
class ViewMaker:
    """Makes views of windows; each depends only on the seed, the window and the number of the view.

    Attributes:
        videos: Frames of the videos.
        settings: Length and edits of views.
        extractor: Describes the edited frames.
        seed: Seed of all edits.
        teacher: Describes the edited frames as well; None if labels are of unedited frames, or not needed.
    """

    videos: Sequence[VideoSquares]
    settings: ClipSettings
    extractor: FrameExtractor
    seed: int
    teacher: FrameExtractor | None = None

    def move(self, window: Window, number: int) -> Window:
        """The window at a random place of its video, at most half its length from where it was.

        Args:
            window: The window.
            number: Each number gives a different place.
        """
        generator = self._generator(window, -1 - number)
        length, count = window.stop - window.start, self.videos[window.video].count
        least, most = max(0, window.start - length // 2), min(count - length, window.start + length // 2)
        start = int(torch.randint(least, most + 1, (), generator=generator))
        return replace(window, start=start, stop=start + length)

    def edit(
        self, window: Window, number: int, donors: Sequence[Window], *, beside: EditedClip | None = None
    ) -> EditedClip:
        """The weak view of a window if ``number`` is even, a strong one if it is odd.

        Args:
            window: The window.
            number: Number of the view; each number gives a different view.
            donors: Windows that can be inserted into the picture; at least one.
            beside: The weak view that a strong view is compared with: both show common frames, if the edits allow it.
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
        shown = dict.fromkeys(lent[position] for position in view.donors)
        return EditedClip(window, view, tuple(shown))

    def describe(self, clip: EditedClip) -> ClipFeatures:
        """The descriptors of an edited clip."""
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
            # A donor is shown from its first frame on.
            tuple((lent.start, min(lent.stop, lent.start + len(images))) for lent in clip.donors),
            teacher,
        )

    def _generator(self, window: Window, number: int) -> torch.Generator:
        return torch.Generator().manual_seed((self.seed * 1_000_003 + window.number) * 1_000_003 + number)

    def _frames(self, window: Window) -> torch.Tensor:
        """Frames [T, 3, side, side] with values in 0..1."""
        return self.videos[window.video].read(window.start, window.stop).float() / 255


OnVideo = Callable[[int, int], None]

# Parts of the caches' keys: increment one when the same videos would give other views, or other vectors of a teacher.
VIEWS_REVISION = 2
_TEACHER_REVISION = 1

_FRAMES_A_PASS = 64


def store_views(
    windows: Sequence[Window],
    maker: ViewMaker,
    *,
    cache: Path | None,
    most_bytes: int,
    on_video: OnVideo | None = None,
) -> dict[int, list[ClipFeatures]]:
    """Make the weak view and ``maker.settings.views`` strong views of each window, by window number, in memory.

    Footage inserted into a strong view comes from other videos among the windows.

    Args:
        windows: All windows from which to make views.
        maker: Makes the views.
        cache: Folder for one file per video; None stores nothing.
        most_bytes: Maximum size of all descriptors in bytes.
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
    held = 0
    for done, (video, own) in enumerate(by_video.items(), 1):
        path = None if cache is None else cache / run / f"{maker.videos[video].key}.safetensors"
        others = [window for window in windows if window.video != video]
        tensors = stored_tensors(path, lambda own=own, others=others: _views(own, others, maker))  # type: ignore[misc]
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
        held += sum(view.values.nbytes + (0 if view.teacher is None else view.teacher.nbytes) for view in views)
        if held > most_bytes:
            raise InvalidArgumentError(
                f"the descriptors of {done} of {len(by_video)} videos take {held / 2**30:.1f} GiB, more than "
                "data.memory; raise it, lower data.options.views, or set it to 0"
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
    """Unit vectors [T, D] of each video's frames: the means of their regions.

    Args:
        videos: Frames of the videos.
        teacher: A frozen extractor.
        cache: Folder for one file per video; None stores nothing.
        on_video: Callback that receives (videos done, total number of videos) after each video.
    """
    vectors = []
    label = hashlib.sha256(f"{_TEACHER_REVISION} {teacher.fingerprint}".encode()).hexdigest()[:16]
    for done, video in enumerate(videos, 1):
        path = None if cache is None else cache / label / f"{video.key}.safetensors"
        stored = stored_tensors(path, lambda video=video: {"vectors": _vectors(video, teacher)})  # type: ignore[misc]
        vectors.append(stored["vectors"])
        if on_video is not None:
            on_video(done, len(videos))
    return vectors


def _views(own: Sequence[Window], others: Sequence[Window], maker: ViewMaker) -> dict[str, torch.Tensor]:
    """Views of the windows of one video, concatenated."""
    views = []
    for window in own:
        generator = torch.Generator().manual_seed(maker.seed * 1_000_003 + window.number)
        weak: EditedClip | None = None
        for number in [0, *range(1, 2 * maker.settings.views, 2)]:
            lent = [others[position] for position in torch.randperm(len(others), generator=generator)[:3].tolist()]
            edited = maker.edit(window, number, lent, beside=weak)
            weak = weak or edited
            views.append(maker.describe(edited))
    # The view's own window lends nothing: its frames are the view's sources.
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
    for start in range(0, video.count, _FRAMES_A_PASS):
        squares = video.read(start, min(video.count, start + _FRAMES_A_PASS))
        parts.append(mean_vectors(teacher, np.ascontiguousarray(squares.permute(0, 2, 3, 1).numpy())))
    return torch.cat(parts)


def mean_vectors(teacher: FrameExtractor, images: NDArray[np.uint8]) -> torch.Tensor:
    """Unit vectors [T, D] of images [T, H, W, 3]: the means of their regions."""
    features = teacher.extract(Frames(images, np.arange(len(images), dtype=np.float64)))
    return functional.normalize(torch.from_numpy(features.whole).float().mean(1), dim=-1)
