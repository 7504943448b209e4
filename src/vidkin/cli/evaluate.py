"""``vidkin evaluate`` and ``vidkin classify``: how good a trained model is, and the class of files with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin._base.outputs import check_free, check_outputs, describe_source
from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, meter, note, table, wrote
from vidkin.cli.options import JsonFormat, JsonOption, parse_setting, toml_or_text
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.text import number, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from vidkin.datasets import LabelledSet
    from vidkin.shots import DetectorEvaluation
    from vidkin.training import ClassifierEvaluation, Evaluation


_OF_MODELS = ("reader", "options", "split", "queries", "gallery", "output", "seed")


def _refuse_options_of_models(context: typer.Context) -> None:
    for name in _OF_MODELS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            flag = "option" if name == "options" else name
            raise InvalidArgumentError(f"--{flag} is for trained models, and the labels are of shots: leave it out")


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
    is_classifier = read_model_info(model).config.kind == "two_head"
    if picture is not None and is_classifier:
        from vidkin._base.files import create_output_folder
        from vidkin.rendering.classifier import picture_paths

        for path in picture_paths(create_output_folder(picture)):
            check_free(path, source=source)
    elif picture is not None:
        check_outputs({"--output": (picture, source)})
    network = load_model(model)
    cache = model / "features" if (model / "features").is_dir() else None
    if isinstance(network, TwoHeadNetwork):
        parts = describe_splits(
            network,
            labelled,
            query_split=queries,
            gallery_split=gallery,
            cache=cache,
            threads=2,
            on_item=on_item,
        )
        classified = evaluate_classifier(parts, seed=seed)
        if picture is None:
            return classified, ()
        from vidkin.rendering.classifier import draw_classifier

        return classified, tuple(draw_classifier(parts, picture, seed=seed, source=source))
    evaluation = evaluate_model(
        model,
        labelled,
        query_split=queries,
        gallery_split=gallery,
        seed=seed,
        threads=2,
        on_item=on_item,
    )
    if picture is None:
        return evaluation, ()
    from vidkin.rendering.training import draw_quadlets

    draw_quadlets(network, labelled.part(queries), picture, seed=seed, cache=cache, source=source)
    return evaluation, (picture,)


def _evaluate_detector(detector: str, labels: Path, tolerance: int, *, json: bool) -> None:
    """Measure a shot detector on labeled videos, and print how well it finds cuts and critical clips."""
    with meter("starting"):
        from vidkin.shots import evaluate_detector
    with meter("evaluating") as bar:
        evaluation = evaluate_detector(
            detector,
            labels,
            tolerance=tolerance,
            on_progress=lambda done, total, name: bar.update(done, total, detail=name),
        )
    if json:
        print_json({"labels": labels, **evaluation.to_dict()})
    elif evaluation.videos:
        _print_detector(evaluation)
    for file, cause in evaluation.broken:
        error_line(f"{file}: {cause}")
    if evaluation.broken:
        raise typer.Exit(Status.SOME_FAILED if evaluation.videos else Status.NOTHING_USABLE)


def _print_detector(evaluation: DetectorEvaluation) -> None:
    kinds = {
        "cuts, of any kind": evaluation.cuts,
        "hard cuts": evaluation.hard,
        "gradual transitions": evaluation.gradual,
        "critical clips": evaluation.critical,
    }
    rows: list[list[str | Text]] = [
        [
            name,
            f"{scores.precision:.4f}",
            f"{scores.recall:.4f}",
            f"{scores.f1:.4f}",
            str(scores.true_positives),
            str(scores.false_positives),
            str(scores.false_negatives),
        ]
        for name, scores in kinds.items()
        if scores is not None and scores != type(scores)(0, 0, 0)
    ]
    if not rows:
        note("No cut is labeled, and none was found.")
        return
    columns = [(title, "right") for title in ("precision", "recall", "F1", "right", "false", "missed")]
    title = f"{evaluation.detector}, {number(len(evaluation.videos), 'video')}"
    table(title, [(f"within {number(evaluation.tolerance, 'frame')}", "left"), *columns], rows)
    if evaluation.critical is None:
        note("Critical clips are not measured: the detector does not judge shots, or no label is critical.")


def print_evaluation(evaluation: Evaluation | ClassifierEvaluation) -> None:
    """Print the tables of ``vidkin evaluate``."""
    from vidkin.training import ClassifierEvaluation

    if isinstance(evaluation, ClassifierEvaluation):
        _print_classifier(evaluation)
    else:
        _print(evaluation)


def _print_classifier(evaluation: ClassifierEvaluation) -> None:
    rows = [["top-1 (micro accuracy)", evaluation.top_1], ["macro accuracy", evaluation.macro]]
    table(
        evaluation.data,
        [("classification", "left"), ("share", "right")],
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


def evaluate(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(help="Folder of a trained model, or the name of a shot detector.", metavar="MODEL")
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            help="Folder or file of the labeled data, for a shot detector a JSON file of labeled shots.",
            show_default="that of the training",
        ),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", "-r", help="Reader of the data.", show_default="tree")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the reader; repeatable."),
    ] = None,
    split: Annotated[Path | None, typer.Option("--split", dir_okay=False, hidden=True)] = None,
    queries: Annotated[str, typer.Option("--queries", hidden=True)] = "test",
    gallery: Annotated[str, typer.Option("--gallery", hidden=True)] = "train",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Draw sampled quadlets of the queries into this file; for a classifier a folder of three pictures.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", hidden=True)] = 0,
    tolerance: Annotated[int, typer.Option("--tolerance", min=0, hidden=True)] = 2,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Measure how well MODEL orders labeled data: same thing, same kind of thing, something else.

    Test quadlets are taken from the split of the queries, as in the paper; of gallery quadlets p, i and n are of the
    gallery. All other measures rank the gallery for each query. Of a classifier (`vidkin train two-head`) accuracy,
    retrieval with its embedding and with its penultimate layer, and what its wrong answers look like are measured.

    Of a shot detector, such as default, precision, recall and F1 of cuts and of critical clips are measured:
    `vidkin evaluate default labels.json`. `vidkin shots --output labels.json` and the Shots page write such labels.
    """
    if data is not None and data.is_file():
        from vidkin.shots import is_shot_labels

        if is_shot_labels(data):
            _refuse_options_of_models(context)
            _evaluate_detector(str(model), data, tolerance, json=format == "json")
            return
    with meter("starting"):
        from vidkin.training import open_evaluation_set

    if data is None and options:
        raise InvalidArgumentError("--option needs DATA, whose reader it is for")
    example = "content=images"
    settings = dict(parse_setting(option, "--option", example) for option in options or [])
    with meter("opening the data"):
        labelled = open_evaluation_set(
            model,
            data,
            reader=reader,
            options={name: toml_or_text(value) for name, value in settings.items()},
            split=split,
        )
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
    if format == "json":
        print_json({"model": model, "outputs": drawn, **evaluation.to_dict()})
    else:
        print_evaluation(evaluation)
    for file, cause in evaluation.broken:
        error_line(f"{file}: {cause}")
    if evaluation.broken:
        raise typer.Exit(Status.SOME_FAILED)


def _print(evaluation: Evaluation) -> None:
    missing = evaluation.missing
    rows = [[title, "-" if name in missing else f"{getattr(evaluation, name):.4f}"] for name, title in _TITLES.items()]
    table(evaluation.data, [("measure", "left"), ("value", "right")], rows)
    for reason in dict.fromkeys(missing.values()):
        names = [title.split(",")[0] for name, title in _TITLES.items() if missing.get(name) == reason]
        note(f"No {', '.join(dict.fromkeys(names))}: {reason}.", style="yellow")
    note(
        f"{number(evaluation.queries, 'query', 'queries')} ({evaluation.query_split}), "
        f"{number(evaluation.gallery, 'item')} in the gallery ({evaluation.gallery_split}), "
        f"{number(evaluation.quadlets, 'test quadlet')}"
    )


def classify(
    model: Annotated[
        Path, typer.Argument(help="Folder of a model that `vidkin train two-head` made.", metavar="MODEL")
    ],
    files: Annotated[list[Path], typer.Argument(help="Images or videos, or folders with such files.", metavar="FILES")],
    classes: Annotated[int, typer.Option("--classes", min=1, help="Most likely classes to show.")] = 3,
    neighbors: Annotated[int, typer.Option("--neighbors", min=0, hidden=True)] = 3,
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Classify files with a trained MODEL, and show the nearest training items.

    A model of images takes the middle frame of a video.
    """
    files = _expand(files)
    with meter("starting"):
        from vidkin.training import classify as classify_files

    done, broken = classify_files(model, files, classes=classes, neighbors=neighbors)
    if format == "json":
        print_json(
            {
                "model": model,
                "files": [entry.to_dict() for entry in done],
                "broken": [{"path": error.path, "cause": error.cause} for error in broken],
            }
        )
    elif done:
        rows = [
            [
                str(entry.path),
                entry.label,
                f"{entry.probability:.2f}",
                ", ".join(f"{label} {share:.2f}" for label, share in entry.others),
                "\n".join(
                    f"{neighbor.path} ({neighbor.label}, {neighbor.distance:.2f})" for neighbor in entry.neighbors
                ),
            ]
            for entry in done
        ]
        columns = [("file", "left"), ("class", "left"), ("probability", "right"), ("next", "left")]
        table("", [*columns, ("nearest training items (class, squared distance)", "left")], rows)
    for error in broken:
        error_line(str(error))
    if broken:
        raise typer.Exit(Status.SOME_FAILED if done else Status.NOTHING_USABLE)


def _expand(files: Sequence[Path]) -> list[Path]:
    """The files, with the images and videos in each folder and below in its place, by name.

    Raises:
        InvalidArgumentError: There is none in a folder.
    """
    expanded: list[Path] = []
    for file in files:
        if not file.is_dir():
            expanded.append(file)
            continue
        media = IMAGE_EXTENSIONS | VIDEO_EXTENSIONS
        inside = sorted(each for each in file.rglob("*") if each.suffix.lower() in media and each.is_file())
        if not inside:
            raise InvalidArgumentError(f"{file}: there are no images and no videos in this folder")
        expanded += inside
    return expanded
