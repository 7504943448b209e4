"""Figures of models and of shot detectors as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.shots import DetectorEvaluation
    from vidkin.training import ClassifierEvaluation, Evaluation


@dataclass(frozen=True, slots=True)
class MeasureTable:
    """Some figures as a table.

    Attributes:
        title: Line above the table; empty for none.
        headings: Heading of each column; all but the first have numbers.
        rows: Cells of each row.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


_TITLES = {
    "qp": "QP, all test quadlets",
    "qp_sampled": "QP, 15,000 test quadlets",
    "tp": "TP, all test quadlets",
    "tp_sampled": "TP, 15,000 test quadlets",
    "qp_gallery": "QP, all gallery quadlets",
    "tp_gallery": "TP, all gallery quadlets",
    "ndcg": "NDCG",
    "map": "mAP, category",
    "map_subcategory": "mAP, subcategory",
    "hap": "hierarchical AP",
    "asi": "average set intersection",
    "recall_at_1": "recall@1, subcategory",
    "recall_at_5": "recall@5, subcategory",
    "recall_at_10": "recall@10, subcategory",
    "r_precision": "R-precision, subcategory",
}


def tabulate_evaluation(evaluation: Evaluation) -> MeasureTable:
    """Every measure of a model that orders labeled data; ``-`` for one that the data cannot give."""
    missing = evaluation.missing
    rows = [(title, "-" if name in missing else f"{getattr(evaluation, name):.4f}") for name, title in _TITLES.items()]
    return MeasureTable(evaluation.data, ("measure", "value"), rows)


def describe_missing_measures(evaluation: Evaluation) -> Iterator[str]:
    """Say why measures are missing: one sentence a reason."""
    missing = evaluation.missing
    for reason in dict.fromkeys(missing.values()):
        names = [title.split(",")[0] for name, title in _TITLES.items() if missing.get(name) == reason]
        yield f"No {', '.join(dict.fromkeys(names))}: {reason}."


def describe_ranking(evaluation: Evaluation) -> str:
    """Say how many queries and items were ranked, and from which splits."""
    return (
        f"{number(evaluation.queries, 'query', 'queries')} ({evaluation.query_split}), "
        f"{number(evaluation.gallery, 'item')} in the gallery ({evaluation.gallery_split}), "
        f"{number(evaluation.quadlets, 'test quadlet')}"
    )


def tabulate_classifier(evaluation: ClassifierEvaluation) -> Iterator[MeasureTable]:
    """Accuracy, retrieval with both layers, and the accuracy of each class."""
    shares = (("top-1 (micro accuracy)", evaluation.top_1), ("macro accuracy", evaluation.macro))
    rows = [(name, f"{value:.4f}") for name, value in shares]
    yield MeasureTable(evaluation.data, ("classification", "share"), rows)
    layers = (evaluation.embedding, evaluation.penultimate)
    figures = {f"recall@{k}, test items": [layer.recalls[k] for layer in layers] for k in evaluation.embedding.recalls}
    figures["class of the nearest training item"] = [layer.nearest_label for layer in layers]
    figures["NMI of k-means"] = [layer.nmi for layer in layers]
    lines = [(name, *(f"{value:.4f}" for value in values)) for name, values in figures.items()]
    yield MeasureTable("", ("retrieval", "embedding", "penultimate layer"), lines)
    classes = [(name, str(count), f"{share:.4f}") for name, (count, share) in evaluation.per_class.items()]
    yield MeasureTable("", ("class", "items", "accuracy"), classes)


def describe_errors(evaluation: ClassifierEvaluation) -> str:
    """Say how many items are classified wrongly, and how many of them look like the predicted class."""
    if not evaluation.wrong:
        return ""
    return (
        f"{number(evaluation.wrong, 'item')} of {evaluation.items} are classified wrongly; for "
        f"{100 * evaluation.explained:.0f} % of them the nearest training item has the predicted class."
    )


def tabulate_detector(evaluation: DetectorEvaluation) -> MeasureTable:
    """Precision, recall and F1 of a shot detector for each kind of cut that is labeled or was found."""
    kinds = {
        "cuts, of any kind": evaluation.cuts,
        "hard cuts": evaluation.hard,
        "gradual transitions": evaluation.gradual,
        "critical clips": evaluation.critical,
    }
    rows = [
        (
            name,
            *(f"{value:.4f}" for value in (scores.precision, scores.recall, scores.f1)),
            *map(str, (scores.true_positives, scores.false_positives, scores.false_negatives)),
        )
        for name, scores in kinds.items()
        if scores is not None and scores != type(scores)(0, 0, 0)
    ]
    tolerance = f"within {number(evaluation.tolerance, 'frame')}"
    headings = (tolerance, "precision", "recall", "F1", "right", "false", "missed")
    return MeasureTable(f"{evaluation.detector}, {number(len(evaluation.videos), 'video')}", headings, rows)
