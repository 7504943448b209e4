"""Evaluation results of models and shot detectors as tables and sentences."""

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
    """A table of evaluation measures.

    Attributes:
        title: Line above the table; may be empty.
        headings: Column headings; all columns but the first contain numbers.
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
    """Tabulate all measures of a model that ranks labeled data; ``-`` if the data does not allow a measure."""
    missing = evaluation.missing
    rows = [(title, "-" if name in missing else f"{getattr(evaluation, name):.4f}") for name, title in _TITLES.items()]
    return MeasureTable(evaluation.data, ("measure", "value"), rows)


def describe_missing_measures(evaluation: Evaluation) -> Iterator[str]:
    """Explain why measures are missing, with one sentence per reason."""
    missing = evaluation.missing
    for reason in dict.fromkeys(missing.values()):
        names = [title.split(",")[0] for name, title in _TITLES.items() if missing.get(name) == reason]
        yield f"No {', '.join(dict.fromkeys(names))}: {reason}."


def describe_ranking(evaluation: Evaluation) -> str:
    """Describe how many queries and gallery items were ranked, and from which splits."""
    return (
        f"{number(evaluation.queries, 'query', 'queries')} ({evaluation.query_split}), "
        f"{number(evaluation.gallery, 'item')} in the gallery ({evaluation.gallery_split}), "
        f"{number(evaluation.quadlets, 'test quadlet')}"
    )


def tabulate_classifier(evaluation: ClassifierEvaluation) -> Iterator[MeasureTable]:
    """Yield tables of the overall accuracy, retrieval with both layers, and accuracy per class."""
    accuracies = (("top-1 (micro accuracy)", evaluation.top_1), ("macro accuracy", evaluation.macro))
    rows = [(name, f"{value:.4f}") for name, value in accuracies]
    yield MeasureTable(evaluation.data, ("classification", "value"), rows)
    layers = (evaluation.embedding, evaluation.penultimate)
    measures = {f"recall@{k}, test items": [layer.recalls[k] for layer in layers] for k in evaluation.embedding.recalls}
    measures["class of the nearest training item"] = [layer.nearest_label for layer in layers]
    measures["NMI of k-means"] = [layer.nmi for layer in layers]
    lines = [(name, *(f"{value:.4f}" for value in values)) for name, values in measures.items()]
    yield MeasureTable("", ("retrieval", "embedding", "penultimate layer"), lines)
    classes = [(name, str(count), f"{accuracy:.4f}") for name, (count, accuracy) in evaluation.per_class.items()]
    yield MeasureTable("", ("class", "items", "accuracy"), classes)


def describe_errors(evaluation: ClassifierEvaluation) -> str:
    """Describe how many items are misclassified, and how many of them resemble the predicted class."""
    if not evaluation.wrong:
        return ""
    return (
        f"{evaluation.wrong} of {number(evaluation.items, 'item')} misclassified; for "
        f"{100 * evaluation.explained:.0f} % of these, the nearest training item has the predicted class."
    )


def tabulate_detector(evaluation: DetectorEvaluation) -> MeasureTable:
    """Tabulate precision, recall and F1 of a shot detector for each kind of cut that was labeled or detected."""
    kinds = {
        "all cuts": evaluation.cuts,
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
    headings = (tolerance, "precision", "recall", "F1", "correct", "false", "missed")
    return MeasureTable(f"{evaluation.detector}, {number(len(evaluation.videos), 'video')}", headings, rows)
