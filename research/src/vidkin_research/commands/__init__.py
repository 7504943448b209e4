"""Import paths and help lines of the vidkin-research commands, so that listing them imports nothing."""

from vidkin.cli.commands import LazyCommand

__all__ = ["BENCHMARK", "FIT", "LABELS", "TRAIN_SHOTS"]

BENCHMARK = LazyCommand(
    "vidkin_research.commands.groups:benchmark_app",
    "Compare methods on the same data. Each report lists the shared settings and what was scaled down.",
    "Learn",
)
FIT = LazyCommand(
    "vidkin_research.commands.fit:fit",
    "Fit a classical feature to your own images, or learn one from their labels.",
    "Learn",
)
LABELS = LazyCommand(
    "vidkin_research.commands.groups:labels_app",
    "Create shot labels for `vidkin train-shots` from several annotators or a public collection.",
    "Learn",
)
TRAIN_SHOTS = LazyCommand(
    "vidkin_research.commands.train_shots:train_shots",
    "Train a shot detector on labeled shots: a learned metric with a fitted rule, or DeepSBD.",
    "Learn",
)
