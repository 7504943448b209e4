"""Number of requests and bytes that a search needs for an index on object storage, counted by a local server.

    python research/benchmarks/object_requests.py FOLDER [--queries 5]

The folder is indexed at an address of that server. Then each query, a video of the folder, is searched with a newly
opened handle, and again with the same handle.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, os.fspath(Path(__file__).resolve().parents[2]))

from scale.tests.s3_server import S3Server, serve_s3

from vidkin.index import Index, SerialExecutor

_INDEX = "s3://bucket/films"


def main() -> None:
    """Print a line for each step: number of requests of each kind, and kilobytes read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--extractor", default="classical")
    given = parser.parse_args()
    with serve_s3("bucket") as server:
        os.environ.update(server.environment())
        index = Index.open(_INDEX, extractor=given.extractor, create=True)
        server.reset_counts()
        report = index.add(given.folder, executor=SerialExecutor(index.worker_spec))
        _print(server, f"index {len(report.added)} videos")
        index.add(given.folder, executor=SerialExecutor(index.worker_spec))
        _print(server, "index them again")
        index.close()
        for what in ("open", "search, just opened", "search again"):
            _measure(server, what, [item.path for item in report.added[: given.queries]])


def _measure(server: S3Server, what: str, queries: list[str]) -> None:
    counts, sent = [], []
    for query in queries:
        server.reset_counts()
        with Index.open(_INDEX, read_only=True) as index:
            if what != "open":
                server.reset_counts()
                index.search(query)
            if what == "search again":
                server.reset_counts()
                index.search(query)
            counts.append(dict(server.counts))
            sent.append(server.sent)
    middle = sorted(range(len(queries)), key=lambda place: sent[place])[len(queries) // 2]
    server.counts.clear()
    server.counts.update(counts[middle])
    server.sent = round(statistics.median(sent))
    _print(server, f"{what} (median of {len(queries)})")


def _print(server: S3Server, what: str) -> None:
    kinds = ", ".join(f"{server.counts[kind]} {kind}" for kind in ("GET", "HEAD", "LIST", "PUT", "DELETE"))
    print(f"{what}: {kinds}, {server.sent / 1000:.1f} kB read")
    server.reset_counts()


if __name__ == "__main__":
    main()
