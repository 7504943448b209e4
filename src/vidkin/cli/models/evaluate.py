"""``vidkin evaluate``: what a trained encoder is worth on labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import error_line, meter, note, table
from vidkin.cli.exit import Status
from vidkin.cli.options import JsonOption
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number

if TYPE_CHECKING:
    from vidkin.datasets import LabelledSet
    from vidkin.training import DataRecipe, Evaluation

__all__ = ["evaluate"]

_TITLES = {
    "qp": "quadlet precision, all quadlets",
    "qp_sampled": "quadlet precision, 15,000 drawn",
    "tp": "triplet precision, all triplets",
    "tp_sampled": "triplet precision, of those drawn",
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
    model: Annotated[Path, typer.Argument(help="Folder of a trained model.", metavar="MODEL")],
    data: Annotated[
        Path | None,
        typer.Argument(help="Folder or file of the labelled data.", show_default="those of its recipe"),
    ] = None,
    reader: Annotated[
        str | None, typer.Option("--reader", "-r", help="What reads them.", show_default="tree")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the reader; repeatable."),
    ] = None,
    split: Annotated[
        Path | None, typer.Option("--split", help="A written split to use.", dir_okay=False)
    ] = None,
    queries: Annotated[str, typer.Option("--queries", help="Split of the queries and of quadlets.")] = "test",
    gallery: Annotated[str, typer.Option("--gallery", help="Split that is ranked.")] = "train",
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw sampled quadlets of the queries into this file.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the drawn quadlets.")] = 0,
    json: JsonOption = False,
) -> None:
    """Measure MODEL on DATA: does it keep the order same thing, same kind of thing, something else?

    Quadlets are taken from the queries' split; all other measures rank the gallery for every query.
    """
    from vidkin.training import evaluate as measure

    labelled = _data(model, data, reader, options or [], split)
    with meter("evaluating") as bar:
        found = measure(
            model,
            labelled,
            query_split=queries,
            gallery_split=gallery,
            seed=seed,
            threads=2,
            on_item=lambda done, total: bar.update(done, total, detail="items read"),
        )
        if picture is not None:
            _draw(model, labelled.part(queries), picture, seed)
    if json:
        told = {name: getattr(found, name) for name in found.__dataclass_fields__}
        print_json({"model": model, "picture": picture, **told})
    else:
        _print(found)
    for file, cause in found.broken:
        error_line(f"{file}: {cause}")
    if found.broken:
        raise typer.Exit(Status.SOME_FAILED)


def _data(
    model: Path, data: Path | None, reader: str | None, options: list[str], split: Path | None
) -> LabelledSet:
    """What the command line names, or what the model was trained with, divided as then."""
    from vidkin.datasets import make_split, open_labelled, read_split
    from vidkin.models import read_model_info

    read_model_info(model)  # tells where there is no model at all
    recipe = _recipe_data(model)
    if data is None and recipe is None:
        raise InvalidArgumentError(f"{model} has no recipe.toml that would name the data: give DATA")
    if data is None and options:
        raise InvalidArgumentError("--option is for the reader of DATA: give DATA, too")
    if recipe is not None and data is not None and not _same_place(data, recipe.source):
        recipe = None
    given, source, used = _options(options), data, reader or "tree"
    if recipe is not None:
        source = source or Path(recipe.source)
        used = reader or recipe.reader
        given = given or (dict(recipe.options) if used == recipe.reader else {})
    assert source is not None
    labelled = open_labelled(source, reader=used, **given)
    if split is None:
        split = _split_of_training(model, recipe, labelled)
    if split is not None:
        return read_split(labelled, split)
    if "" in labelled.split_counts():
        note("The data have no split: one by groups is made, 30 % are the test.")
        return make_split(labelled, test=0.3, validation=0.0)
    return labelled


def _recipe_data(model: Path) -> DataRecipe | None:
    """What the model was trained on, if its folder says so."""
    from vidkin.training import load_recipe

    written = model / "recipe.toml"
    return load_recipe(written).data if written.is_file() else None


def _same_place(data: Path, source: str) -> bool:
    return data.expanduser().resolve() == Path(source).expanduser().resolve()


def _split_of_training(model: Path, recipe: DataRecipe | None, labelled: LabelledSet) -> Path | None:
    """The split that training used, where these are its data: another would test on what the model has learned.

    Args:
        model: Folder of the model.
        recipe: Of the model, if the data are those that it names.
        labelled: The data.
    """
    from vidkin.datasets import read_split

    if recipe is not None and recipe.split:
        return Path(recipe.split)
    written = model / "split.json"
    if "train" in labelled.split_counts() or not written.is_file():
        return None
    if recipe is None:
        # Elsewhere: the same collection, moved or copied, names the same items.
        try:
            read_split(labelled, written)
        except DatasetError:
            return None
        note(f"The data are those of the training, by their names: divided as in {written}.")
    return written


def _options(given: list[str]) -> dict[str, Any]:
    from vidkin.cli.models.train import toml_or_text

    found = {}
    for option in given:
        name, equals, text = option.partition("=")
        if not equals or not name.strip():
            raise InvalidArgumentError(f"--option {option}: write NAME=VALUE, as content=images")
        found[name.strip()] = toml_or_text(text.strip())
    return found


def _draw(model: Path, part: LabelledSet, picture: Path, seed: int) -> None:
    from vidkin.models import load_model
    from vidkin.rendering.quadlets import draw_quadlets

    cache = model / "features"
    draw_quadlets(load_model(model), part, picture, seed=seed, cache=cache if cache.is_dir() else None)


def _print(found: Evaluation) -> None:
    rows = [[title, f"{getattr(found, name):.4f}"] for name, title in _TITLES.items()]
    table(f"{found.data}", [("measure", "left"), ("", "right")], rows)
    note(
        f"{number(found.queries, 'query', 'queries')} ({found.query_split}), {number(found.gallery, 'item')} in the "
        f"gallery ({found.gallery_split}), {number(found.quadlets, 'quadlet')} among the queries"
    )
