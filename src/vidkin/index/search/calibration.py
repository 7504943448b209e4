"""What unrelated frames look like to the extractor of an index."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import torch

from vidkin.errors import CollectionError
from vidkin.features import FrameExtractor, background_frames
from vidkin.index.storage.files import read_units, write_whole
from vidkin.similarity import FrameFeatures, background_baseline, open_scorer

__all__ = ["Calibration"]

_logger = logging.getLogger(__name__)


class Calibration:
    """Baselines of frames against a fixed background set, so that scores mean the same in every index.

    Args:
        background: [N, R, D], descriptors of background photographs; N = 0 where the scorer needs no baseline, which
            then is 0.
    """

    FILE = "background.safetensors"

    def __init__(self, background: torch.Tensor) -> None:
        # Stored in half precision; rounding first makes fresh and reloaded calibrations agree.
        self.background = background.half().float()

    def calibrate(self, features: FrameFeatures) -> FrameFeatures:
        """The same features with their baseline [T, V]: how similar unrelated frames are to each view of each frame."""
        if len(self.background) == 0:
            return replace(features, baseline=torch.zeros(features.values.shape[:2]))
        columns = [background_baseline(view, self.background) for view in features.values.unbind(1)]
        return replace(features, baseline=torch.stack(columns, dim=1).float())

    @classmethod
    def of_extractor(cls, extractor: FrameExtractor) -> Calibration:
        """Run the extractor over the background photographs (about a second for the classical one)."""
        if not open_scorer(extractor.scorer).needs_background:
            return cls(torch.zeros(0, 1, 1))
        return cls(extractor.extract(background_frames()).whole)

    @classmethod
    def read(cls, folder: Path) -> Calibration | None:
        """That of the index in this folder; None if it has none yet.

        Raises:
            CollectionDamagedError: The file is there and cannot be read.
        """
        path = folder / cls.FILE
        return cls(read_units(path, "background")) if path.is_file() else None

    @classmethod
    def open(cls, folder: Path, extractor: FrameExtractor) -> Calibration:
        """That of the index in this folder; made and kept on first use.

        Raises:
            CollectionDamagedError: The file is there and cannot be read.
        """
        stored = cls.read(folder)
        if stored is not None:
            return stored
        calibration = cls.of_extractor(extractor)
        try:
            calibration.save(folder)
        except CollectionError as error:
            # It comes out the same every time; keeping it only saves a second.
            _logger.info("%s", error)
        return calibration

    def save(self, folder: Path) -> None:
        """Write the background beside the store, whole or not at all."""
        from safetensors.torch import save

        write_whole(folder / self.FILE, save({"background": self.background.half()}))
