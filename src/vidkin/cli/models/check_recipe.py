"""``vidkin train --check``: what a recipe would train on, before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number, printable

if TYPE_CHECKING:
    from vidkin.training import Recipe, RecipePreview

__all__ = ["check_recipe"]

_PREVIEW_FILE = "first-batch.png"
# Subcategories in the table.
_MOST_ROWS = 30


def check_recipe(recipe: Recipe, folder: Path, *, json: bool) -> int:
    """Show items, labels, split and network, and draw the first batch into the folder; the number of broken items."""
    from vidkin._base.outputs import create_output_folder
    from vidkin.rendering.first_batch import draw_first_batch
    from vidkin.training import preview_recipe

    with meter("reading the first batch") as bar:
        preview = preview_recipe(recipe, on_item=bar.update)
        picture = create_output_folder(folder) / _PREVIEW_FILE
        bar.update(0, None, detail="drawing it")
        drawn = draw_first_batch(preview.batch, picture)
    if json:
        print_json(
            {
                "recipe": recipe.name,
                "data": preview.name,
                "kind": preview.kind,
                "splits": preview.splits,
                "labels": preview.labels,
                "notes": preview.notes,
                "parameters": preview.parameters,
                "dimension": preview.dimension,
                "picture": picture,
                "broken": [{"path": error.path, "cause": error.cause} for error in preview.batch.broken],
            }
        )
        return len(preview.batch.broken)
    _print_preview(preview, picture, drawn)
    return len(preview.batch.broken)


def _print_preview(preview: RecipePreview, picture: Path, drawn: int) -> None:
    recipe, batch = preview.recipe, preview.batch
    splits = ", ".join(f"{count:,} {name}" for name, count in preview.splits.items())
    items = f"{printable(preview.name)}: {number(sum(preview.splits.values()), 'item')} ({preview.kind})"
    if preview.labels:
        categories = {label.category for label in preview.labels}
        say(
            f"{items}, {number(len(categories), 'category', 'categories')}, "
            f"{number(len(preview.labels), 'subcategory', 'subcategories')}; {splits}"
        )
        # Zeros are left out, so that a part without items has no column.
        rows = [
            [
                printable(label.category),
                printable(label.subcategory),
                *(f"{count:,}" if count else "" for count in (label.train, label.validation, label.test)),
            ]
            for label in preview.labels[:_MOST_ROWS]
        ]
        columns = [("category", "left"), ("subcategory", "left")]
        columns += [(name, "right") for name in ("train", "validation", "test")]
        table(None, columns, rows)
        if len(preview.labels) > len(rows):
            more = number(len(preview.labels) - len(rows), "more subcategory", "more subcategories")
            note(f"{more} not shown; --json lists all.")
    else:
        say(f"{items}, no labels; {splits}")
    if recipe.data.excerpts > 1:
        say(f"Each training video becomes {recipe.data.excerpts} excerpts (data.excerpts).")
    vectors = "descriptors" if recipe.is_comparator else "embeddings"
    objectives = " + ".join(part.name for part in recipe.objectives)
    schedule = f"{number(recipe.schedule.steps, 'step')} of {number(len(batch.items), 'item')}"
    network = recipe.model.get("extractor" if recipe.is_comparator else "backbone")
    on = "" if recipe.model["kind"] == "frame_encoder" else f" on {network}"
    say(
        f"{recipe.model['kind']}{on}, {preview.parameters:,} weights to train, {vectors} of "
        f"{preview.dimension} values; {objectives}, {schedule}"
    )
    rules = recipe.validation
    say(f"Validation: {rules.measure}, every {rules.every} steps" if rules.every else "No validation")
    for text in preview.notes:
        note(f"Note: {text}", style="yellow")
    for error in batch.broken:
        note(f"Cannot be read: {error}", style="yellow")
    say(path_text(picture).append(f": {drawn} of the {number(len(batch.items), 'item')} of the first batch"))
    note("Nothing was trained. The same command without --check trains.")
