"""Frame extractor for a classical image feature."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.features.views import features_of_views
from vidkin.similarity import FrameFeatures
from vidkin_research.features.feature import ImageFeature
from vidkin_research.features.storage import feature_digest, open_feature

if TYPE_CHECKING:
    from vidkin.media import Frames

__all__ = ["ImageFeatureExtractor", "open_image_extractor"]

PathLike = str | os.PathLike[str]

# Part of the fingerprint: increment it when the same frame would get a different embedding.
_REVISION = 1


class ImageFeatureExtractor:
    """Extracts the embedding of a classical feature for each full frame: [T, 1, E].

    An index searches and ranks by cosine, so it compares :meth:`ImageFeature.embed` rather than the published
    distance.

    Args:
        feature: The classical feature.
        name: Name it was opened with; default: ``classical:<feature>``.

    Attributes:
        fingerprint: ``classical-<feature>-<revision>-<digest>``.
    """

    short_side = 240
    scorer = "kinds"
    describes_boxes = False

    def __init__(self, feature: ImageFeature, *, name: str | None = None) -> None:
        self.feature = feature
        self.name: Final = name or f"classical:{feature.name}"
        self.fingerprint: Final = f"classical-{feature.name}-{_REVISION}-{feature_digest(feature)[:12]}"

    def extract(self, frames: Frames, *, boxes: NDArray[np.float32] | None = None) -> FrameFeatures:
        """Extract features of frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`."""
        return features_of_views(
            lambda images: np.asarray(self.feature.embed(self.feature.describe(list(images))))[:, None],
            frames,
            self.fingerprint,
            boxes=boxes,
        )


def open_image_extractor(
    name: str, *, weights: PathLike | None = None, whitening: PathLike | None = None, device: str = "auto"
) -> ImageFeatureExtractor:
    """Open ``classical:<feature>``, with optional settings after a question mark; always runs on the CPU.

    Args:
        name: Full name, including settings.
        weights: A file written by :func:`vidkin_research.features.save_feature`.
        whitening: Must be None.
        device: Ignored.

    Raises:
        UnknownExtractorError: No feature has this name.
        InvalidArgumentError: A whitening was passed, or :func:`vidkin_research.features.open_feature` rejects the
            arguments.
    """
    if whitening is not None:
        raise InvalidArgumentError(
            f"{name!r} takes no whitening, got {os.fspath(whitening)!r}; leave it out, or use 'classical'"
        )
    return ImageFeatureExtractor(open_feature(name.removeprefix("classical:"), weights=weights), name=name)
