"""What unrelated frames look like to the extractor of a collection."""

from __future__ import annotations

import logging
from pathlib import Path

import torch

from vidkin.errors import CollectionError
from vidkin.features import FrameExtractor, background_frames
from vidkin.index.storage.files import read_units, write_whole
from vidkin.similarity import background_baseline, open_scorer

__all__ = ["Calibration"]

_logger = logging.getLogger(__name__)


class Calibration:
    """Baselines of frames against a fixed background set, so that scores mean the same in every collection.

    Args:
        background: [N, R, D], descriptors of frames that have nothing to do with anything; N = 0 where the measure
            needs no baseline (it orders kinds), which then is 0.
    """

    FILE = "background.safetensors"

    def __init__(self, background: torch.Tensor) -> None:
        # Stored in half precision; rounding first makes fresh and reloaded calibrations agree.
        self.background = background.half().float()

    def baseline(self, values: torch.Tensor) -> torch.Tensor:
        """[T, R, D] to [T]: how similar unrelated frames are to each frame."""
        if len(self.background) == 0:
            return torch.zeros(len(values))
        return background_baseline(values, self.background)

    @classmethod
    def of_extractor(cls, extractor: FrameExtractor) -> Calibration:
        """Run the extractor over the background photographs (about a second for the classical one)."""
        if not open_scorer(extractor.scorer).needs_background:
            return cls(torch.zeros(0, 1, 1))
        return cls(extractor.extract(background_frames()).whole)

    @classmethod
    def open(cls, folder: Path, extractor: FrameExtractor | None) -> Calibration:
        """The collection's calibration; made and kept on first use, which needs the extractor.

        Raises:
            CollectionDamagedError: The file is there and cannot be read.
        """
        path = folder / cls.FILE
        if path.is_file():
            return cls(read_units(path, "background"))
        if extractor is None:
            raise FileNotFoundError(path)
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
