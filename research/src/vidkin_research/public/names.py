"""Open public benchmarks by name from their published annotation files."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vidkin._base.files import read_text_file
from vidkin._base.values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin_research.public.benchmark import RetrievalBenchmark, RetrievalTask, SegmentBox, VideoPair

__all__ = ["available_benchmarks", "open_benchmark"]

# FIVR and EVVE: incident and event videos.


_FIVR = "https://github.com/MKLab-ITI/FIVR-200K"

_EVVE = "http://pascal.inrialpes.fr/data/evve/ (as JSON with annotation, queries and database)"

# Near duplicate, duplicate scene, complementary scene, incident scene; each task adds one label.
_LABELS = ("ND", "DS", "CS", "IS")

_TASKS = {"DSVR": 2, "CSVR": 3, "ISVR": 4}


def read_fivr_200k(folder: Path) -> RetrievalBenchmark:
    """Read FIVR-200K: 100 queries, 225,960 videos.

    Args:
        folder: Folder with ``annotation.json`` and ``fivr-200k-ids.txt`` (or ``youtube_ids.txt``).

    Source: Kordopatis-Zilos et al., "FIVR: Fine-grained incident video retrieval", IEEE TMM 2019.
    """
    labels = read_json(find_file(folder, ["annotation.json"], _FIVR))
    ids = read_ids(find_file(folder, ["fivr-200k-ids.txt", "youtube_ids.txt"], _FIVR))
    return _fivr("fivr-200k", labels, sorted(labels), ids)


def read_fivr_5k(folder: Path) -> RetrievalBenchmark:
    """Read FIVR-5K: 50 of the queries and 5,000 of the videos of FIVR-200K.

    Args:
        folder: Folder with ``annotation.json``, ``fivr-5k-queries.txt`` and ``fivr-5k-database.txt``.
    """
    labels = read_json(find_file(folder, ["annotation.json"], _FIVR))
    queries, database = (
        read_ids(find_file(folder, [f"fivr-5k-{what}.txt"], "https://github.com/dun933/3D-CSL"))
        for what in ("queries", "database")
    )
    return _fivr("fivr-5k", labels, queries, database)


def read_evve(folder: Path) -> RetrievalBenchmark:
    """Read EVVE: 13 events, 620 queries, 2,373 videos.

    Args:
        folder: Folder with ``evve.json``: ``annotation`` (event -> queries, positives, null), ``queries``,
            ``database``.

    Source: Revaud et al., "Event retrieval in large video collections with circulant temporal encoding", CVPR 2013.
    """
    path = find_file(folder, ["evve.json"], _EVVE)
    document = read_json(path)
    try:
        events = {event: (set(parts[0]), set(parts[1])) for event, parts in document["annotation"].items()}
        queries, database = (sorted(set(document[name])) for name in ("queries", "database"))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InvalidArgumentError(f"{path}: must contain annotation, queries and database: {error!r}") from error
    groups = {query: event for event, (asked, _) in events.items() for query in asked}
    positives = {query: frozenset(events[groups[query]][1] - {query}) for query in queries if query in groups}
    task = RetrievalTask("mAP", "micro-AP", positives)
    return RetrievalBenchmark("evve", tuple(queries), tuple(database), (task,), groups=groups, has_trapezoids=True)


def _fivr(name: str, labels: dict[str, Any], queries: list[str], database: list[str]) -> RetrievalBenchmark:
    unknown = sorted(set(queries) - set(labels))
    if unknown:
        raise InvalidArgumentError(f"{name}: annotation.json has no labels for query {unknown[0]}")
    tasks = []
    for task, count in _TASKS.items():
        positives = {}
        for query in queries:
            try:
                videos = frozenset(video for label in _LABELS[:count] for video in labels[query].get(label, ()))
            except (AttributeError, TypeError) as error:
                raise InvalidArgumentError(
                    f"{name}: annotation.json must contain lists of videos by label, but does not for query {query}"
                ) from error
            positives[query] = videos - {query}  # one published query is listed as relevant to itself
        tasks.append(RetrievalTask(task, task[:-1] + "D", positives))
    return RetrievalBenchmark(name, tuple(sorted(queries)), tuple(sorted(set(database))), tuple(tasks))


# SVD and CC_WEB_VIDEO: near-duplicate videos.


_SVD = "https://svdbase.github.io"

_CC_WEB = "http://vireo.cs.cityu.edu.hk/webvideo/"

_DUPLICATES = frozenset("ESVML")


def read_svd(folder: Path) -> RetrievalBenchmark:
    """Read SVD: 206 queries with labeled pairs, and unlabeled distractors.

    Args:
        folder: Folder with ``test_groundtruth`` (lines of query, video, and 1 or 0), and ``unlabeled-data-id`` to also
            search videos without labels.

    Source: Jiang et al., "SVD: a large-scale short video dataset for near-duplicate video retrieval", ICCV 2019.
    """
    path = find_file(folder, ["test_groundtruth"], _SVD)
    labels: dict[str, dict[str, bool]] = {}
    for query, video, label in (row[:3] for row in read_lines(path, 3)):
        if label not in ("0", "1"):
            raise InvalidArgumentError(f"{path}: labels must be 0 or 1, got {label!r} for {query}")
        labels.setdefault(Path(query).stem, {})[Path(video).stem] = label == "1"
    unlabeled: frozenset[str] = frozenset()
    if (folder / "unlabeled-data-id").is_file():
        unlabeled = frozenset(Path(name).stem for name in read_ids(folder / "unlabeled-data-id"))
    positives = {
        query: frozenset(video for video, is_copy in pairs.items() if is_copy) - {query}
        for query, pairs in labels.items()
    }
    candidates = {query: frozenset(pairs) | unlabeled for query, pairs in labels.items()}
    database = unlabeled.union(*labels.values())
    task = RetrievalTask("mAP", "micro-AP", positives, candidates)
    return RetrievalBenchmark("svd", tuple(sorted(labels)), tuple(sorted(database)), (task,))


def read_cc_web_video(folder: Path) -> RetrievalBenchmark:
    """Read CC_WEB_VIDEO: 24 queries, 13,129 videos.

    ``CC_WEB`` ranks the videos found with the query's keywords, ``CC_WEB*`` the videos of all queries. Labels E, S, V,
    M and L (exact, similar, version, major change, long version) are relevant.

    Args:
        folder: Folder with ``Video_List.txt``, ``Seed.txt`` and ``GT_1.rst`` to ``GT_24.rst``, which may also be in
            ``GT/``.

    Source: Wu et al., "Practical elimination of near-duplicates from web video search", ACM MM 2007.
    """
    rows = read_lines(find_file(folder, ["Video_List.txt"], _CC_WEB), 4, separator="\t")
    names = {row[0]: Path(row[3]).stem for row in rows}
    seeds = read_lines(find_file(folder, ["Seed.txt"], _CC_WEB), 2)
    positives: dict[str, frozenset[str]] = {}
    candidates: dict[str, frozenset[str]] = {}
    for number, video in (row[:2] for row in seeds):
        files = [f"GT_{number}.rst", f"GT/GT_{number}.rst"]
        truth = read_lines(find_file(folder, files, _CC_WEB), 2)
        try:
            query = names[video]
            labeled = {names[row[0]]: row[1] for row in truth}
        except KeyError as error:
            raise InvalidArgumentError(
                f"{folder}: query {number} refers to video {error}, which is not in Video_List.txt"
            ) from error
        positives[query] = frozenset(name for name, label in labeled.items() if label in _DUPLICATES) - {query}
        candidates[query] = frozenset(name for name, label in labeled.items() if label != "-1")
    tasks = (
        RetrievalTask("CC_WEB", "CC_WEB micro-AP", positives, candidates),
        RetrievalTask("CC_WEB*", "CC_WEB* micro-AP", positives),
    )
    database = tuple(sorted(set(names.values())))
    return RetrievalBenchmark("cc_web_video", tuple(sorted(positives)), database, tasks)


# VCDB, VCSL and VSC2022: segments that two videos share.


_TRANSVCL = "https://github.com/transvcl/TransVCL (label_file.json)"

_VSC = "https://github.com/facebookresearch/vsc2022"

_TIMES = ("query_start", "ref_start", "query_end", "ref_end")


def read_vcdb(folder: Path) -> RetrievalBenchmark:
    """Read VCDB: 528 videos, all of them queries; videos that share a copied segment are relevant to each other.

    Args:
        folder: Folder with ``label_file.json``: ``query-reference`` -> boxes (query start, reference start, query end,
            reference end) in seconds.

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
    """Read VCSL: labeled pairs of videos, evaluated by their segments.

    Args:
        folder: Folder with ``label_file.json``, as for :func:`read_vcdb`.

    Source: He et al., "A large-scale comprehensive dataset and copy-overlap aware evaluation protocol for segment-level
    video copy detection", CVPR 2022.
    """
    segments = {pair: boxes for pair, boxes in _label_file(folder).items() if pair[0] != pair[1]}
    queries, references = ({pair[side] for pair in segments} for side in (0, 1))
    return RetrievalBenchmark("vcsl", tuple(sorted(queries)), tuple(sorted(references)), (), segments)


def read_vsc2022(folder: Path) -> RetrievalBenchmark:
    """Read VSC2022, the Meta AI video similarity challenge: queries and references, most of them without a copy.

    Args:
        folder: Folder with ``matching_ground_truth.csv`` (or ``train_...``, ``test_...``), and with
            ``..._query_metadata.csv`` and ``..._reference_metadata.csv`` for the videos without a copy.

    Source: Pizzi et al., "The 2023 video similarity dataset and challenge", CVIU 2024.
    """
    names = [f"{part}matching_ground_truth.csv" for part in ("", "test_", "train_")]
    path = find_file(folder, names, _VSC)
    segments: dict[VideoPair, list[SegmentBox]] = defaultdict(list)
    for number, row in enumerate(read_table(path, ("query_id", "ref_id", *_TIMES)), start=2):
        try:
            first, second, third, fourth = (float(row[name]) for name in _TIMES)
        except (TypeError, ValueError) as error:  # None for a line with too few values
            raise InvalidArgumentError(f"{path}: line {number}: times must be numbers: {error}") from error
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
    path = find_file(folder, ["label_file.json"], _TRANSVCL)
    segments = {}
    for pair, boxes in read_json(path).items():
        ids = re.fullmatch(r"([^-]+)-([^-]+)", pair)
        try:
            sides = [(float(a), float(b), float(c), float(d)) for a, b, c, d in boxes]
        except (TypeError, ValueError):
            sides = None
        if ids is None or sides is None:
            raise InvalidArgumentError(f"{path}: must contain query-reference: [[q0, r0, q1, r1], ...], got {pair!r}")
        # A few published boxes are empty.
        segments[ids[1], ids[2]] = tuple(box for box in sides if box[2] > box[0] and box[3] > box[1])
    return segments


_READERS: Mapping[str, Callable[[Path], RetrievalBenchmark]] = {
    "cc_web_video": read_cc_web_video,
    "evve": read_evve,
    "fivr-200k": read_fivr_200k,
    "fivr-5k": read_fivr_5k,
    "svd": read_svd,
    "vcdb": read_vcdb,
    "vcsl": read_vcsl,
    "vsc2022": read_vsc2022,
}


def available_benchmarks() -> tuple[str, ...]:
    """Return the names that :func:`open_benchmark` accepts, sorted."""
    return tuple(sorted(_READERS))


def open_benchmark(name: str, folder: str | os.PathLike[str]) -> RetrievalBenchmark:
    """Open a benchmark from its published annotation files.

    Args:
        name: See :func:`available_benchmarks`.
        folder: Folder with the files, or with a subfolder per benchmark: ``fivr`` for both versions of FIVR, otherwise
            the benchmark's name.

    Raises:
        InvalidArgumentError: The benchmark is unknown, or a file is missing or damaged.
    """
    if name not in _READERS:
        raise InvalidArgumentError(f"dataset must be one of {', '.join(available_benchmarks())}, got {name!r}")
    root = Path(folder).expanduser()
    inner = root / name.partition("-")[0]
    return _READERS[name](inner if inner.is_dir() else root)


# Readers of annotation files, with errors that name the file and its expected content.


def find_file(folder: Path, names: Sequence[str], source: str) -> Path:
    """Return the first of these files that exists in the folder.

    Raises:
        InvalidArgumentError: None of them exists; the message names the source.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InvalidArgumentError(f"{folder}: missing {' or '.join(names)}; download it from {source}")


def read_json(path: Path) -> dict[str, Any]:
    """Read an object from a JSON file."""
    try:
        value = parse_json(read_text_file(path))
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"{path}: cannot be read as annotations: {error}") from error
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{path}: must contain an object, got {type(value).__name__}")
    return value


def read_lines(path: Path, fields: int, *, separator: str | None = None) -> list[list[str]]:
    """Read lines with at least this many fields; empty lines are skipped."""
    try:
        lines = read_text_file(path, errors="replace").splitlines()
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: cannot be read: {error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = [part.strip() for part in line.split(separator)]
        if len(row) < fields:
            raise InvalidArgumentError(
                f"{path}: line {number}: must have {fields} fields, got {len(row)}: {line.strip()[:60]!r}"
            )
        rows.append(row)
    return rows


def read_ids(path: Path) -> list[str]:
    """Read the first field of every line."""
    return [row[0] for row in read_lines(path, 1)]


def read_table(path: Path, columns: Sequence[str]) -> list[Mapping[str, str]]:
    """Read the rows of a CSV file with at least these columns."""
    try:
        reader = csv.DictReader(io.StringIO(read_text_file(path), newline=""))
        missing = set(columns) - set(reader.fieldnames or ())
        if missing:
            raise InvalidArgumentError(
                f"{path}: must have the columns {', '.join(columns)}; missing {', '.join(sorted(missing))}"
            )
        return list(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise InvalidArgumentError(f"{path}: cannot be read as a table: {error}") from error
