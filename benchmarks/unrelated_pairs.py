"""How high unrelated videos score: every video of some folders searched for in an index of others.

    python benchmarks/unrelated_pairs.py --queries FOLDER... --videos FOLDER... --work FOLDER \
        [--extractor NAME] [--output docs/results/unrelated_pairs.json]

The two sides must have nothing in common. Every pair is scored (the first stage lets all candidates pass), plain and
mirrored. The work folder keeps the index and what was searched, so that a run that was killed goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.index import Index
from vidkin.rendering.machine import describe_machine

# A match is believed from this score on.
BELIEVED = 0.2
STEPS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
LISTED = 10


def videos_in(folders: list[Path]) -> list[Path]:
    """The videos of some folders and their subfolders, in the order of their paths."""
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in VIDEO_EXTENSIONS)


def search_all(index: Index, queries: list[Path], log: Path) -> list[dict[str, object]]:
    """A line for each query, with the scores above zero by name; lines of an earlier run are not made again."""
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {row["query"] for row in rows}
    with log.open("a", encoding="utf-8") as lines:
        for query in queries:
            if str(query) in known:
                continue
            started = time.process_time()
            matches = index.search(query, limit=len(index), candidates=len(index))
            scores = {match.path: round(match.score, 4) for match in matches if match.score > 0}
            row = {"query": str(query), "seconds": time.process_time() - started, "scores": scores}
            lines.write(json.dumps(row) + "\n")
            lines.flush()
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=Path, nargs="+", required=True)
    parser.add_argument("--videos", type=Path, nargs="+", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--extractor", default="vidkin")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    queries, videos = videos_in(given.queries), videos_in(given.videos)
    with Index.open(given.work / f"{given.extractor}.vidkin", extractor=given.extractor, create=True) as index:
        index.add(videos)
        rows = search_all(index, queries, given.work / f"{given.extractor}.jsonl")
        size = len(index)
    scored = [
        (score, Path(row["query"]).name, Path(name).name) for row in rows for name, score in row["scores"].items()
    ]
    scored.sort(reverse=True)
    pairs = len(rows) * size
    report = {
        "machine": describe_machine(),
        "extractor": given.extractor,
        "queries": len(rows),
        "videos": size,
        "pairs": pairs,
        "at or above": {str(step): sum(score >= step for score, _, _ in scored) for step in STEPS},
        "highest": [{"score": score, "query": query, "video": video} for score, query, video in scored[:LISTED]],
        "seconds a query": sorted(row["seconds"] for row in rows)[len(rows) // 2],
    }
    print(json.dumps(report, indent=1))
    if given.output:
        given.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
