"""``vidkin benchmark shots``: every detector on composed and on edited videos."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidkin.cli.console import meter, note, table
from vidkin.cli.options import JsonOption
from vidkin.experiments.heads import (
    HeadStore,
    check_output,
    check_same_data,
    kept_run,
    machine_text,
    plus_minus,
    write_figures,
)
from vidkin.experiments.shots.material import LabelledVideo, annotation_of, composed_part, edited_videos
from vidkin.experiments.shots.scores import counts_of, rows_of, summary_of
from vidkin.rendering.json_values import print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vidkin.datasets import VideoAnnotation
    from vidkin.shots import DetectedCut

__all__ = ["shots"]

UNTRAINED = ("content", "adaptive", "shotdetect", "shotdetect?threshold=75", "svd", "default")
LOSSES = ("triplet", "quadlet", "radial", "radial_detached")
WINDOW = 10
# Peers that merge cuts closer than half a second would miss the composed ones on purpose.
_PEER_SETTING = "min_scene_len=1"
_TRAIN, _TEST, _FRAMES = 16, 12, 400
# Steps of a full and of a quick run.
_STEPS, _SEGMENT_STEPS = (250, 80), (150, 50)
_SEGMENT_SIZE, _SEGMENT_WIDTH = 48, 0.125
_HIGHLIGHT_VIDEOS = 12
_DEEP_SBD = "DeepSBD, 1/8 width"
_SAVED = "learned, quadlet"

Show = Callable[[int, int, str], None]
Cuts = list["DetectedCut"]


@dataclass(frozen=True, slots=True)
class _Judged:
    """The sets that detectors are judged on, and what the trained ones learn from."""

    sets: Mapping[str, Sequence[LabelledVideo]]
    train: Sequence[LabelledVideo]
    highlights: Sequence[VideoAnnotation]


# What a kept run depends on beside its own settings.
_FIXED = (WINDOW, _TRAIN, _TEST, _FRAMES, _SEGMENT_SIZE)


def shots(
    data: Annotated[
        Path,
        typer.Option("--data", help="Folder of edited videos with truth.json.", file_okay=False, exists=True),
    ],
    videos: Annotated[
        Path | None,
        typer.Option(
            "--videos", help="Folder of single-shot clips to compose videos of.", file_okay=False, exists=True
        ),
    ] = None,
    photographs: Annotated[
        Path | None,
        typer.Option(
            "--photographs", help="Folder of photographs for more scenes.", file_okay=False, exists=True
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights", help="Weights of MobileNetV2, a safetensors file.", dir_okay=False, exists=True
        ),
    ] = None,
    work: Annotated[Path, typer.Option("--work", help="Where composed videos and features are kept.")] = Path(
        "vidkin-benchmark"
    ),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the figures as JSON.")] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            help="Keep the model trained with quadlets for `vidkin shots --detector` (not of a run kept earlier).",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Trainings of every loss and of DeepSBD.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="One seed and a third of the steps.")] = False,
    json: JsonOption = False,
) -> None:
    """Shot boundaries: peers, the default detector, and detectors trained with every loss of the sources.

    Without --videos only detectors that need no training are judged, on the edited videos. With it, videos are composed
    of single-shot clips: one part trains and fits, clips of the other part are judged.
    """
    began = time.monotonic()
    from vidkin.shots.learned import CUT_NUMBERS

    seeds = 1 if quick else seeds
    check_output(output)
    if videos is not None:
        given = {"--data": data, "--videos": videos, "--photographs": photographs, "--weights": weights}
        check_same_data(work, "shots", given, written=(output, save))
    steps, segment_steps = _STEPS[quick], _SEGMENT_STEPS[quick]
    rows: list[dict[str, Any]] = []
    with meter("shots") as bar:

        def show(done: int, total: int, what: str) -> None:
            bar.update(done, total, detail=what)

        judged = _gathered(data, videos, photographs, work, show)
        for name in UNTRAINED:
            show(len(rows), 0, name)
            rows += rows_of(name, None, judged.sets, _by_name(name, judged))
        for name, seed in _trained_runs(seeds) if judged.train else ():
            show(len(rows), 0, f"{name}, seed {seed}")
            settings: tuple[object, ...] = (name, seed, steps, segment_steps, *_FIXED)
            if name != _DEEP_SBD:
                settings += CUT_NUMBERS

            def run(name: str = name, seed: int = seed) -> list[dict[str, Any]]:
                if name == _DEEP_SBD:
                    found, trained = _deep_sbd(judged, seed, segment_steps)
                else:
                    store = HeadStore(weights, work / "features", window=WINDOW)
                    keep = save if (name, seed) == (_SAVED, 0) else None
                    found, trained = _learned(store, judged, name, seed, steps, show, keep)
                return list(rows_of(name, seed, judged.sets, found, trained))

            rows += kept_run(work / "runs", settings, run)
    result: dict[str, Any] = {
        "what": "shot boundaries",
        "machine": machine_text(),
        "settings": {
            "window": WINDOW,
            "seeds": seeds,
            "steps": {"learned": steps, "DeepSBD": segment_steps},
            "composed": {"train": _TRAIN, "test": _TEST, "frames": _FRAMES},
            "sets": {name: counts_of(found) for name, found in judged.sets.items()},
        },
        "minutes": (time.monotonic() - began) / 60,
        "summary": summary_of(rows),
        "runs": rows,
    }
    write_figures(result, output)
    if json:
        print_json(result)
    else:
        _print(result["summary"])
        note("F1 over hard cuts and gradual transitions; tolerance in frames; nearest-first matching.")


def _trained_runs(seeds: int) -> Iterator[tuple[str, int]]:
    """(detector, seed) of everything that is trained."""
    for name in (*(f"learned, {loss}" for loss in LOSSES), _DEEP_SBD):
        for seed in range(seeds):
            yield name, seed


def _gathered(data: Path, videos: Path | None, photographs: Path | None, work: Path, show: Show) -> _Judged:
    from vidkin.datasets import build_highlights, read_shot_annotations

    sets: dict[str, Sequence[LabelledVideo]] = {}
    edited = edited_videos(data)
    # A video without any labelled cut has only false alarms to count; they are reported on their own.
    cut = [video for video in edited if video.labels.boundaries]
    if cut:
        sets["edited"] = cut
    for video in edited:
        sets[video.path.name] = [video]
    if videos is None:
        return _Judged(sets, (), ())
    train = composed_part(
        videos, photographs, work / "composed-train", test=False, videos=_TRAIN, frames=_FRAMES, show=show
    )
    sets["composed"] = composed_part(
        videos, photographs, work / "composed-test", test=True, videos=_TEST, frames=_FRAMES, show=show
    )
    folder = work / "highlights" / "train"
    if (folder / "labels.json").is_file():
        highlights = read_shot_annotations(folder / "labels.json")
    else:
        show(0, 0, "composing highlight videos")
        highlights = build_highlights(videos, folder, part="train", videos=_HIGHLIGHT_VIDEOS, seed=0)
    return _Judged(sets, train, highlights)


def _all_videos(judged: _Judged) -> list[LabelledVideo]:
    return list(dict.fromkeys(video for videos in judged.sets.values() for video in videos))


def _by_name(name: str, judged: _Judged) -> dict[Path, Cuts]:
    """Cuts by a detector of the registry; peers that merge close cuts are asked not to."""
    from vidkin.shots import detect

    found: dict[Path, Cuts] = {}
    for video in _all_videos(judged):
        address = name
        if name in ("content", "adaptive"):
            address = f"{name}?{_PEER_SETTING}"
        found[video.path] = list(detect(video.path, address).cuts)  # type: ignore[arg-type]
    return found


def _learned(
    store: HeadStore, judged: _Judged, name: str, seed: int, steps: int, show: Show, save: Path | None
) -> tuple[dict[Path, Cuts], dict[str, Any]]:
    """Train on composed and highlight videos, fit rules on the composed ones, find cuts in all that is judged."""
    import torch

    from vidkin.models import save_model
    from vidkin.shots.learned import find_shots, fit_shot_rules, head_of
    from vidkin.shots.learned.clips import ShotClips
    from vidkin.shots.learned.detector import as_cuts
    from vidkin.shots.learned.training import ShotRecipe, train_on_shots

    loss = name.rpartition(" ")[2]
    composed = store.features([video.path for video in judged.train], on_progress=show)
    labels = [annotation_of(video, len(rows)) for video, rows in zip(judged.train, composed, strict=True)]
    others = store.features([label.video for label in judged.highlights], on_progress=show)
    clips = ShotClips(
        [torch.from_numpy(rows) for rows in (*composed, *others)],
        [*labels, *judged.highlights],
        window=WINDOW,
    )
    model = store.model(seed)
    recipe = ShotRecipe.from_mapping({"loss": loss, "window": WINDOW, "steps": steps, "seed": seed})
    report = train_on_shots(model, clips, recipe)
    encode = head_of(model)
    rules = fit_shot_rules(
        composed,
        [[(shot.start, shot.end) for shot in label.shots] for label in labels],
        encode,
        window=WINDOW,
        fitted_on="training part of the composed videos of `vidkin benchmark shots`",
    )
    if save is not None:
        save_model(model, save, notes={"trained_by": "vidkin benchmark shots", "loss": loss})
        rules.save(save)
    found: dict[Path, Cuts] = {}
    videos = _all_videos(judged)
    for video, rows in zip(
        videos, store.features([video.path for video in videos], on_progress=show), strict=True
    ):
        cuts, _ = as_cuts(find_shots(rows, encode, rules), list(range(len(rows))))
        found[video.path] = list(cuts)
    return found, {
        "seconds": report.seconds,
        "collapsed": report.collapsed,
        "distance": report.distance,
        "thresholds": {
            "cut": rules.cut.threshold,
            "gradual": None if rules.gradual is None else rules.gradual.threshold,
        },
    }


def _deep_sbd(judged: _Judged, seed: int, steps: int) -> tuple[dict[Path, Cuts], dict[str, Any]]:
    """Train the reduced network on the composed videos, and find cuts with its detector."""
    from vidkin.models import DeepSBDNetwork, EncoderConfig, build_model
    from vidkin.shots import detect
    from vidkin.shots.baselines.deep_sbd.detector import DeepSbdBaseline
    from vidkin.shots.baselines.deep_sbd.training import LabelledFrames, train_on_segments

    config = EncoderConfig(
        kind="deep_sbd",
        width=_SEGMENT_WIDTH,
        size=_SEGMENT_SIZE,
        frames=16,
        classes=3,
        batch_norm=True,
        fit="stretch",
    )
    network = build_model(config, seed=seed)
    assert isinstance(network, DeepSBDNetwork)
    films = [
        LabelledFrames(_pictures(video.path, _SEGMENT_SIZE), video.labels.hard, video.labels.gradual)
        for video in judged.train
    ]
    report = train_on_segments(network, films, steps=steps, seed=seed)
    found = {
        video.path: list(detect(video.path, DeepSbdBaseline(network, size=_SEGMENT_SIZE)).cuts)
        for video in _all_videos(judged)
    }
    return found, {"seconds": report.seconds, "right": report.right}  # type: ignore[return-value]


def _pictures(path: Path, size: int) -> NDArray[np.uint8]:
    import numpy as np

    from vidkin.media import iter_frames
    from vidkin.shots.learned.detector import squared

    return np.stack(
        [
            squared(image, size)
            for batch in iter_frames(path, rate=None, short_side=size)
            for image in batch.images
        ]
    )


def _print(summary: Sequence[Mapping[str, Any]]) -> None:
    columns = (
        "f1_nearest_0",
        "f1_nearest_1",
        "f1_nearest_2",
        "f1_overlap_2",
        "hard_precision",
        "hard_recall",
    )
    titles = ("F1, 0", "F1, 1", "F1, 2", "F1 overlap", "hard P", "hard R", "gradual")
    for which in dict.fromkeys(line["set"] for line in summary):
        table(
            which,
            [("detector", "left"), *((title, "right") for title in titles)],
            [
                [
                    line["detector"],
                    *(plus_minus(line[name]) for name in columns),
                    f"{line['gradual_found']['mean']:.1f} of {line['gradual']}",
                ]
                for line in summary
                if line["set"] == which
            ],
        )
