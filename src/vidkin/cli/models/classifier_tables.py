"""The evaluation of a classifier with an embedding head on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vidkin.cli.console import error_line, meter, note, path_text, say, table
from vidkin.cli.exit import Status
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.datasets import LabelledSet
    from vidkin.training import ClassifierEvaluation

__all__ = ["show_classifier"]


def show_classifier(
    model: Path,
    labelled: LabelledSet,
    *,
    queries: str,
    gallery: str,
    pictures: Path | None,
    seed: int,
    json: bool,
) -> None:
    """Evaluate a model of kind ``two_head`` and print its tables; arguments as of ``vidkin evaluate``."""
    from vidkin._base.outputs import create_output_folder
    from vidkin.models import TwoHeadNetwork, load_model
    from vidkin.training import describe_splits, evaluate_classifier

    if pictures is not None:
        create_output_folder(pictures)
    network = load_model(model)
    assert isinstance(network, TwoHeadNetwork)
    cache = model / "features"
    with meter("evaluating") as bar:
        parts = describe_splits(
            network,
            labelled,
            query_split=queries,
            gallery_split=gallery,
            cache=cache if cache.is_dir() else None,
            threads=2,
            on_item=lambda done, total: bar.update(done, total, detail="items read"),
        )
        evaluation = evaluate_classifier(parts, seed=seed)
        drawn: tuple[Path, ...] = ()
        if pictures is not None:
            from vidkin.rendering.classifier.pictures import draw_classifier

            bar.update(0, None, detail="drawing")
            drawn = draw_classifier(parts, pictures, seed=seed)
    if json:
        print_json({"model": model, "pictures": drawn, **evaluation.to_dict()})
    else:
        _print_classifier(evaluation)
        for path in drawn:
            say(path_text(path))
    for file, cause in evaluation.broken:
        error_line(f"{file}: {cause}")
    if evaluation.broken:
        raise typer.Exit(Status.SOME_FAILED)


def _print_classifier(evaluation: ClassifierEvaluation) -> None:
    rows = [["top-1 (micro accuracy)", evaluation.top_1], ["macro accuracy", evaluation.macro]]
    table(
        evaluation.data,
        [("classification", "left"), ("", "right")],
        [[str(name), f"{value:.4f}"] for name, value in rows],
    )
    layers = (evaluation.embedding, evaluation.penultimate)
    lines = [
        [f"recall@{k}, test items", *(f"{layer.recalls[k]:.4f}" for layer in layers)]
        for k in evaluation.embedding.recalls
    ]
    lines.append(["class of the nearest training item", *(f"{layer.nearest_label:.4f}" for layer in layers)])
    lines.append(["NMI of k-means", *(f"{layer.nmi:.4f}" for layer in layers)])
    table("", [("retrieval", "left"), ("embedding", "right"), ("penultimate layer", "right")], lines)
    table(
        "",
        [("class", "left"), ("items", "right"), ("accuracy", "right")],
        [[name, str(count), f"{share:.4f}"] for name, (count, share) in evaluation.per_class.items()],
    )
    if evaluation.wrong:
        note(
            f"{number(evaluation.wrong, 'item')} of {evaluation.items} are classified wrongly; for "
            f"{100 * evaluation.explained:.0f} % of them the nearest training item has the predicted class."
        )
