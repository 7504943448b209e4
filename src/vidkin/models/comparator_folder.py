"""The folder of a comparator: its weights, its settings, and the files of its extractor."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from vidkin._base.files import PathLike, replace_file
from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError
from vidkin.features import (
    ClipExtractor,
    FrameExtractor,
    Views,
    absolute_name,
    background_frames,
    open_extractor,
)
from vidkin.models.comparator import KIND, Comparator, ComparatorConfig, build_comparator
from vidkin.models.model_folder import WEIGHTS_FILE, read_model_document, write_model_folder
from vidkin.models.weights import add_weights
from vidkin.similarity import FrameFeatures, LearnedScorer

if TYPE_CHECKING:
    from vidkin.media import Frames

EXTRACTOR_WEIGHTS_FILE = "extractor.safetensors"

WHITENING_FILE = "whitening.safetensors"


@dataclass(frozen=True, slots=True)
class ComparatorInfo:
    """Description of a comparator, as stored in its folder.

    Attributes:
        config: Architecture of the comparator.
        weights: File of the extractor's weights; None if it uses its own.
        whitening: File of the extractor's whitening; None if it has none.
        metrics: Figures measured during its training.
        notes: Further facts: data, recipe, seed.
    """

    config: ComparatorConfig
    weights: Path | None = None
    whitening: Path | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def save_comparator(
    comparator: Comparator,
    folder: PathLike,
    *,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a comparator and the files of its extractor, so that the folder needs nothing else, and return the folder.

    Args:
        comparator: A trained or imported comparator.
        folder: Where to write; created if missing.
        weights, whitening: Files of the extractor (:func:`vidkin.features.open_extractor`), copied into the folder. If
            None, the file of an earlier model is removed.
        metrics: Figures by name.
        notes: Text, numbers, booleans or lists of these by name.

    Raises:
        InvalidArgumentError: A file cannot be read, or the folder cannot be written.
    """
    path = Path(folder).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
        for source, name in ((weights, EXTRACTOR_WEIGHTS_FILE), (whitening, WHITENING_FILE)):
            target = path / name
            if source is None:
                target.unlink(missing_ok=True)
            elif not (target.exists() and os.path.samefile(source, target)):
                with replace_file(target) as temporary:
                    shutil.copyfile(os.path.expanduser(source), temporary)
    except OSError as error:
        raise InvalidArgumentError(
            f"{path}: {error.strerror or error} ({error.filename}); name files that can be read and a folder that can "
            "be written"
        ) from error
    return write_model_folder(
        path,
        comparator,
        {
            "model": comparator.config.to_mapping(),
            "metrics": {name: float(value) for name, value in (metrics or {}).items()},
            "notes": dict(notes or {}),
        },
    )


def load_comparator(folder: PathLike, *, device: str | torch.device = "cpu") -> Comparator:
    """Load the comparator of a folder, in eval mode.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder is damaged, or holds a model of another kind.
    """
    info = read_comparator_info(folder)
    comparator = build_comparator(info.config, weights=Path(folder).expanduser() / WEIGHTS_FILE)
    return comparator.eval().requires_grad_(False).to(device)


def read_comparator_info(folder: PathLike) -> ComparatorInfo:
    """Read a folder's ``config.toml``, but not the weights.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The file is damaged, or describes a model of another kind.
    """
    path, document = read_model_document(folder)
    if document["model"].get("kind") != KIND:
        raise InvalidArgumentError(
            f"{path.parent}: must hold a comparator, got a model of kind {document['model'].get('kind')!r}"
        )
    files = [path.parent / name for name in (EXTRACTOR_WEIGHTS_FILE, WHITENING_FILE)]
    weights, whitening = (file if file.is_file() else None for file in files)
    return ComparatorInfo(
        ComparatorConfig.from_mapping(document["model"]),
        weights,
        whitening,
        document["metrics"],
        document["notes"],
    )


def is_comparator(folder: PathLike) -> bool:
    """Whether the model in this folder is a comparator.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder's ``config.toml`` is damaged.
    """
    return bool(read_model_document(folder)[1]["model"].get("kind") == KIND)


def comparator_digest(comparator: Comparator) -> str:
    """SHA-256 of the names and values of all weights, and of the settings they were made for."""
    config = comparator.config
    facts = [config.weighting, config.network, config.padding, config.dimension]
    digest = hashlib.sha256(json.dumps(facts).encode())
    add_weights(digest, comparator)
    return digest.hexdigest()


# A comparator's folder as an extractor: frame descriptors, and the scorer trained on them.


_SETTINGS = {"spatial_share": float, "temporal_share": float, "temporal_span": int}

# Each video consists of cut-outs of one background photograph.
_CUTS = 6


class ComparatorExtractor:
    """Describes whole frames with the extractor of a comparator, and opens the comparator as the scorer.

    Args:
        comparator: A trained or imported comparator.
        extractor: Extractor of the descriptors that the comparator was trained on.
        name: As it was opened.

    Attributes:
        fingerprint: Fingerprint of the descriptors and a short hash of the comparator's weights.

    Raises:
        InvalidArgumentError: The extractor describes clips.
    """

    scorer = "learned"
    views: Views = "none"

    def __init__(self, comparator: Comparator, extractor: FrameExtractor, *, name: str) -> None:
        if isinstance(extractor, ClipExtractor):
            raise InvalidArgumentError(f"a comparator needs an extractor of frames, got {extractor.name}")
        self.comparator = comparator.eval().requires_grad_(False)
        self._extractor = extractor
        self.name: Final = name
        self._digest = comparator_digest(comparator)[:12]
        # Excludes the shares of TopK-Chamfer: they can be changed for an existing index.
        self.fingerprint: Final = f"comparator-{self._digest}-{extractor.fingerprint}"
        self.short_side: Final = extractor.short_side

    def extract(self, frames: Frames, *, mirror: bool = False, boxes: torch.Tensor | None = None) -> FrameFeatures:
        """Features of frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`.

        A comparator compares whole pictures, so only the whole frame is described, whatever the ``boxes``.
        """
        return replace(self._extractor.extract(frames, mirror=mirror).views([0]), fingerprint=self.fingerprint)

    def open_scorer(self) -> LearnedScorer:
        """The scorer of this comparator, opened once."""
        return self._scorer

    @cached_property
    def _scorer(self) -> LearnedScorer:
        config = self.comparator.config
        unrelated = config.unrelated or measure_unrelated(self.comparator, self._extractor)
        shares = (config.spatial_share, config.temporal_share, config.temporal_span)
        return LearnedScorer(
            self.comparator, (unrelated[0], unrelated[1]), identity=f"{self._digest} {shares} {unrelated}"
        )


def measure_unrelated(comparator: Comparator, extractor: FrameExtractor) -> tuple[float, float]:
    """Median and 99th percentile of the raw scores of videos that have nothing in common.

    The videos are cut-outs of one background photograph each, six frames a second apart, so this takes as long as
    describing 96 frames. A network that gives unrelated videos one and the same score has the percentile .01 above it.
    """
    features = extractor.extract(background_frames()).views([0])
    groups = torch.split(torch.arange(len(features)), _CUTS)
    clips = [replace(features.frames(rows), timestamps=torch.arange(len(rows), dtype=torch.float64)) for rows in groups]
    scorer = LearnedScorer(comparator, (-1.0, 1.0), identity="")
    scores = torch.tensor([
        scorer.raw_score(first, second)
        for position, first in enumerate(clips)
        for second in clips[position + 1 :]
    ])  # fmt: skip
    median = float(scores.median())
    return median, max(float(scores.quantile(0.99)), median + 0.01)


def open_comparator_extractor(name: str, *, device: str = "auto") -> ComparatorExtractor:
    """Open the extractor of a comparator's folder.

    Args:
        name: ``path/to/model`` or ``model:path/to/model``, optionally followed by a question mark and
            ``spatial_share`` (k_s), ``temporal_share`` (k_t) or ``temporal_span``, which replace the values it was
            trained with: ``path/to/model?spatial_share=.35``.
        device: Device of the extractor: ``auto``, ``cpu``, ``cuda``, ``cuda:1``. The comparator runs on the CPU.

    Raises:
        UnknownExtractorError: The folder holds no model.
        InvalidArgumentError: The folder is damaged, or a setting is not allowed.
        WeightsUnavailableError: The extractor's weights are not in the folder and cannot be downloaded.
    """
    parsed = parse_name(name)
    folder = Path(parsed.path.removeprefix("model:")).expanduser()
    info = read_comparator_info(folder)
    if absolute_name(info.config.extractor).startswith("model:"):
        raise InvalidArgumentError(
            f"{folder}: extractor must not be the folder of a trained model, got {info.config.extractor!r}"
        )
    comparator = load_comparator(folder)
    settings = parsed.typed_settings(_SETTINGS)
    if settings:
        # The scores of unrelated videos depend on the shares.
        comparator.config = replace(comparator.config, **settings, unrelated=None)
    extractor = open_extractor(info.config.extractor, weights=info.weights, whitening=info.whitening, device=device)
    return ComparatorExtractor(comparator, extractor, name=name)
