"""``vidkin train-shots``: a detector of cuts and critical shots from videos with labelled shots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import meter, note, path_text, say, table
from vidkin.cli.options import JsonOption
from vidkin.errors import InvalidArgumentError
from vidkin.rendering.json_values import print_json
from vidkin.rendering.text import number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.datasets import VideoAnnotation
    from vidkin.models import ClipEncoder
    from vidkin.shots.learned import ShotRules
    from vidkin.shots.learned.recipes import ShotPlan

__all__ = ["train_shots"]

# Of four videos one is kept from training to fit the thresholds on.
_FIT_EVERY = 4
_REORDER = "put the videos into another order, or label more of them"
_COLLAPSED = (
    "All embeddings are at nearly one place: take another loss (radial_detached, quadlet) or a lower rate."
)


def train_shots(
    labels: Annotated[
        Path,
        typer.Argument(help="Labelled shots: JSON with video, fps, shots, critical.", metavar="LABELS.json"),
    ],
    recipe: Annotated[Path, typer.Option("--recipe", "-r", help="A TOML file with [shots] and [model].")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the model.", file_okay=False)
    ] = Path("shots-model"),
    show: Annotated[
        bool, typer.Option("--show", help="Print the recipe with every default, and stop.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train a metric on labelled shots and fit what counts as a cut, and as critical.

    Every fourth video is kept from training, and the thresholds are fitted on these. The folder is a detector for
    `vidkin shots VIDEO --detector FOLDER`.
    """
    from vidkin.datasets import read_shot_annotations
    from vidkin.shots.learned.recipes import load_shot_recipe, show_shot_recipe
    from vidkin.training.run.output import output_folder

    plan = load_shot_recipe(recipe)
    if show:
        say(show_shot_recipe(plan).rstrip("\n"))
        return
    annotations = read_shot_annotations(labels)
    if len(annotations) < _FIT_EVERY:
        raise InvalidArgumentError(
            f"{labels} has labels of {number(len(annotations), 'video')}; {_FIT_EVERY} or more are needed, as every "
            "fourth is kept to fit the thresholds on"
        )
    _check(annotations)
    output_folder(output)
    outcome = _trained(plan, annotations, labels.name, output)
    if outcome["collapsed"]:
        note(_COLLAPSED, style="yellow")
    if json:
        print_json(outcome)
        return
    counts, known = outcome["videos"], {True: "yes", False: "not fitted"}
    row = [number(counts["trained"], "video"), number(counts["fitted"], "video"), f"{outcome['loss']:.4f}"]
    columns = [(title, "right") for title in ("trained on", "fitted on", "loss")]
    columns += [(title, "left") for title in ("gradual", "critical")]
    table(None, columns, [[*row, known[outcome["gradual"]], known[outcome["critical"]]]])
    say(path_text(output).append(": use it with vidkin shots --detector"))


def _check(annotations: Sequence[VideoAnnotation]) -> None:
    """Refuse, before anything is read, what would end the training only after it."""
    missing = [annotation.video.name for annotation in annotations if not annotation.video.is_file()]
    if missing:
        raise InvalidArgumentError(
            f"{number(len(missing), 'labelled video')} not found: {', '.join(missing[:5])}; names are taken beside "
            "the file of labels"
        )
    kept = annotations[_FIT_EVERY - 1 :: _FIT_EVERY]
    if all(len(annotation.shots) < 2 for annotation in kept):
        raise InvalidArgumentError(
            f"{_kept_names(kept)} is kept to fit what counts as a cut, but has none labelled: {_REORDER}"
        )
    if any(shot.critical for one in annotations for shot in one.shots) and not _fits_critical(kept):
        note(
            f"{_kept_names(kept)} is kept to fit what counts as critical, but has not both critical and other "
            f"shots, so shots will get no critical score: {_REORDER}",
            style="yellow",
        )


def _kept_names(kept: Sequence[VideoAnnotation]) -> str:
    return f"Every fourth video ({', '.join(one.video.name for one in kept[:5])}{', ...' if len(kept) > 5 else ''})"


def _fits_critical(annotations: Sequence[VideoAnnotation]) -> bool:
    return len({shot.critical is not None for one in annotations for shot in one.shots}) == 2


def _trained(plan: ShotPlan, annotations: list[VideoAnnotation], labels: str, output: Path) -> dict[str, Any]:
    """Train, fit, save; what is told about it."""
    from vidkin.models import ClipEncoder, build_model, save_model

    model = build_model(plan.model, weights=plan.weights or None, seed=plan.shots.seed)
    assert isinstance(model, ClipEncoder)
    model.eval()
    with meter("training") as bar:
        features = []
        for done, annotation in enumerate(annotations):
            bar.update(done, len(annotations), detail=annotation.video.name)
            features.append(_features(model, annotation))
        kept = range(_FIT_EVERY - 1, len(annotations), _FIT_EVERY)
        report = _train(model, plan.shots, annotations, features, set(kept), bar)
        rules = _fit(model, plan.shots.window, [annotations[n] for n in kept], [features[n] for n in kept])
    save_model(model, output, notes={"loss": plan.shots.loss, "seed": plan.shots.seed, "labels": labels})
    rules.save(output)
    return {
        "model": output,
        "videos": {"trained": len(annotations) - len(kept), "fitted": len(kept)},
        "loss": sum(report.losses[-20:]) / max(1, len(report.losses[-20:])),
        "distance": report.distance,
        "collapsed": report.collapsed,
        "critical": rules.critical is not None,
        "gradual": rules.gradual is not None,
        "seconds": report.seconds,
    }


def _features(model: ClipEncoder, annotation: VideoAnnotation) -> NDArray[np.float32]:
    from vidkin.shots.learned import video_features

    rows, _ = video_features(model, annotation.video, size=model.config.size, fit=model.config.fit)
    if annotation.shots and annotation.shots[-1].end > len(rows):
        raise InvalidArgumentError(
            f"{annotation.video} has {len(rows)} frames, but a shot labelled up to {annotation.shots[-1].end}"
        )
    return rows


def _train(
    model: ClipEncoder,
    recipe: Any,
    annotations: list[VideoAnnotation],
    features: list[NDArray[np.float32]],
    kept: set[int],
    bar: Any,
) -> Any:
    import torch

    from vidkin.shots.learned.clips import ShotClips
    from vidkin.shots.learned.training import train_on_shots

    own = [place for place in range(len(annotations)) if place not in kept]
    clips = ShotClips(
        [torch.from_numpy(features[place]) for place in own],
        [annotations[place] for place in own],
        window=recipe.window,
    )
    return train_on_shots(
        model,
        clips,
        recipe,
        on_progress=lambda step, terms: bar.update(
            step, recipe.steps, detail="  ".join(f"{name} {value:.3f}" for name, value in terms.items())
        ),
    )


def _fit(
    model: ClipEncoder,
    window: int,
    annotations: list[VideoAnnotation],
    features: list[NDArray[np.float32]],
) -> ShotRules:
    from vidkin.shots.learned import encode_with, fit_shot_rules

    critical = [[shot.critical is not None for shot in one.shots] for one in annotations]
    return fit_shot_rules(
        features,
        [[(shot.start, shot.end) for shot in one.shots] for one in annotations],
        encode_with(model),
        window=window,
        critical=critical if _fits_critical(annotations) else None,
        fitted_on=f"{number(len(annotations), 'video')} kept from training",
    )
