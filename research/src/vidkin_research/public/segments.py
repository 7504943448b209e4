"""VCDB, VCSL and VSC2022: segments that one video shares with another."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from vidkin.errors import InvalidArgumentError
from vidkin_research.public.benchmark import RetrievalBenchmark, RetrievalTask, SegmentBox, VideoPair
from vidkin_research.public.files import find_file, read_json, read_table

__all__ = ["read_vcdb", "read_vcsl", "read_vsc2022"]

_LABELS = "https://github.com/transvcl/TransVCL (label_file.json)"
_VSC = "https://github.com/facebookresearch/vsc2022"
_TIMES = ("query_start", "ref_start", "query_end", "ref_end")


def read_vcdb(folder: Path) -> RetrievalBenchmark:
    """VCDB: 528 videos, each a query; pairs of videos with a copied segment are relevant to each other.

    Args:
        folder: With ``label_file.json``: ``query-reference`` -> boxes (query start, reference start, query end,
            reference end), seconds.

    Source: Jiang et al., "VCDB: a large-scale database for partial copy detection in videos", ECCV 2014.
    """
    segments = _label_file(folder)
    copies: dict[str, set[str]] = defaultdict(set)
    for query, reference in segments:
        copies[query].add(reference)
        copies[reference].add(query)
    ids = tuple(sorted(copies))
    positives = {query: frozenset(videos - {query}) for query, videos in copies.items()}
    others = {pair: boxes for pair, boxes in segments.items() if pair[0] != pair[1]}
    return RetrievalBenchmark("vcdb", ids, ids, (RetrievalTask("mAP", "micro-AP", positives),), others)


def read_vcsl(folder: Path) -> RetrievalBenchmark:
    """VCSL: labeled pairs of videos; the figure is that of the segments of these pairs.

    Args:
        folder: With ``label_file.json`` as of :func:`read_vcdb`.

    Source: He et al., "A large-scale comprehensive dataset and copy-overlap aware evaluation protocol for segment-level
    video copy detection", CVPR 2022.
    """
    segments = {pair: boxes for pair, boxes in _label_file(folder).items() if pair[0] != pair[1]}
    queries, references = ({pair[side] for pair in segments} for side in (0, 1))
    return RetrievalBenchmark("vcsl", tuple(sorted(queries)), tuple(sorted(references)), (), segments)


def read_vsc2022(folder: Path) -> RetrievalBenchmark:
    """VSC2022, the Meta AI video similarity challenge: queries and references, most of them without a copy.

    Args:
        folder: With ``matching_ground_truth.csv`` (or ``train_...``, ``test_...``), and with ``..._query_metadata.csv``
            and ``..._reference_metadata.csv`` for the videos without a copy.

    Source: Pizzi et al., "The 2023 video similarity dataset and challenge", CVIU 2024.
    """
    names = [f"{part}matching_ground_truth.csv" for part in ("", "test_", "train_")]
    path = find_file(folder, names, _VSC)
    segments: dict[VideoPair, list[SegmentBox]] = defaultdict(list)
    for number, row in enumerate(read_table(path, ("query_id", "ref_id", *_TIMES)), start=2):
        try:
            first, second, third, fourth = (float(row[name]) for name in _TIMES)
        except (TypeError, ValueError) as error:  # a short line has no value at all
            raise InvalidArgumentError(
                f"{path}: line {number} must have numbers as times: {error}"
            ) from error
        segments[row["query_id"], row["ref_id"]].append((first, second, third, fourth))
    ids = [{pair[side] for pair in segments} for side in (0, 1)]
    part = path.name.removesuffix("matching_ground_truth.csv")
    for known, what in zip(ids, ("query", "reference"), strict=True):
        listed = folder / f"{part}{what}_metadata.csv"
        if listed.is_file():
            known |= {row["video_id"] for row in read_table(listed, ("video_id",))}
    shown: dict[str, set[str]] = defaultdict(set)
    for query, reference in segments:
        shown[query].add(reference)
    positives = {query: frozenset(shown[query]) for query in sorted(ids[0])}
    task = RetrievalTask("mAP", "descriptor micro-AP", positives)
    boxes = {pair: tuple(rows) for pair, rows in segments.items()}
    return RetrievalBenchmark("vsc2022", tuple(sorted(ids[0])), tuple(sorted(ids[1])), (task,), boxes)


def _label_file(folder: Path) -> dict[VideoPair, tuple[SegmentBox, ...]]:
    path = find_file(folder, ["label_file.json"], _LABELS)
    segments = {}
    for pair, boxes in read_json(path).items():
        ids = re.fullmatch(r"([^-]+)-([^-]+)", pair)
        try:
            sides = [(float(a), float(b), float(c), float(d)) for a, b, c, d in boxes]
        except (TypeError, ValueError):
            sides = None
        if ids is None or sides is None:
            raise InvalidArgumentError(
                f"{path}: must hold query-reference: [[q0, r0, q1, r1], ...], got {pair!r}"
            )
        # A few published boxes have no extent.
        segments[ids[1], ids[2]] = tuple(box for box in sides if box[2] > box[0] and box[3] > box[1])
    return segments
