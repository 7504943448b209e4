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
            "Measure retrieval on a public benchmark, with published figures beside.",
        ),
        "copies": LazyCommand(
            "vidkin.cli.benchmark.copies:copies",
            "Edit your videos in every way, search for the copies, and say what is found.",
        ),
        "losses": LazyCommand(
            "vidkin.cli.benchmark.losses:losses",
            "Train comparators of videos without labels, each with another loss, and measure them on other videos.",
        ),
        "images": LazyCommand(
            "vidkin.cli.benchmark.images:images",
            "Compare classical features, features of networks and trained models on images with labels.",
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
    """Compare methods on the same data; each page says what they have in common, and what is reduced."""
