"""Evaluate raw frame vectors: one frame per second, scored by the mean of each query frame's best match.

Any ONNX network that takes uint8 pixels [N, H, W, 3] can be evaluated on copies of held-out sources with all edits of
`vidkin_research.copies.edits.EDITS`, including those held out from training, and on moments of single shots.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage

from vidkin.errors import InvalidArgumentError
from vidkin.features import BOX_NETWORK_FILE, find_content_boxes, frame_information
from vidkin.media import read_frames
from vidkin.media.frames import fit_to_square
from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.figures import GroupFigures, summarize_copies
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.copies.scores import PairScores
from vidkin_research.frame_encoder.held_back import HELD_BACK_EDITS
from vidkin_research.frame_encoder.material import Material
from vidkin_research.frame_encoder.teacher import PixelEncoder, open_pixel_encoder

__all__ = [
    "Network",
    "mean_of_best",
    "measure_copies",
    "measure_edited_queries",
    "measure_moments",
    "measure_speed",
    "measure_views",
    "nearest_within",
    "parse_network",
]

Vectors = NDArray[np.float32]
Box = tuple[float, float, float, float]

# Shorter side of decoded frames, which are then resized to each network's input.
_SHORT_SIDE = 288
_BATCH = 8
# Views of a query frame: halves, quarters and the center, as (left, top, right, bottom) fractions of the frame.
_VIEWS = (
    (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 0.5), (0.0, 0.5, 1.0, 1.0),
    (0.0, 0.0, 0.5, 0.5), (0.5, 0.0, 1.0, 0.5), (0.0, 0.5, 0.5, 1.0), (0.5, 0.5, 1.0, 1.0),
    (0.25, 0.25, 0.75, 0.75),
)  # fmt: skip
# Margin by which a view must outscore the full frame, because views also raise the scores of unrelated videos.
_VIEW_MARGIN = 0.1
# Only this many seconds of a single shot are evaluated.
_MAX_SHOT = 30.0
# Only the first seconds of an unrelated video are used.
_OTHER_SECONDS = 8.0


@cache
def _boxes_key() -> str:
    """Return a key that changes with the box network."""
    return hashlib.sha256(BOX_NETWORK_FILE.read_bytes()).hexdigest()[:9]


@dataclass(frozen=True, slots=True)
class Network:
    """A network to evaluate.

    Attributes:
        name: Name in the tables.
        file: ONNX file.
        side: Side of the input in pixels.
    """

    name: str
    file: Path
    side: int

    def key(self) -> str:
        """Return a key that changes with the file and the side, so that cached vectors belong to this network."""
        return hashlib.sha256(self.file.read_bytes() + str(self.side).encode()).hexdigest()[:12]


def parse_network(text: str) -> Network:
    """Parse ``NAME=FILE@SIDE``.

    Raises:
        InvalidArgumentError: The text has a different format.
    """
    name, _, rest = text.partition("=")
    file, _, side = rest.rpartition("@")
    if not file or not side.isdecimal():
        raise InvalidArgumentError(f"--network must be NAME=FILE@SIDE, got {text!r}")
    return Network(name, Path(file), int(side))


def mean_of_best(query: Vectors, target: Vectors) -> float:
    """Return the mean, over the query's frames, of the cosine to the best target frame."""
    return float((query @ target.T).max(axis=1).mean())


def nearest_within(
    queries: Vectors, query_times: Sequence[float], targets: Vectors, target_times: Sequence[float], seconds: float
) -> float:
    """Return the fraction of query frames whose most similar target frame is within this many seconds."""
    nearest = np.asarray(target_times)[(queries @ targets.T).argmax(axis=1)]
    return float((np.abs(nearest - np.asarray(query_times)) <= seconds).mean())


class VectorStore:
    """Computes frame vectors of videos with one network and caches them in a folder.

    Args:
        network: The network.
        folder: Folder of the stored vectors.
        rate: Frames per second.
        short_side: Shorter side of decoded frames, which are then resized to the network's input.
        threads: Number of threads for the network.
    """

    def __init__(
        self, network: Network, folder: Path, *, rate: float = 1.0, short_side: int = _SHORT_SIDE, threads: int = 1
    ) -> None:
        self.network = network
        self._rate = rate
        self._short_side = short_side
        self._folder = folder / network.key()
        self._encode: PixelEncoder | None = None
        self._threads = threads

    def vectors(
        self, video: Path, *, start: float = 0.0, end: float | None = None, view: Box | None = None
    ) -> tuple[Vectors, list[float]]:
        """Return the vectors [T, D] of a video's frames, or of one view of them, and the frame times in seconds."""
        file = self._file(video, f"{start} {end}" + (f" {view}" if view is not None else ""))
        if file.exists():
            with np.load(file) as stored:
                return stored["vectors"], stored["times"].tolist()
        frames = read_frames(video, rate=self._rate, start=start, end=end, short_side=self._short_side, threads=1)
        vectors = self.encode([image if view is None else _crop(image, view) for image in frames.images])
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial.npz")
        information = frame_information(frames.images)
        np.savez(partial, vectors=vectors, times=np.asarray(frames.timestamps), information=information)
        partial.rename(file)
        return vectors, [float(value) for value in frames.timestamps]

    def information(self, video: Path) -> Vectors:
        """Return the information [T] of a video's frames."""
        self.vectors(video)
        with np.load(self._file(video, "0.0 None")) as stored:
            information: Vectors = stored["information"]
        return information

    def _file(self, video: Path, made_of: str) -> Path:
        known = f"{video.resolve()} {video.stat().st_size} {made_of}"
        known += f" {self._rate}" if self._rate != 1.0 else ""
        known += f" at {self._short_side}" if self._short_side != _SHORT_SIDE else ""
        return self._folder / f"{hashlib.sha256(known.encode()).hexdigest()[:16]}.npz"

    def parts(self, video: Path) -> list[tuple[Box, Vectors]]:
        """Return boxes in a video's frames that may contain another video, with the vectors [T, D] of each box."""
        file = self._file(video, f"parts {_boxes_key()}")
        if not file.exists():
            frames = read_frames(video, rate=self._rate, short_side=self._short_side, threads=1)
            boxes = find_content_boxes(frames.images)
            vectors = [
                self.encode([_crop(image, (left, top, right, bottom)) for image in frames.images])
                for left, top, right, bottom in boxes.tolist()
            ]
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".partial.npz")
            np.savez(partial, boxes=boxes, vectors=np.stack(vectors) if vectors else np.zeros((0, 0, 0), np.float32))
            partial.rename(file)
        with np.load(file) as stored:
            boxes, vectors = stored["boxes"], stored["vectors"]
        return [
            ((left, top, right, bottom), of)
            for (left, top, right, bottom), of in zip(boxes.tolist(), vectors, strict=True)
        ]

    def encode(self, images: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Compute the vectors [N, D] of images of any size."""
        if self._encode is None:
            self._encode = open_pixel_encoder(f"onnx:{self.network.file}", threads=self._threads)
        squares = np.stack([fit_to_square(image, self.network.side, "stretch") for image in images])
        return np.concatenate(
            [self._encode(squares[first : first + _BATCH]) for first in range(0, len(squares), _BATCH)]
        )


def measure_copies(
    store: VectorStore, material: CopyMaterial, *, on_progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Measure mAP and micro-AP of all copies, per family, per edit, and of the held-out edits."""
    videos = [query.path for query in material.queries] + [video.path for video in material.gallery]
    vectors = []
    for number, video in enumerate(videos):
        vectors.append(store.vectors(video)[0])
        if on_progress is not None:
            on_progress(number + 1, len(videos))
    queries, gallery = vectors[: len(material.queries)], vectors[len(material.queries) :]
    scores = np.array([[mean_of_best(query, target) for target in gallery] for query in queries])
    figures = summarize_copies(store.network.name, PairScores(scores), material)
    held = np.array([video.edit in HELD_BACK_EDITS or video.edit not in EDITS for video in material.gallery])
    only_held = CopyMaterial(
        material.queries, tuple(video for video, is_held in zip(material.gallery, held, strict=True) if is_held)
    )
    unseen = summarize_copies(store.network.name, PairScores(scores[:, held]), only_held)
    return {
        "everything": _row(figures.everything),
        "held-back kinds": _row(unseen.everything),
        "families": {group.name: _row(group) for group in figures.families},
        "edits": {group.name: _row(group) for group in figures.edits},
        "unrelated": {kind.which: {"pairs": kind.pairs, "highest": kind.highest} for kind in figures.unrelated},
    }


def measure_edited_queries(
    store: VectorStore, material: CopyMaterial, others: Sequence[Path], *, views: bool = False
) -> dict[str, Any]:
    """Search for the source of each edited copy among the other sources and unrelated videos.

    The gallery has vectors of full frames. Other clips of the source's recording are left out.

    Args:
        store: Vectors of one network.
        material: Sources and their edited copies.
        others: Unrelated videos; only their first seconds are used.
        views: Whether to also use views of the query frames, which count if they score higher by a margin.

    Returns:
        mAP and micro-AP of all queries, per family and per edit.
    """
    copies = [video for video in material.gallery if video.source is not None and video.edit in EDITS]
    gallery = [store.vectors(query.path)[0] for query in material.queries]
    gallery += [store.vectors(video, end=_OTHER_SECONDS)[0] for video in others]
    scores = np.zeros((len(copies), len(gallery)))
    truth = np.zeros_like(scores)
    for row, copy in enumerate(copies):
        whole = store.vectors(copy.path)[0]
        scores[row] = [mean_of_best(whole, target) for target in gallery]
        for view in _VIEWS if views else ():
            part = store.vectors(copy.path, view=view)[0]
            scores[row] = np.maximum(scores[row], [mean_of_best(part, target) - _VIEW_MARGIN for target in gallery])
        for column, query in enumerate(material.queries):
            truth[row, column] = 1 if query == copy.source else -1 if query.recording.family == copy.family else 0
    groups = {"everything": np.ones(len(copies), dtype=bool)}
    for name in sorted({copy.edit_family for copy in copies if copy.edit_family}) + sorted({c.edit for c in copies}):
        groups[name] = np.array([name in (copy.edit_family, copy.edit) for copy in copies])
    return {name: _edited_row(scores[rows], truth[rows]) for name, rows in groups.items()}


def _edited_row(scores: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean and micro average precision of queries [Q, G] with one correct video each; -1 is left out."""
    precisions = [_average_precision(row[of != -1], of[of != -1] > 0) for row, of in zip(scores, truth, strict=True)]
    counted = truth >= 0
    return {
        "queries": len(scores),
        "map": round(float(np.mean(precisions)), 4),
        "micro_ap": round(_average_precision(scores[counted], truth[counted] > 0), 4),
    }


def _crop(image: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    height, width = image.shape[:2]
    left, top, right, bottom = (round(share * size) for share, size in zip(box, (width, height) * 2, strict=True))
    return image[top:bottom, left:right]


def _row(group: GroupFigures) -> dict[str, float]:
    return {
        "copies": group.copies,
        "map": round(group.strict.map, 4),
        "micro_ap": round(group.strict.micro_ap, 4),
        "neutral_map": round(group.neutral.map, 4),
        "neutral_micro_ap": round(group.neutral.micro_ap, 4),
        "lowest": round(group.lowest, 4),
    }


def measure_moments(store: VectorStore, shots: Sequence[Path]) -> dict[str, float]:
    """Measure how well moments of one shot are distinguished, with queries half a second after the gallery frames.

    Returns:
        Fraction of frames whose most similar frame is within a second, and the micro-AP of all frame pairs, where pairs
        within a second are correct; both averaged over shots.
    """
    shares, precisions = [], []
    for shot in shots:
        targets, times = store.vectors(shot, end=_MAX_SHOT)
        queries, query_times = store.vectors(shot, start=0.5, end=_MAX_SHOT)
        shares.append(nearest_within(queries, query_times, targets, times, 1.0))
        apart = np.abs(np.asarray(query_times)[:, None] - np.asarray(times))
        precisions.append(_average_precision(queries @ targets.T, apart <= 1.0))
    return {
        "shots": len(shots),
        "within a second": round(float(np.mean(shares)), 4),
        "micro_ap of the right moment": round(float(np.mean(precisions)), 4),
    }


def _average_precision(scores: NDArray[np.floating[Any]], right: NDArray[np.bool_]) -> float:
    ranked = right.ravel()[np.argsort(-scores.ravel(), kind="stable")]
    hits = np.flatnonzero(ranked)
    return float((np.arange(1, len(hits) + 1) / (hits + 1)).mean())


def measure_views(store: VectorStore, material: Material, *, pictures: int = 300, views: int = 2) -> dict[str, float]:
    """Measure how well edited views retrieve their validation images.

    Returns:
        Fraction of views whose nearest image is correct, and the micro-AP of all pairs of a view and an image.
    """
    random = np.random.default_rng(9)
    chosen = material.validation[:: max(1, len(material.validation) // pictures)][:pictures]
    edited = [
        [material.view(int(number), random, side=_SHORT_SIDE, edited=True) for number in chosen] for _ in range(views)
    ]
    plain = store.encode([material.view(int(number), random, side=_SHORT_SIDE, edited=False) for number in chosen])
    scores = np.concatenate([store.encode(images) @ plain.T for images in edited])
    right = np.tile(np.eye(len(chosen), dtype=bool), (views, 1))
    return {
        "pictures": len(chosen),
        "recall": round(float(right[np.arange(len(scores)), scores.argmax(axis=1)].mean()), 4),
        "micro_ap": round(_average_precision(scores, right), 4),
    }


def measure_speed(network: Network, *, frames: int = 24) -> dict[str, float]:
    """Measure the CPU time per frame on one thread in milliseconds, from a 640 x 360 frame to its vector."""
    store = VectorStore(network, Path(), threads=1)
    random = np.random.default_rng(0)
    small = random.integers(256, size=(9, 16, 3), dtype=np.uint8)
    image = np.asarray(PILImage.fromarray(small).resize((640, 360)))
    store.encode([image] * _BATCH)
    begun = time.process_time()
    vectors = store.encode([image] * frames)
    spent = time.process_time() - begun
    return {
        "milliseconds": round(1000 * spent / frames, 2),
        "dimension": int(vectors.shape[1]),
        "megabytes": round(network.file.stat().st_size / 1e6, 2),
        "megabytes an hour at float16": round(vectors.shape[1] * 2 * 3600 / 1e6, 2),
    }
