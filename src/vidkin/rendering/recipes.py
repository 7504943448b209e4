"""A recipe's data and the results of a training run, as text and table cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vidkin.rendering.text import number, percent, printable

if TYPE_CHECKING:
    from vidkin.training import Recipe, RecipePreview, TrainingReport

LABEL_COLUMNS = (
    *(("category", "left"), ("subcategory", "left")),
    *(("train", "right"), ("validation", "right"), ("test", "right")),
)
"""Heading and alignment of each column of :func:`label_cells`."""


def describe_items(preview: RecipePreview) -> str:
    """Count the items and their labels: ``pictures: 48 items (image), 3 categories, 6 subcategories; 24 train, ...``"""
    labels = preview.labels
    splits = ", ".join(f"{count:,} {name}" for name, count in preview.splits.items())
    counts = [f"{printable(preview.name)}: {number(sum(preview.splits.values()), 'item')} ({preview.kind})"]
    if labels:
        counts.append(number(len({label.category for label in labels}), "category", "categories"))
        counts.append(number(len(labels), "subcategory", "subcategories"))
    else:
        counts.append("no labels")
    return f"{', '.join(counts)}; {splits}"


def label_cells(preview: RecipePreview) -> Iterator[tuple[str, ...]]:
    """Yield the number of items of each subcategory in each split; zeros are left empty, so that the column of an empty
    split can be dropped."""
    for label in preview.labels:
        counts = (f"{count:,}" if count else "" for count in (label.train, label.validation, label.test))
        yield (printable(label.category), printable(label.subcategory), *counts)


def describe_training(preview: RecipePreview) -> Iterator[str]:
    """Yield sentences about the excerpts, network, objectives, steps and validation of a recipe."""
    recipe = preview.recipe
    if recipe.data.excerpts > 1:
        yield f"Each training video is split into {recipe.data.excerpts} excerpts (data.excerpts)."
    vectors, key = ("descriptors", "extractor") if recipe.is_comparator else ("embeddings", "backbone")
    base = "" if recipe.model["kind"] == "frame_encoder" else f" on {recipe.model.get(key)}"
    objectives = " + ".join(part.name for part in recipe.objectives)
    schedule = f"{number(recipe.schedule.steps, 'step')} of {number(len(preview.batch.items), 'item')}"
    yield (
        f"{recipe.model['kind']}{base}, {preview.parameters:,} trainable parameters, {preview.dimension}-dimensional "
        f"{vectors}; {objectives}, {schedule}"
    )
    rules = recipe.validation
    yield f"Validation: {rules.measure}, every {rules.every} steps" if rules.every else "No validation"


def report_cells(report: TrainingReport, recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield the loss terms of the last steps and the best validation result."""
    for name, value in report.terms.items():
        yield name, f"{value:.4f}"
    if report.best is not None:
        is_accuracy = recipe.model.get("kind") == "two_head"
        best = f"{percent(report.best)} %" if is_accuracy else f"{report.best:.4f}"
        yield f"validation {report.measure}, step {report.best_step}", best


def describe_report(report: TrainingReport) -> str:
    """Describe the number of training steps, and whether training was resumed or stopped early."""
    stopped = " (stopped early: validation did not improve)" if report.stopped_early else ""
    resumed = f", {report.resumed_from} of them in an earlier run" if report.resumed_from else ""
    return f"{number(report.steps, 'step')}{resumed}{stopped}"
