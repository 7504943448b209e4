"""Calibration: how similar unrelated frames are to the extractor of an index."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import torch

from vidkin.errors import CollectionError
from vidkin.features import DISTINCT_VIEWS, FrameExtractor, background_frames
from vidkin.index.storage.files import read_units, write_whole
from vidkin.index.storage.local import LocalPlace
from vidkin.index.storage.place import Place
from vidkin.similarity import FrameFeatures, background_baseline, scorer_of

__all__ = ["Calibration"]

_logger = logging.getLogger(__name__)
# Measured once for our own extractors, by their fingerprint.
_SHIPPED = LocalPlace(Path(__file__).with_name("data"))
_SHARE = 0.9
# Views are compared in dozens of pairs, so unrelated parts reach higher similarities by chance.
_SHARE_OF_VIEWS = 0.99


class Calibration:
    """Baselines of frames against a fixed background set, so that scores are comparable between indexes.

    Args:
        background: [N, R, D], descriptors of background photographs; N = 0 if the scorer needs no baseline, which
            is then 0.
        share: Quantile of the similarities to the background that is the baseline.
    """

    FILE = "background.safetensors"

    def __init__(self, background: torch.Tensor, share: float = _SHARE) -> None:
        self._share = share
        # Stored in half precision; rounding first makes fresh and reloaded calibrations agree.
        self.background = background.half().float()

    def calibrate(self, features: FrameFeatures) -> FrameFeatures:
        """Add the baseline [T, V] to features: how similar unrelated frames are to each view of each frame."""
        if len(self.background) == 0:
            return replace(features, baseline=torch.zeros(features.values.shape[:2]))
        columns = [
            background_baseline(view, self.background, share=self._share)
            for view in features.values.unbind(1)
        ]
        return replace(features, baseline=torch.stack(columns, dim=1).float())

    @classmethod
    def of_extractor(cls, extractor: FrameExtractor) -> Calibration:
        """Calibration of an extractor: measured on the background photographs, or shipped for our extractors."""
        if not scorer_of(extractor).needs_background:
            return cls(torch.zeros(0, 1, 1))
        shipped = cls._read(_SHIPPED, f"{extractor.fingerprint}.safetensors", _share_of(extractor))
        return cls.measure(extractor) if shipped is None else shipped

    @classmethod
    def measure(cls, extractor: FrameExtractor) -> Calibration:
        """Run the extractor over the background photographs, which takes a second or two."""
        if extractor.views == "none":
            return cls(extractor.extract(background_frames()).whole, _share_of(extractor))
        # Crops of a photograph would only count it more than once.
        boxes = torch.tensor(DISTINCT_VIEWS)
        views = extractor.extract(background_frames(), boxes=boxes).values.flatten(0, 1)
        return cls(views[views.abs().amax(dim=(1, 2)) > 0], _share_of(extractor))

    @classmethod
    def read(cls, place: Place, share: float = _SHARE) -> Calibration | None:
        """Load the calibration of an index; None if it has none yet.

        Raises:
            CollectionDamagedError: The file is there and cannot be read.
        """
        return cls._read(place, cls.FILE, share)

    @classmethod
    def _read(cls, place: Place, file: str, share: float) -> Calibration | None:
        vectors = read_units(place, file, "background")
        return None if vectors is None else cls(vectors, share)

    @classmethod
    def open(cls, place: Place, extractor: FrameExtractor) -> Calibration:
        """Load the calibration of an index; measured and stored on first use.

        Raises:
            CollectionDamagedError: The file is there and cannot be read.
        """
        stored = cls.read(place, _share_of(extractor))
        if stored is not None:
            return stored
        calibration = cls.of_extractor(extractor)
        try:
            calibration.save(place)
        except CollectionError as error:
            # The result is always the same; storing it only saves a second.
            _logger.info("%s", error)
        return calibration

    def save(self, place: Place, name: str = FILE) -> None:
        """Write the background descriptors to the index, whole or not at all."""
        from safetensors.torch import save

        write_whole(place, name, save({"background": self.background.half()}))


def _share_of(extractor: FrameExtractor) -> float:
    return _SHARE if extractor.views == "none" else _SHARE_OF_VIEWS
