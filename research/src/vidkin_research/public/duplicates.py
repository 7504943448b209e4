"""SVD and CC_WEB_VIDEO: near-duplicate videos."""

from __future__ import annotations

from pathlib import Path

from vidkin.errors import InvalidArgumentError
from vidkin_research.public.benchmark import RetrievalBenchmark, RetrievalTask
from vidkin_research.public.files import find_file, read_ids, read_lines

__all__ = ["read_cc_web_video", "read_svd"]

_SVD = "https://svdbase.github.io"
_CC_WEB = "http://vireo.cs.cityu.edu.hk/webvideo/"
_DUPLICATES = frozenset("ESVML")


def read_svd(folder: Path) -> RetrievalBenchmark:
    """SVD: 206 queries with labeled pairs, and unlabeled distractors.

    Args:
        folder: With ``test_groundtruth`` (query, video, 1 or 0 in a line), and ``unlabeled-data-id`` if the videos
            without labels are searched, too.

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
    """CC_WEB_VIDEO: 24 queries, 13,129 videos.

    ``CC_WEB`` ranks the videos that were found for the query's words, ``CC_WEB*`` those of all queries. Labels E, S, V,
    M and L (exact, similar, version, major change, long version) are relevant.

    Args:
        folder: With ``Video_List.txt``, ``Seed.txt`` and ``GT_1.rst`` to ``GT_24.rst``, the latter also in ``GT/``.

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
                f"{folder}: query {number} names the video {error}, which Video_List.txt does not have"
            ) from error
        positives[query] = frozenset(name for name, label in labeled.items() if label in _DUPLICATES) - {
            query
        }
        candidates[query] = frozenset(name for name, label in labeled.items() if label != "-1")
    tasks = (
        RetrievalTask("CC_WEB", "CC_WEB micro-AP", positives, candidates),
        RetrievalTask("CC_WEB*", "CC_WEB* micro-AP", positives),
    )
    database = tuple(sorted(set(names.values())))
    return RetrievalBenchmark("cc_web_video", tuple(sorted(positives)), database, tasks)
