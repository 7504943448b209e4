"""The command groups `vidkin benchmark` and `vidkin labels`; their help does not import the commands."""

from collections.abc import Mapping
from typing import ClassVar

from vidkin.cli.commands import LazyCommand, LazyGroup, new_app


class _Benchmarks(LazyGroup):
    built_in: ClassVar[Mapping[str, LazyCommand]] = {
        "copies": LazyCommand(
            "vidkin_research.commands.copies:copies",
            "Edit your videos in many ways, search for the copies, and report which are found.",
        ),
        "fgvr": LazyCommand(
            "vidkin_research.commands.retrieval:fgvr",
            "Compare retrieval losses on labeled videos: QP, NDCG, TP and MAP.",
        ),
        "fgir": LazyCommand(
            "vidkin_research.commands.retrieval:fgir",
            "Compare retrieval losses on labeled images: QP, NDCG, TP and MAP.",
        ),
        "retrieval": LazyCommand(
            "vidkin_research.commands.public:retrieval",
            "Evaluate retrieval on a public benchmark and compare with published results.",
        ),
        "losses": LazyCommand(
            "vidkin_research.commands.losses:losses",
            "Train video comparators without labels, one per loss, and evaluate them on other videos.",
        ),
        "images": LazyCommand(
            "vidkin_research.commands.images:images",
            "Compare classical features, network features and trained models on labeled images.",
        ),
        "shots": LazyCommand(
            "vidkin_research.commands.shots:shots",
            "Compare shot detectors: published methods, the default, and detectors trained with each loss.",
        ),
        "critical": LazyCommand(
            "vidkin_research.commands.critical:critical",
            "Measure how well trends in a learned distance detect shots in which something happens.",
        ),
        "table": LazyCommand(
            "vidkin_research.commands.tables:make_table",
            "Reproduce a table from a paper at its published size, or show its requirements.",
        ),
    }


benchmark_app = new_app("benchmark", _Benchmarks)


@benchmark_app.callback()
def benchmark() -> None:
    """Compare methods on the same data. Each report lists the shared settings and what was scaled down."""


class _Labels(LazyGroup):
    built_in: ClassVar[Mapping[str, LazyCommand]] = {
        "merge": LazyCommand(
            "vidkin_research.commands.labels:merge", "Merge the labels of several annotators into one file."
        ),
        "soccernet": LazyCommand(
            "vidkin_research.commands.labels:soccernet",
            "Convert the labels of SoccerNet-v2 games to labels for `vidkin train-shots`.",
        ),
    }


labels_app = new_app("labels", _Labels)


@labels_app.callback()
def labels() -> None:
    """Create shot labels for `vidkin train-shots` from several annotators or a public collection."""
