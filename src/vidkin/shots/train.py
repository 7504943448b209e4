"""Train a shot detector from labeled shots, with a trainer from another package."""

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
    """Train a detector from labeled shots, with the function that the entry point group ``vidkin.shot_training`` names.

    The package vidkin-research provides it. The output folder is a detector for `vidkin.detect_shots` and ``vidkin
    shots --detector``.

    Args:
        labels: Videos with their shots, or a JSON file that lists them.
        recipe: A TOML file, the name of a recipe in the package, or the content of one; None is the default recipe.
        output: Folder of the detector; created if it does not exist.
        resume: Continue from the folder's checkpoint; False starts over.
        on_progress: Callback before each video and after each step.

    Returns:
        The training report, with the folder as ``output``.

    Raises:
        MissingPartError: No installed package trains detectors, or one of its dependencies is missing.
        VidkinError: Labels, recipe or output cannot be used; a video cannot be read; the training failed.
    """
    trainers = tuple(entry_points(group=_GROUP))
    if not trainers:
        raise missing_research("vidkin.train_shots") or MissingPartError(
            "vidkin.train_shots needs a package with an entry point in the group vidkin.shot_training, but none is "
            "installed"
        )
    with name_missing_parts("vidkin.train_shots"):
        train = trainers[0].load()
    return train(labels, recipe, output=output, resume=resume, on_progress=on_progress)
