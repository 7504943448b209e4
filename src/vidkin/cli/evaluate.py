"""``vidkin evaluate`` and ``vidkin classify``: how good a trained model is, and the class of files with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin._base.outputs import check_free, describe_source
from vidkin.cli.commands import source_of
from vidkin.cli.console import end_with_failures, meter, note, print_data, table, wrote
from vidkin.cli.options import (
    JsonFormat,
    JsonOption,
    check_output,
    list_media,
    parse_setting,
    rare_option,
    toml_or_text,
)
from vidkin.errors import InvalidArgumentError
from vidkin.rendering import evaluation as figures

if TYPE_CHECKING:
    from vidkin.datasets import LabelledSet
    from vidkin.training import ClassifierEvaluation, Evaluation

_OF_MODELS = ("reader", "options", "split", "queries", "gallery", "output", "seed")


def measure_model(
    model: Path,
    labelled: LabelledSet,
    *,
    queries: str = "test",
    gallery: str = "train",
    picture: Path | None = None,
    seed: int = 0,
    on_item: Callable[[int, int], None],
) -> tuple[Evaluation | ClassifierEvaluation, tuple[Path, ...]]:
    """The figures of a model and what was drawn; arguments as of ``vidkin evaluate``."""
    from vidkin.models import TwoHeadNetwork, load_model, read_model_info
    from vidkin.training import describe_splits, evaluate_classifier
    from vidkin.training import evaluate as evaluate_model

    source = describe_source("pictures", model)
    if picture is not None and read_model_info(model).config.kind == "two_head":
        from vidkin._base.files import create_output_folder
        from vidkin.rendering.classifier import picture_paths

        for path in picture_paths(create_output_folder(picture)):
            check_free(path, source=source)
    else:
        check_output(picture, source)
    network = load_model(model)
    cache = model / "features" if (model / "features").is_dir() else None
    splits: dict[str, Any] = {"query_split": queries, "gallery_split": gallery}
    if isinstance(network, TwoHeadNetwork):
        parts = describe_splits(network, labelled, **splits, cache=cache, threads=2, on_item=on_item)
        classified = evaluate_classifier(parts, seed=seed)
        if picture is None:
            return classified, ()
        from vidkin.rendering.classifier import draw_classifier

        return classified, tuple(draw_classifier(parts, picture, seed=seed, source=source))
    evaluation = evaluate_model(model, labelled, **splits, seed=seed, threads=2, on_item=on_item)
    if picture is None:
        return evaluation, ()
    from vidkin.rendering.training import draw_quadlets

    draw_quadlets(network, labelled.part(queries), picture, seed=seed, cache=cache, source=source)
    return evaluation, (picture,)


def _evaluate_detector(detector: str, labels: Path, tolerance: int, format: JsonFormat) -> None:
    """Measure a shot detector on labeled videos, and print how well it finds cuts and critical clips."""
    with meter("evaluating") as bar:
        from vidkin.shots import evaluate_detector

        evaluation = evaluate_detector(
            detector,
            labels,
            tolerance=tolerance,
            on_progress=lambda done, total, name: bar.update(done, total, detail=name),
        )
    if not print_data(format, {"labels": labels, **evaluation.to_dict()}) and evaluation.videos:
        measured = figures.tabulate_detector(evaluation)
        if not measured.rows:
            note("No cut is labeled, and none was found.")
        else:
            _print_table(measured)
            if evaluation.critical is None:
                note("Critical clips are not measured: the detector does not judge shots, or no label is critical.")
    failures = [f"{file}: {cause}" for file, cause in evaluation.broken]
    end_with_failures(failures, some_usable=bool(evaluation.videos))


def _print_table(shown: figures.MeasureTable) -> None:
    first, *numbers = shown.headings
    table(shown.title, [(first, "left"), *((name, "right") for name in numbers)], shown.rows)


def print_evaluation(evaluation: Evaluation | ClassifierEvaluation) -> None:
    """Print the tables of ``vidkin evaluate``."""
    from vidkin.training import ClassifierEvaluation

    if isinstance(evaluation, ClassifierEvaluation):
        for part in figures.tabulate_classifier(evaluation):
            _print_table(part)
        if wrong := figures.describe_errors(evaluation):
            note(wrong)
        return
    _print_table(figures.tabulate_evaluation(evaluation))
    for sentence in figures.describe_missing_measures(evaluation):
        note(sentence, style="yellow")
    note(figures.describe_ranking(evaluation))


def evaluate(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    data: Annotated[Path | None, typer.Argument(show_default="that of the training")] = None,
    reader: Annotated[str | None, rare_option("--reader", "-r")] = None,
    options: Annotated[list[str] | None, rare_option("--option", metavar="NAME=VALUE")] = None,
    split: Annotated[Path | None, rare_option("--split", dir_okay=False)] = None,
    queries: Annotated[str, rare_option("--queries")] = "test",
    gallery: Annotated[str, rare_option("--gallery")] = "train",
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    seed: Annotated[int, rare_option("--seed")] = 0,
    tolerance: Annotated[int, rare_option("--tolerance", min=0)] = 2,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Measure how well MODEL orders labeled data: same thing, same kind of thing, something else.

    Test quadlets are taken from the split of the queries, as in the paper; of gallery quadlets p, i and n are of the
    gallery. All other measures rank the gallery for each query. For a classifier (`vidkin train two-head`) they are
    accuracy, retrieval with its embedding and with its penultimate layer, and how similar wrong answers are.

    For a shot detector, such as default, they are precision, recall and F1 of cuts and of critical clips:
    `vidkin evaluate default labels.json`. `vidkin shots --output labels.json` and the Shots page write such labels.

    Args:
        model: Folder of a trained model, or the name of a shot detector.
        data: Folder or file of the labeled data, for a shot detector a JSON file of labeled shots.
        output: Draw sampled quadlets of the queries into this file; for a classifier a folder of three pictures.
    """
    if data is not None and data.is_file():
        from vidkin.shots import is_shot_labels

        if is_shot_labels(data):
            for name in _OF_MODELS:
                if source_of(context, name) == "COMMANDLINE":
                    raise InvalidArgumentError(
                        f"--{name.removesuffix('s') if name == 'options' else name} is for trained models, and the "
                        "labels are of shots: leave it out"
                    )
            _evaluate_detector(str(model), data, tolerance, format)
            return
    if data is None and options:
        raise InvalidArgumentError("--option needs DATA, whose reader it is for")
    settings = dict(parse_setting(option, "--option", "content=images") for option in options or [])
    with meter("opening the data"):
        from vidkin.training import open_evaluation_set

        values = {name: toml_or_text(value) for name, value in settings.items()}
        labelled = open_evaluation_set(model, data, reader=reader, options=values, split=split)
    with meter("evaluating") as bar:
        evaluation, drawn = measure_model(
            model,
            labelled,
            queries=queries,
            gallery=gallery,
            picture=output,
            seed=seed,
            on_item=lambda done, total: bar.update(done, total, detail="items read"),
        )
    for path in drawn:
        wrote(path)
    if not print_data(format, {"model": model, "outputs": drawn, **evaluation.to_dict()}):
        print_evaluation(evaluation)
    end_with_failures(f"{file}: {cause}" for file, cause in evaluation.broken)


def classify(
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    files: Annotated[list[Path], typer.Argument(metavar="FILES")],
    classes: Annotated[int, rare_option("--classes", min=1)] = 3,
    neighbors: Annotated[int, rare_option("--neighbors", min=0)] = 3,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Classify files with a trained MODEL, and show the nearest training items.

    A model of images takes the middle frame of a video.

    Args:
        model: Folder of a model that `vidkin train two-head` made.
        files: Images or videos, or folders with such files.
    """
    files = list_media(files)
    with meter("starting"):
        from vidkin.training import classify as classify_files

    done, broken = classify_files(model, files, classes=classes, neighbors=neighbors)
    causes = [{"path": error.path, "cause": error.cause} for error in broken]
    document = {"model": model, "files": [entry.to_dict() for entry in done], "broken": causes}
    if not print_data(format, document) and done:
        rows = [
            (
                str(entry.path),
                entry.label,
                f"{entry.probability:.2f}",
                ", ".join(f"{label} {share:.2f}" for label, share in entry.others),
                "\n".join(f"{near.path} ({near.label}, {near.distance:.2f})" for near in entry.neighbors),
            )
            for entry in done
        ]
        columns = [("file", "left"), ("class", "left"), ("probability", "right"), ("next", "left")]
        table("", [*columns, ("nearest training items (class, squared distance)", "left")], rows)
    end_with_failures(broken, some_usable=bool(done))
