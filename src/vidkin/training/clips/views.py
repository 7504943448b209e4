"""Views of windows as descriptors: edited as squares, then described by an extractor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vidkin.datasets.augmentation.clips.views import ClipView, strong_view, weak_view
from vidkin.features import FrameExtractor
from vidkin.media import Frames
from vidkin.similarity.learned import LEAST_INFORMATION
from vidkin.training.clips.settings import ClipSettings
from vidkin.training.clips.squares import VideoSquares
from vidkin.training.clips.windows import Window

__all__ = ["ClipFeatures", "EditedClip", "ViewMaker"]

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
    """

    values: torch.Tensor
    sources: torch.Tensor
    windows: tuple[int, ...]
    videos: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ViewMaker:
    """Makes views of windows; each depends only on the seed, the window and the number of the view.

    Attributes:
        videos: Frames of the videos.
        settings: Length and edits of views.
        extractor: Describes the edited frames.
        seed: Seed of all edits.
    """

    videos: Sequence[VideoSquares]
    settings: ClipSettings
    extractor: FrameExtractor
    seed: int

    def edit(self, window: Window, number: int, donors: Sequence[Window]) -> EditedClip:
        """The weak view of a window if ``number`` is even, a strong one if it is odd.

        Args:
            window: The window.
            number: Number of the view; each number gives a different view.
            donors: Windows that can be inserted into the picture; at least one.
        """
        generator = torch.Generator().manual_seed(
            (self.seed * 1_000_003 + window.number) * 1_000_003 + number
        )
        clip = self._frames(window)
        if number % 2 == 0:
            return EditedClip(window, weak_view(clip, generator, length=self.settings.length))
        lent = [donors[position % len(donors)] for position in range(_DONORS)]
        rows = torch.arange(len(clip))
        others = torch.stack([frames[rows % len(frames)] for frames in map(self._frames, lent)])
        view = strong_view(
            clip, others, generator, settings=self.settings.strong, length=self.settings.length
        )
        shown = dict.fromkeys(lent[position] for position in view.donors)
        return EditedClip(window, view, tuple(shown))

    def describe(self, clip: EditedClip) -> ClipFeatures:
        """The descriptors of an edited clip."""
        squares = (clip.view.frames * 255).round().clamp(0, 255).to(torch.uint8)
        images = np.ascontiguousarray(squares.permute(0, 2, 3, 1).numpy())
        features = self.extractor.extract(Frames(images, np.arange(len(images), dtype=np.float64)))
        shows = features.information >= LEAST_INFORMATION
        if not bool(shows.any()):
            shows = torch.ones_like(shows)
        sources = (clip.view.sources + clip.window.start).masked_fill(clip.view.filled > 0, -1)
        seen = (clip.window, *clip.donors)
        return ClipFeatures(
            features.whole[shows].float(),
            sources[shows],
            tuple(window.number for window in seen),
            tuple(window.video for window in seen),
        )

    def _frames(self, window: Window) -> torch.Tensor:
        """Frames [T, 3, side, side] with values in 0..1."""
        return self.videos[window.video].read(window.start, window.stop).float() / 255
