"""FIVR and EVVE: videos of incidents and events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vidkin.errors import InvalidArgumentError
from vidkin_research.public.benchmark import RetrievalBenchmark, RetrievalTask
from vidkin_research.public.files import find_file, read_ids, read_json

__all__ = ["read_evve", "read_fivr_5k", "read_fivr_200k"]

_FIVR = "https://github.com/MKLab-ITI/FIVR-200K"
_EVVE = "http://pascal.inrialpes.fr/data/evve/ (as JSON with annotation, queries and database)"
# Near duplicate, duplicate scene, complementary scene, incident scene: each task takes one more.
_LABELS = ("ND", "DS", "CS", "IS")
_TASKS = {"DSVR": 2, "CSVR": 3, "ISVR": 4}


def read_fivr_200k(folder: Path) -> RetrievalBenchmark:
    """FIVR-200K: 100 queries, 225,960 videos.

    Args:
        folder: With ``annotation.json`` and ``fivr-200k-ids.txt`` (or ``youtube_ids.txt``).

    Source: Kordopatis-Zilos et al., "FIVR: Fine-grained incident video retrieval", IEEE TMM 2019.
    """
    labels = read_json(find_file(folder, ["annotation.json"], _FIVR))
    ids = read_ids(find_file(folder, ["fivr-200k-ids.txt", "youtube_ids.txt"], _FIVR))
    return _fivr("fivr-200k", labels, sorted(labels), ids)


def read_fivr_5k(folder: Path) -> RetrievalBenchmark:
    """FIVR-5K: 50 of the queries, 5,000 of the videos.

    Args:
        folder: With ``annotation.json``, ``fivr-5k-queries.txt`` and ``fivr-5k-database.txt``.
    """
    labels = read_json(find_file(folder, ["annotation.json"], _FIVR))
    queries, database = (
        read_ids(find_file(folder, [f"fivr-5k-{what}.txt"], "https://github.com/dun933/3D-CSL"))
        for what in ("queries", "database")
    )
    return _fivr("fivr-5k", labels, queries, database)


def read_evve(folder: Path) -> RetrievalBenchmark:
    """EVVE: 13 events, 620 queries, 2,373 videos.

    Args:
        folder: With ``evve.json``: ``annotation`` (event -> queries, positives, null), ``queries``, ``database``.

    Source: Revaud et al., "Event retrieval in large video collections with circulant temporal encoding", CVPR 2013.
    """
    path = find_file(folder, ["evve.json"], _EVVE)
    document = read_json(path)
    try:
        events = {event: (set(parts[0]), set(parts[1])) for event, parts in document["annotation"].items()}
        queries, database = (sorted(set(document[name])) for name in ("queries", "database"))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{path}: must hold annotation, queries and database: {error!r}"
        ) from error
    groups = {query: event for event, (asked, _) in events.items() for query in asked}
    positives = {query: frozenset(events[groups[query]][1] - {query}) for query in queries if query in groups}
    task = RetrievalTask("mAP", "micro-AP", positives)
    return RetrievalBenchmark(
        "evve", tuple(queries), tuple(database), (task,), groups=groups, has_trapezoids=True
    )


def _fivr(name: str, labels: dict[str, Any], queries: list[str], database: list[str]) -> RetrievalBenchmark:
    unknown = sorted(set(queries) - set(labels))
    if unknown:
        raise InvalidArgumentError(f"{name}: annotation.json has no labels of query {unknown[0]}")
    tasks = []
    for task, count in _TASKS.items():
        positives = {}
        for query in queries:
            try:
                videos = frozenset(
                    video for label in _LABELS[:count] for video in labels[query].get(label, ())
                )
            except (AttributeError, TypeError) as error:
                raise InvalidArgumentError(
                    f"{name}: annotation.json must hold lists of videos by label, got something else of query {query}"
                ) from error
            positives[query] = videos - {query}  # one published query is in its own list
        tasks.append(RetrievalTask(task, task[:-1] + "D", positives))
    return RetrievalBenchmark(name, tuple(sorted(queries)), tuple(sorted(set(database))), tuple(tasks))
