"""A frozen frame network with cached features, and a new head for every run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import replace_file
from vidkin.models import ClipEncoder, EncoderConfig, build_model
from vidkin_research.learned.clips import video_features
from vidkin_research.runs import OnStudyProgress

__all__ = ["FRAME_NETWORK", "HeadStore"]

FRAME_NETWORK = "timm:mobilenetv2_100?pad_type=same"


class HeadStore:
    """Creates clip encoders on one frozen frame network, and caches the features of videos in a folder.

    Args:
        weights: Safetensors file with the weights of the frame network; None downloads them from the hub.
        folder: Folder for the cached features, from which an interrupted experiment resumes.
        window: Number of frames in a clip.
        network: The frame network.
        size: Side of the square frames in pixels.
        units: Number of units in the fully connected layer and the LSTM.
        rate: Maximum number of frames per second to read from a video; None reads all frames.
    """

    def __init__(
        self,
        weights: Path | None,
        folder: Path,
        *,
        window: int,
        network: str = FRAME_NETWORK,
        size: int = 128,
        units: int = 128,
        rate: float | None = None,
    ) -> None:
        self._rate = rate
        self._weights = weights
        self._folder = folder
        self._config = EncoderConfig(
            kind="clip",
            backbone=network,
            trainable="head",
            hidden=units,
            lstm=units,
            frames=window,
            size=size,
            fit="stretch",
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
        )
        self._network: ClipEncoder | None = None
        self._key = ""

    def model(self, seed: int) -> ClipEncoder:
        """Create a clip encoder with a new head on the frame network, in eval mode."""
        model = build_model(self._config, weights=self._weights, seed=seed)
        assert isinstance(model, ClipEncoder)
        return model.eval()

    def features(
        self, paths: Sequence[Path], *, on_progress: OnStudyProgress | None = None
    ) -> list[NDArray[np.float32]]:
        """Return the frame features [T, F] of each video, computing those that are not cached."""
        features: list[NDArray[np.float32]] = []
        for done, path in enumerate(paths):
            if on_progress is not None:
                on_progress(done, len(paths), path.name)
            if self._network is None:
                self._network = self.model(0)
                config = self._config
                at = "" if self._rate is None else f" {self._rate}"
                of_network = hashlib.sha256(f"{config.backbone} {config.size} {config.fit}{at}".encode())
                for name, tensor in sorted(self._network.backbone.state_dict().items()):
                    of_network.update(name.encode() + tensor.contiguous().numpy().tobytes())
                self._key = of_network.hexdigest()
            # The file name identifies the content of the video, and the network.
            digest = hashlib.sha256(path.read_bytes() + self._key.encode()).hexdigest()[:24]
            stored = self._folder / f"{digest}.npy"
            if not stored.is_file():
                rows = video_features(self._network, path, size=self._config.size, rate=self._rate).rows
                self._folder.mkdir(parents=True, exist_ok=True)
                with replace_file(stored) as temporary, temporary.open("wb") as file:
                    np.save(file, rows, allow_pickle=False)
            features.append(np.load(stored, allow_pickle=False))
        return features
