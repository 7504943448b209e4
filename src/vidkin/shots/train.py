"""Train a shot detector on labeled shots, with a trainer from another package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.registry import missing_research, name_missing_parts
from vidkin.errors import MissingPartError

_GROUP = "vidkin.shot_training"


@check_arguments
def train_shots(
    labels: PathLike | Sequence[Any],
    recipe: PathLike | Mapping[str, Any] | None = None,
    *,
    output: PathLike = "shots-model",
    resume: bool = True,
    on_progress: Callable[[Any], None] | None = None,
) -> Any:
    """Train a shot detector on labeled shots, with a function registered in the entry point group
    ``vidkin.shot_training``.

    The package vidkin-research provides such a function. The output folder can be used as a detector in
    `vidkin.detect_shots` and ``vidkin shots --detector``.

    Args:
        labels: Videos with their shots, or a JSON file with such labels.
        recipe: TOML file, name of a recipe in the package, or content of a recipe; None for the default recipe.
        output: Output folder of the detector; created if missing.
        resume: Continue from the checkpoint in the folder; False starts over.
        on_progress: Callback called before each video and after each step.

    Returns:
        The training report, with the folder as ``output``.

    Raises:
        MissingPartError: No installed package provides training, or one of its dependencies is missing.
        VidkinError: The labels, recipe or output folder are invalid, a video cannot be read, or training failed.
    """
    trainers = tuple(entry_points(group=_GROUP))
    if not trainers:
        raise missing_research("vidkin.train_shots") or MissingPartError(
            "vidkin.train_shots needs a package with an entry point in the group vidkin.shot_training, and none is "
            "installed"
        )
    with name_missing_parts("vidkin.train_shots"):
        train = trainers[0].load()
    return train(labels, recipe, output=output, resume=resume, on_progress=on_progress)
