"""``vidkin benchmark``: methods compared on public collections or on your own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vidkin.cli.lazy import LazyCommand, LazyGroup, new_app

__all__ = ["app"]


class _Benchmarks(LazyGroup):
    built_in: ClassVar[Mapping[str, LazyCommand]] = {
        "copies": LazyCommand(
            "vidkin.cli.benchmark.copies:copies",
            "Edit your videos in many ways, search for the copies, and report which are found.",
        ),
    }
    path = "benchmark."
    researched = True


app = new_app("benchmark", _Benchmarks)


@app.callback()
def benchmark() -> None:
    """Compare methods on the same data; each report states what they share and what was scaled down."""
