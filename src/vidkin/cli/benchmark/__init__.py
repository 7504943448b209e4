"""``vidkin benchmark``: methods compared on public collections or on your own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vidkin.cli.lazy import LazyCommand, LazyGroup, new_app

__all__ = ["app"]


class _Benchmarks(LazyGroup):
    table: ClassVar[Mapping[str, LazyCommand]] = {
        "fgvr": LazyCommand(
            "vidkin.cli.benchmark.retrieval:fgvr",
            "Compare retrieval losses on labeled videos: QP, NDCG, TP and MAP.",
        ),
        "fgir": LazyCommand(
            "vidkin.cli.benchmark.retrieval:fgir",
            "Compare retrieval losses on labeled images: QP, NDCG, TP and MAP.",
        ),
        "retrieval": LazyCommand(
            "vidkin.cli.benchmark.public:retrieval",
            "Measure retrieval on a public benchmark, next to published figures.",
        ),
        "copies": LazyCommand(
            "vidkin.cli.benchmark.copies:copies",
            "Edit your videos in many ways, search for the copies, and report which are found.",
        ),
        "losses": LazyCommand(
            "vidkin.cli.benchmark.losses:losses",
            "Train video comparators without labels, one per loss, and measure them on other videos.",
        ),
        "images": LazyCommand(
            "vidkin.cli.benchmark.images:images",
            "Compare classical features, network features and trained models on labeled images.",
        ),
        "shots": LazyCommand(
            "vidkin.cli.benchmark.shots:shots",
            "Compare shot detectors: published peers, the default, and detectors trained with each loss.",
        ),
        "critical": LazyCommand(
            "vidkin.cli.benchmark.critical:critical",
            "Measure how well the trend of a learned distance tells shots in which something happens.",
        ),
    }


app = new_app("benchmark", _Benchmarks)


@app.callback()
def benchmark() -> None:
    """Compare methods on the same data; each report states what they share and what was scaled down."""
