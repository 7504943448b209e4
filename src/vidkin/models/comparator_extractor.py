"""Use a trained comparator without torch: read its folder, run it on arrays, and open its extractor and scorer.

Shapes: T, Tq, Tt frames; R regions; D dimensions; primed lengths refer to the learned map.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor, unchecked
from vidkin._base.files import PathLike
from vidkin._base.registry import load_attribute, parse_name
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.features import (
    ClipExtractor,
    FrameExtractor,
    absolute_name,
    background_frames,
    open_extractor,
)
from vidkin.match import LearnedScorer, VideoComparator
from vidkin.models.config import COMPARATOR, ComparatorConfig
from vidkin.models.stored import (
    GRAPH_FILE,
    WEIGHTS_FILE,
    Graph,
    has_torch,
    read_model_document,
    read_weights,
    weights_digest,
)
from vidkin.similarity import FrameFeatures, frame_similarity, temporal_chamfer
from vidkin.similarity.contracts import lower_median

# Called for every pair of videos.
_frame_similarity, _temporal_chamfer = unchecked(frame_similarity), unchecked(temporal_chamfer)

if TYPE_CHECKING:
    from vidkin.media import Frames

_log = logging.getLogger(__name__)

EXTRACTOR_WEIGHTS_FILE = "extractor.safetensors"

EXTRACTOR_GRAPH_FILE = "extractor.onnx"
"""The extractor's network as ONNX: stored with its weights, or alone for an extractor that takes an ONNX file."""

WHITENING_FILE = "whitening.safetensors"


@dataclass(frozen=True, slots=True)
class ComparatorInfo:
    """Metadata of a comparator, as stored in its folder.

    Attributes:
        config: Architecture of the comparator.
        weights: File with the extractor's weights; None if it uses its default weights.
        whitening: File with the extractor's whitening; None if there is no whitening.
        metrics: Metrics measured during training.
        notes: Other metadata, such as the data, recipe and seed.
    """

    config: ComparatorConfig
    weights: Path | None = None
    whitening: Path | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@check_arguments
def read_comparator_info(folder: PathLike) -> ComparatorInfo:
    """Read the ``config.toml`` in a comparator's folder without loading the weights.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The file is damaged, or describes a different kind of model.
    """
    path, document = read_model_document(folder)
    if document["model"].get("kind") != COMPARATOR:
        raise InvalidArgumentError(
            f"{path.parent}: must contain a comparator, got a model of kind {document['model'].get('kind')!r}"
        )
    files = [
        file if file.is_file() else None
        for file in (path.parent / name for name in (EXTRACTOR_WEIGHTS_FILE, EXTRACTOR_GRAPH_FILE, WHITENING_FILE))
    ]
    return ComparatorInfo(
        ComparatorConfig.from_mapping(document["model"]),
        files[0] or files[1],
        files[2],
        document["metrics"],
        document["notes"],
    )


def is_comparator(folder: PathLike) -> bool:
    """Whether the model in this folder is a comparator.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The folder's ``config.toml`` is damaged.
    """
    return bool(read_model_document(folder)[1]["model"].get("kind") == COMPARATOR)


def comparator_facts(config: ComparatorConfig) -> list[Any]:
    """Return the settings that the weights depend on, which are included in their digest."""
    facts = [config.weighting, config.network, config.padding, config.dimension]
    # The default is omitted, so that digests computed before this setting existed remain valid.
    return facts if config.remainder == "pooled" else [*facts, config.remainder]


REDUCTION = 4
"""Number of frames per row or column of a learned map."""

# Receptive field of a learned cell beyond the block's edge, in frames: 1 + 2 + 4, rounded up to a multiple of 4.
_HALO = 8

Weigh = Callable[[NDArray[np.float32]], NDArray[np.float32]]
MapFunction = Callable[[NDArray[np.float32]], NDArray[np.float32]]


class ArrayComparator:
    """A trained comparator that works on NumPy arrays; see :class:`vidkin.match.learned.VideoComparator`.

    Args:
        config: Settings of the comparator.
        weigh: Function that weights descriptors [..., D].
        network: Function that turns maps [1, Tq, Tt] into learned maps [1, Tq', Tt']; None to use the map itself as
            the learned map.
        digest: SHA-256 of the weights (:func:`vidkin.models.comparator_folder.comparator_digest`).
    """

    def __init__(self, config: ComparatorConfig, weigh: Weigh, network: MapFunction | None, digest: str) -> None:
        self.config = config
        self.digest = digest
        self._weigh = weigh
        self._network = network

    @property
    def reduction(self) -> int:
        """Number of frames per row of the learned map."""
        return 1 if self._network is None else REDUCTION

    def weigh(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Weight descriptors [..., D] for comparison; the shape is unchanged."""
        if values.shape[-1] != self.config.dimension:
            raise InvalidArgumentError(
                f"descriptors must have the {self.config.dimension} dimensions of the comparator, "
                f"got {values.shape[-1]}"
            )
        return self._weigh(np.asarray(values, np.float32))

    def frame_map(self, query: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute frame similarities [Tq, Tt] from weighted descriptors [Tq, R, D] and [Tt, R, D]."""
        similarities: NDArray[np.float32] = _frame_similarity(
            query, target, spatial_share=self.config.spatial_share, symmetric=self.config.symmetric
        )
        return similarities

    def learned_map(self, frame_map: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute the learned map [Tq', Tt'] in [-1, 1] from a map [Tq, Tt] of any size, in bounded memory."""
        if self._network is None:
            return np.clip(frame_map, -1, 1)
        drops = self.config.remainder == "dropped"
        if drops and min(frame_map.shape) < REDUCTION:
            missing = [(0, max(0, REDUCTION - length)) for length in frame_map.shape]
            frame_map = np.pad(frame_map, missing, mode="edge")
        learned = map_in_blocks(self._network, frame_map, drops=drops)
        return np.clip(learned, -1, 1)

    def video_score(self, learned_map: NDArray[np.float32]) -> float:
        """Compute the score in [-1, 1] from a learned map [Tq', Tt']."""
        return float(
            _temporal_chamfer(
                learned_map,
                temporal_share=self.config.temporal_share,
                symmetric=self.config.symmetric,
                longest=self.config.temporal_span or None,
            )
        )


def map_in_blocks(
    network: MapFunction, frame_map: NDArray[np.float32], *, side: int = 1024, drops: bool = False
) -> NDArray[np.float32]:
    """Compute the learned map [Tq', Tt'] of a map [Tq, Tt] of any size block by block, in bounded memory.

    Except for rounding, the result equals that of the network applied to the whole map, because each block is computed
    with the surrounding frames that its cells depend on.

    Args:
        network: Function that turns maps [1, Tq, Tt] into learned maps [1, Tq', Tt'].
        frame_map: [Tq, Tt], frame similarities.
        side: Maximum number of rows and columns in a block, a multiple of 4.
        drops: Whether the network drops frames beyond a multiple of 4; Tq and Tt must then be at least 4.
    """
    rows, columns = frame_map.shape
    result = np.empty([length // REDUCTION if drops else reduced_length(length) for length in (rows, columns)], "f4")
    for top in range(0, rows, side):
        for left in range(0, columns, side):
            first, start = max(0, top - _HALO), max(0, left - _HALO)
            part = frame_map[first : top + side + _HALO, start : left + side + _HALO]
            learned = network(np.ascontiguousarray(part, dtype=np.float32)[None])[0]
            inside = learned[(top - first) // REDUCTION :, (left - start) // REDUCTION :]
            inside = inside[: side // REDUCTION, : side // REDUCTION]
            above, before = top // REDUCTION, left // REDUCTION
            result[above : above + inside.shape[0], before : before + inside.shape[1]] = inside
    return result


def reduced_length(length: int) -> int:
    """Number of rows in the learned map for this number of frames, if no frame is dropped."""
    return -(-length // REDUCTION)


def _open_comparator(folder: Path, config: ComparatorConfig) -> ArrayComparator:
    """Open the comparator in a folder; its map network runs as ONNX, or in torch if there is no valid ONNX file."""
    weights = read_weights(folder / WEIGHTS_FILE)
    digest = weights_digest(comparator_facts(config), weights)
    try:
        graph = Graph(folder / GRAPH_FILE, digest) if config.network == "cnn" else None
        return ArrayComparator(config, _make_weighting(config, weights), None if graph is None else graph.run, digest)
    except (MissingPartError, KeyError) as error:
        if not has_torch():
            raise
        if (folder / GRAPH_FILE).exists():
            _log.warning("%s", error)
    # Loaded by name to avoid a circular import: the torch module imports this one.
    build_comparator = load_attribute("vidkin.models.comparator:build_comparator")
    comparator: ArrayComparator = build_comparator(config, weights=folder / WEIGHTS_FILE).on_arrays()
    return comparator


def _make_weighting(config: ComparatorConfig, weights: Mapping[str, NDArray[Any]]) -> Weigh:
    """Build the NumPy equivalent of :func:`vidkin.models.comparator.make_weighting`."""
    if config.weighting == "attention":
        transform, bias = weights["attention.transform.weight"], weights["attention.transform.bias"]
        return partial(_attend, transform.T, bias, weights["attention.context_vector.weight"][0])
    if config.weighting == "direction":
        direction = weights["attention.context_vector.weight"][0]
        return partial(_weigh_by_direction, direction / np.linalg.norm(direction))
    if config.weighting == "signs":
        return partial(_signs, weights["attention.W"])
    return np.asarray


def _attend(
    transform: NDArray[np.float32],
    bias: NDArray[np.float32],
    context: NDArray[np.float32],
    values: NDArray[np.float32],
) -> NDArray[np.float32]:
    attention: NDArray[np.float32] = np.tanh(values @ transform + bias) @ context
    weighted: NDArray[np.float32] = values / (np.float32(1) + np.exp(-attention))[..., None]
    return weighted


def _weigh_by_direction(direction: NDArray[np.float32], values: NDArray[np.float32]) -> NDArray[np.float32]:
    weighted: NDArray[np.float32] = values * ((values @ direction) / np.float32(2) + np.float32(0.5))[..., None]
    return weighted


def _signs(projection: NDArray[np.float32], values: NDArray[np.float32]) -> NDArray[np.float32]:
    # Training normalizes the values first, which does not change the signs.
    signs: NDArray[np.float32] = np.sign(values @ projection) / np.float32(values.shape[-1] ** 0.5)
    return signs


_SETTINGS = {"spatial_share": float, "temporal_share": float, "temporal_span": int}

# Number of crops per background photograph; together they form one video.
_CROPS = 6


@check_constructor
class ComparatorExtractor:
    """Extracts whole-frame features for a comparator, and opens its scorer.

    Args:
        comparator: A trained or imported comparator.
        extractor: Extractor of the descriptors that the comparator was trained on.
        name: Name under which this extractor was opened.

    Attributes:
        fingerprint: Fingerprint of the descriptors and a short hash of the comparator's weights.

    Raises:
        InvalidArgumentError: The extractor describes clips rather than frames.
    """

    scorer = "learned"
    describes_boxes = False

    def __init__(self, comparator: ArrayComparator, extractor: FrameExtractor, *, name: str) -> None:
        if isinstance(extractor, ClipExtractor):
            raise InvalidArgumentError(f"a comparator needs a frame extractor, got {extractor.name}")
        self.comparator = comparator
        self._extractor = extractor
        self.name: Final = name
        self._digest = comparator.digest[:12]
        # Excludes the k values of TopK-Chamfer, which can be changed for an existing index.
        self.fingerprint: Final = f"comparator-{self._digest}-{extractor.fingerprint}"
        self.short_side: Final = extractor.short_side

    def extract(self, frames: Frames, *, boxes: NDArray[np.floating] | None = None) -> FrameFeatures:
        """Extract features from frames [T, H, W, 3]; see :class:`vidkin.features.FrameExtractor`.

        A comparator compares whole frames, so ``boxes`` is ignored.
        """
        return replace(self._extractor.extract(frames).views([0]), fingerprint=self.fingerprint)

    def open_scorer(self) -> LearnedScorer:
        """Return the comparator's scorer; every call returns the same object."""
        return self._scorer

    @cached_property
    def _scorer(self) -> LearnedScorer:
        config = self.comparator.config
        unrelated = config.unrelated or measure_unrelated(self.comparator, self._extractor)
        shares = (config.spatial_share, config.temporal_share, config.temporal_span)
        return LearnedScorer(
            self.comparator, (unrelated[0], unrelated[1]), identity=f"{self._digest} {shares} {unrelated}"
        )


@check_arguments
def measure_unrelated(comparator: VideoComparator, extractor: FrameExtractor) -> tuple[float, float]:
    """Measure the median and the 99th percentile of raw scores between unrelated videos.

    Each video consists of six crops of one background photograph, one per second, so this takes as long as extracting
    features from 96 frames. The percentile is at least 0.01 above the median, even if all scores are equal.
    """
    features = extractor.extract(background_frames()).views([0])
    groups = np.split(np.arange(len(features)), range(_CROPS, len(features), _CROPS))
    clips = [replace(features.frames(rows), timestamps=np.arange(len(rows), dtype=np.float64)) for rows in groups]
    scorer = LearnedScorer(comparator, (-1.0, 1.0), identity="")
    scores = np.array([
        scorer.raw_score(first, second)
        for position, first in enumerate(clips)
        for second in clips[position + 1 :]
    ])  # fmt: skip
    median = lower_median(scores)
    return median, max(float(np.quantile(scores, 0.99)), median + 0.01)


def open_comparator_extractor(name: str, *, device: str = "auto") -> ComparatorExtractor:
    """Open a comparator's folder as an extractor.

    Args:
        name: ``path/to/model`` or ``model:path/to/model``, optionally followed by a question mark and
            ``spatial_share`` (k_s), ``temporal_share`` (k_t) or ``temporal_span``, which override the values used in
            training: ``path/to/model?spatial_share=0.35``.
        device: Device of the extractor: ``auto``, ``cpu``, ``cuda``, ``cuda:1``. The comparator runs on the CPU.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The folder is damaged, or a setting is not allowed.
        WeightsUnavailableError: The extractor's weights are not in the folder and cannot be downloaded.
    """
    parsed = parse_name(name)
    folder = Path(parsed.path.removeprefix("model:")).expanduser()
    info = read_comparator_info(folder)
    if absolute_name(info.config.extractor).startswith("model:"):
        raise InvalidArgumentError(
            f"{folder}: the comparator's extractor must not be a trained model, got {info.config.extractor!r}"
        )
    settings = parsed.typed_settings(_SETTINGS)
    if settings:
        # Scores between unrelated videos depend on these settings, so they must be measured again.
        info = replace(info, config=replace(info.config, **settings, unrelated=None))
    comparator = _open_comparator(folder, info.config)
    extractor = open_extractor(info.config.extractor, weights=info.weights, whitening=info.whitening, device=device)
    return ComparatorExtractor(comparator, extractor, name=name)
