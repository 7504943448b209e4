"""What detectors make of videos composed from the recordings that are kept for choosing settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin._base.values import read_json
from vidkin.media import write_video
from vidkin.shots import Cut, PlanesDetector, ShotDetector, Transition, detect
from vidkin.shots.finish import Finisher
from vidkin.shots.network import SHIPPED, Numbers
from vidkin_research.cut_network.material import Sources
from vidkin_research.cut_network.network import CutNetwork
from vidkin_research.cut_network.pieces import Piece
from vidkin_research.made import FilmRecipe, compose_film
from vidkin_research.made.edited_videos import rgb_pictures
from vidkin_research.made.footage import read_footage
from vidkin_research.made.negatives import NEGATIVE_FAMILIES
from vidkin_research.made.restless import restless_takes
from vidkin_research.made.sequences import compose
from vidkin_research.made.transitions import TRANSITION_FAMILIES
from vidkin_research.shots.composed import build_transitions
from vidkin_research.shots.extents import LabeledTransition, TransitionScores, score_transitions
from vidkin_research.shots.material import edited_videos, test_takes

__all__ = ["DEVELOPED_FAMILIES", "JudgedVideo", "build_held_back", "build_judged", "judge", "score_pieces", "show"]

DEVELOPED_FAMILIES = (
    *(name for name, family in TRANSITION_FAMILIES.items() if not family.held_back),
    *NEGATIVE_FAMILIES,
)
"""Families of composed videos but those that are held back."""

_KINDS: Mapping[str, Transition] = {"same": "jump", "dissolve": "dissolve", "fade": "fade", "wipe": "wipe"}
_DEVELOPED_ON = ("bikes", "testvideo", "fades")
_FILMS: Mapping[str, FilmRecipe] = {
    "films": FilmRecipe(),
    "cuts": FilmRecipe(
        joins={"other": 0.4, "same": 0.3, "reframed": 0.2, "reverse": 0.1},
        disturbances=dict.fromkeys(FilmRecipe().disturbances, 0.06),
    ),
}


@dataclass(frozen=True, slots=True)
class JudgedVideo:
    """A video with all its transitions.

    Attributes:
        group: What it is shown under.
        path: The file.
        labels: Its transitions.
        events: Number of events in it that could be taken for one.
    """

    group: str
    path: Path
    labels: tuple[LabeledTransition, ...] = ()
    events: int = 0


def build_judged(
    chosen: Sources,
    work: Path,
    *,
    edited: Path | None = None,
    share: float = 1.0,
    families: Sequence[str] = DEVELOPED_FAMILIES,
) -> list[JudgedVideo]:
    """Videos of the recordings kept for choosing, composed where they are not in the folder of work yet.

    Args:
        chosen: Takes and photographs that nothing learned from.
        work: Folder of work.
        edited: Folder of edited films with ``truth.json``, of which those that today's detector was developed on count.
        share: Share of the usual number of videos.
        families: Families of transitions and of what is none.
    """
    work.mkdir(parents=True, exist_ok=True)
    count = max(1, round(2 * share))
    restless = restless_takes(chosen.clips, chosen.photographs, work / "restless", max(3, round(14 * share)), 1)
    takes = {"calm": chosen.clips + chosen.photographs, "restless": restless + chosen.clips}
    videos: list[JudgedVideo] = []
    labels: tuple[LabeledTransition, ...]
    for name, own in takes.items():
        few = count if name == "calm" else max(1, count // 2)
        made = build_transitions(own, work / name, count=few, seed=35, families=families)
        for video in made:
            labels = () if video.label is None else (video.label,)
            group = name if video.label is not None else f"{name}: {video.family}"
            videos.append(JudgedVideo(group, video.path, labels, video.events))
    videos += _films(chosen, work, max(1, round(8 * share)))
    if edited is not None:
        for film in edited_videos(edited):
            if film.path.name.startswith(_DEVELOPED_ON):
                labels = film.transitions if not film.path.name.startswith("fades") else ()
                videos.append(JudgedVideo(f"edited: {film.path.stem}", film.path, labels))
    videos += [JudgedVideo("single takes", path, events=1) for path in chosen.clips[:: max(1, round(2 / share))]]
    return videos


def build_held_back(
    data: Path,
    work: Path,
    *,
    edited: Path | None = None,
    share: float = 1.0,
    drawing: int = 0,
    families: Sequence[str] = (*TRANSITION_FAMILIES, *NEGATIVE_FAMILIES),
) -> list[JudgedVideo]:
    """Videos of the test split, composed where they are not in the folder of work yet, and all edited films: nothing is
    learned from them or chosen by them.

    Args:
        data: Folder of ``videos`` and ``photos``.
        work: Folder of work.
        edited: Folder of edited films with ``truth.json``.
        share: Share of the usual number of composed videos.
        drawing: Number of the drawing. A drawing is looked at once: whatever follows from it needs another one.
        families: Families of transitions and of what is none.
    """
    work.mkdir(parents=True, exist_ok=True)
    takes = test_takes(data / "videos", data / "photos")
    videos: list[JudgedVideo] = []
    count = max(1, round(3 * share))
    for made in build_transitions(takes, work / "families", count=count, seed=drawing, families=families):
        if made.label is None:
            videos.append(JudgedVideo(f"nothing: {made.family}", made.path, (), made.events))
        else:
            is_new = TRANSITION_FAMILIES[made.family].held_back
            videos.append(JudgedVideo("families held back" if is_new else "families", made.path, (made.label,)))
    clips = [path for path in takes if path.suffix.lower() in VIDEO_EXTENSIONS]
    folders = sorted(path for path in (data / "photos").iterdir() if path.is_dir())
    images = [sorted(path for path in one.rglob("*") if path.suffix.lower() in IMAGE_EXTENSIONS) for one in folders]
    photographs = sorted(path for own in images for path in own[::5])[:40]
    footage = read_footage(clips, photographs, height=144, width=256)
    cuts = dict.fromkeys(FilmRecipe().disturbances, 0.05)
    recipes = {"films of cuts": FilmRecipe(joins=_FILMS["cuts"].joins, disturbances=cuts), "films": FilmRecipe()}
    for name, recipe in recipes.items():
        for number in range(max(1, round(14 * share))):
            film = compose_film(footage, 200, seed=880_000 + 1000 * drawing + number, recipe=recipe)
            path = work / f"{name.replace(' ', '-')}-{number:02d}.mp4"
            if not path.is_file():
                write_video(path, rgb_pictures(film.pictures), rate=25.0, crf=18 + number % 16)
            joins = [LabeledTransition(_KINDS.get(join.kind, "hard"), join.start, join.end) for join in film.joins]
            videos.append(JudgedVideo(name, path, tuple(sorted(joins, key=attrgetter("start")))))
    for one in edited_videos(edited) if edited is not None else ():
        labels = () if one.path.name.startswith("fades") else one.transitions
        videos.append(JudgedVideo(f"edited: {one.path.stem}", one.path, labels))
    return videos + [JudgedVideo("nothing: single takes", path, events=1) for path in clips]


def _films(chosen: Sources, work: Path, count: int) -> list[JudgedVideo]:
    record = work / "films.json"
    if not record.is_file():
        footage = read_footage(chosen.clips, chosen.photographs, height=144, width=256)
        rows = []
        for name in (*_FILMS, "mixed"):
            for number in range(count if name in _FILMS else (count + 1) // 2):
                file, seed = f"{name}-{number:02d}.mp4", 70_000 + number
                if name == "mixed":
                    made = compose(footage, 300, seed=seed, degrade=False)
                    joins = [("hard", cut, cut) for cut in made.hard]
                    joins += [(kind, *span) for span, kind in zip(made.gradual, made.kinds, strict=True)]
                    pictures = made.pictures
                else:
                    film = compose_film(footage, 200, seed=seed, recipe=_FILMS[name])
                    joins = [(_KINDS.get(join.kind, "hard"), join.start, join.end) for join in film.joins]
                    pictures = film.pictures
                write_video(work / file, rgb_pictures(pictures), rate=25.0, crf=18 + number % 16)
                rows.append({"group": name, "file": file, "joins": sorted(joins, key=lambda join: join[1])})
        record.write_text(json.dumps(rows), encoding="utf-8")
    return [
        JudgedVideo(row["group"], work / row["file"], tuple(LabeledTransition(*join) for join in row["joins"]))
        for row in read_json(record)
    ]


def judge(
    videos: Sequence[JudgedVideo], open_one: Callable[[], str | ShotDetector | PlanesDetector]
) -> dict[str, dict[str, Any]]:
    """Scores of a detector by group, as plain values; ``all`` are transitions, ``nothing`` what is none."""
    found: dict[str, list[tuple[Sequence[Cut], Sequence[LabeledTransition]]]] = {}
    events: dict[str, int] = {}
    for video in videos:
        found.setdefault(video.group, []).append((detect(video.path, open_one()).cuts, video.labels))
        events[video.group] = events.get(video.group, 0) + video.events
    scores = {group: score_transitions(pairs) for group, pairs in found.items()}
    total = sum((one for group, one in scores.items() if not events[group]), TransitionScores())
    nothing = sum((one for group, one in scores.items() if events[group]), TransitionScores())
    rows = {group: {**one.to_dict(), "events": events[group]} for group, one in scores.items()}
    return {**rows, "all": total.to_dict(), "nothing": {**nothing.to_dict(), "events": sum(events.values())}}


def score_pieces(network: CutNetwork, pieces: Sequence[Piece], numbers: Numbers | None = None) -> str:
    """F1, right, false and missed, extents and kinds of a network in pieces, which are taken for 25 frames a second."""
    pairs = []
    for piece in pieces:
        with torch.no_grad():
            answers = network.probabilities(torch.from_numpy(piece.luma)[None], torch.from_numpy(piece.chroma)[None])
        contrasts, times = piece.luma.std((1, 2)), np.arange(len(piece)) / 25
        rows = np.column_stack([answers[0].numpy(), contrasts, times])
        found = Finisher(numbers or Numbers.load(SHIPPED)).push(rows, is_last=True)
        labels = [
            LabeledTransition("hard" if join.kind == "cut" else cast("Transition", join.kind), join.start, join.end)
            for join in piece.joins
        ]
        pairs.append((found, labels))
    scores = score_transitions(pairs)
    one = scores.found
    counts = f"{one.true_positives}, {one.false_positives}, {one.false_negatives}"
    return f"F1 {one.f1:.3f} ({counts}), extent {scores.extent:.2f}, kinds {scores.kinds_right:.2f}"


def show(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each group: F1, right, false and missed, extent and share of kinds right; or false ones of events."""
    lines = []
    for group, row in rows.items():
        right, false, missed = row["right, false, missed"]
        if row.get("events"):
            lines.append(f"{group:34} {false} false of {row['events']}")
        else:
            counts = f"{right}, {false}, {missed}"
            words = f"extent {row['extent']:.2f}  kinds {row['kinds_right']:.2f}"
            lines.append(f"{group:34} F1 {row['f1']:.3f}  {counts:14} {words}")
    return lines
