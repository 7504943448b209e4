"""Two public frame hashes that `vidkin benchmark copies --peers` compares with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.install import install_command
from vidkin.errors import MissingPartError
from vidkin.index import sampling_rate
from vidkin.media import probe, read_frames
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.copies.scores import CopyPeer, PairScores

__all__ = ["PEERS", "phash_scores", "vpdq_scores"]

Bits = NDArray[np.float64]

_SHORT_SIDE = 240
_HASH_BITS = 64
# vPDQ defaults: minimum quality of a hash, and maximum distance in bits between matching frames.
_PDQ_QUALITY = 50
_PDQ_DISTANCE = 31


def phash_scores(material: CopyMaterial) -> PairScores:
    """Return [Q, G] scores: the mean over a video's frames of the similarity to the nearest frame of the other video
    (1 - 2 * Hamming / 64), in the better direction. Frames are sampled as in vidkin: one per second, more in short
    videos.

    Raises:
        MissingPartError: The package imagehash is not installed.
    """
    try:
        import imagehash
    except ImportError as error:
        raise MissingPartError(
            f"pHash needs the package imagehash; run {install_command('hashes', 'vidkin-research')}"
        ) from error

    def hashes(path: Path) -> Bits:
        frames = read_frames(path, rate=sampling_rate(probe(path).duration), short_side=_SHORT_SIDE)
        bits = [imagehash.phash(Image.fromarray(image)).hash.ravel() for image in frames.images]
        return 2 * np.stack(bits).astype(np.float64) - 1

    def score(query: Bits, target: Bits) -> float:
        alike = query @ target.T / _HASH_BITS
        return float(max(alike.max(1).mean(), alike.max(0).mean()))

    return _score_all(material, hashes, score)


def vpdq_scores(material: CopyMaterial) -> PairScores:
    """Return [Q, G] scores: the fraction of frames with a PDQ distance of at most 31, in the better direction, as vPDQ
    does."""
    import vpdq

    def hashes(path: Path) -> Bits:
        features = vpdq.computeHash(str(path), seconds_per_hash=1)
        good = [feature for feature in features if feature.quality >= _PDQ_QUALITY] or features
        return np.stack(
            [np.unpackbits(np.frombuffer(bytes.fromhex(feature.hex), np.uint8)) for feature in good]
        ).astype(np.float64)

    def score(query: Bits, target: Bits) -> float:
        near = (query @ (1 - target.T) + (1 - query) @ target.T) <= _PDQ_DISTANCE
        return float(max(near.any(1).mean(), near.any(0).mean()))

    return _score_all(material, hashes, score)


def _score_all(
    material: CopyMaterial, hashes: Callable[[Path], Bits], score: Callable[[Bits, Bits], float]
) -> PairScores:
    gallery: Sequence[Bits] = [hashes(video.path) for video in material.gallery]
    scores = np.zeros((len(material.queries), len(gallery)))
    for row, query in enumerate(material.queries):
        bits = hashes(query.path)
        scores[row] = [score(bits, target) for target in gallery]
    return PairScores(scores)


PHASH = CopyPeer(name="pHash per frame", measure=phash_scores)
# The vpdq package needs FFmpeg's development files to build, so it is rarely installed.
VPDQ = CopyPeer(
    name="vPDQ",
    measure=vpdq_scores,
    missing="" if find_spec("vpdq") else "vPDQ is left out: the package vpdq is not installed.",
)
PEERS = (PHASH, VPDQ)
"""Other systems that `vidkin benchmark copies --peers` measures."""
