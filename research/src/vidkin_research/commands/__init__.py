"""Commands that vidkin-research brings: where each is, and its line in the help; imports none of them."""

from vidkin.cli.commands import LazyCommand

__all__ = ["CRITICAL", "FGIR", "FGVR", "FIT", "IMAGES", "LOSSES", "RETRIEVAL", "SHOTS", "SOCCERNET"]

FGVR = LazyCommand(
    "vidkin_research.commands.retrieval:fgvr",
    "Compare retrieval losses on labeled videos: QP, NDCG, TP and MAP.",
)
FGIR = LazyCommand(
    "vidkin_research.commands.retrieval:fgir",
    "Compare retrieval losses on labeled images: QP, NDCG, TP and MAP.",
)
RETRIEVAL = LazyCommand(
    "vidkin_research.commands.public:retrieval",
    "Measure retrieval on a public benchmark, next to published figures.",
)
LOSSES = LazyCommand(
    "vidkin_research.commands.losses:losses",
    "Train video comparators without labels, one per loss, and measure them on other videos.",
)
IMAGES = LazyCommand(
    "vidkin_research.commands.images:images",
    "Compare classical features, network features and trained models on labeled images.",
)
FIT = LazyCommand(
    "vidkin_research.commands.fit:fit",
    "Fit a classical feature to your own pictures, or learn one from their labels.",
)
SHOTS = LazyCommand(
    "vidkin_research.commands.shots:shots",
    "Compare shot detectors: published peers, the default, and detectors trained with each loss.",
)
CRITICAL = LazyCommand(
    "vidkin_research.commands.critical:critical",
    "Measure how well the trend of a learned distance tells shots in which something happens.",
)
SOCCERNET = LazyCommand(
    "vidkin_research.commands.labels:soccernet",
    "Turn the labels of SoccerNet-v2 games into labels for `vidkin train-shots`.",
)
