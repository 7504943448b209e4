"""Locations and help lines of the commands in vidkin-research, which are not imported here."""

from vidkin.cli.commands import LazyCommand

__all__ = ["BENCHMARK", "FIT", "LABELS", "TRAIN_SHOTS"]

BENCHMARK = LazyCommand(
    "vidkin_research.commands.groups:benchmark_app",
    "Compare methods on the same data; each report states what they share and what was scaled down.",
    "Learn",
)
FIT = LazyCommand(
    "vidkin_research.commands.fit:fit",
    "Fit a classical feature to your own images, or learn one from their labels.",
    "Learn",
)
LABELS = LazyCommand(
    "vidkin_research.commands.groups:labels_app",
    "Make shot labels for `vidkin train-shots`: from several annotators, or from public collections.",
    "Learn",
)
TRAIN_SHOTS = LazyCommand(
    "vidkin_research.commands.train_shots:train_shots",
    "Train a detector on labeled shots: a metric with a rule on its curve, or DeepSBD.",
    "Learn",
)
