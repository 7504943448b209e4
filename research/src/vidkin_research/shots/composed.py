"""Encode composed transitions and negatives as videos, and score detectors by family."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidkin._base.files import write_text
from vidkin._base.values import read_json
from vidkin.media import write_video
from vidkin.shots import TRANSITIONS, Cut, DetectedCut
from vidkin_research.made.negatives import NEGATIVE_FAMILIES, make_negative
from vidkin_research.made.transitions import TRANSITION_FAMILIES, TakeReader, make_transition
from vidkin_research.shots.extents import MISSED, LabeledTransition, TransitionScores, score_transitions

__all__ = [
    *("ComposedTransition", "build_transitions", "score_families"),
    *("summarize_confusion", "summarize_families", "summarize_kinds"),
]

_LABELS = "transitions.json"
_RATES = (24.0, 25.0, 30.0)


@dataclass(frozen=True, slots=True)
class ComposedTransition:
    """A composed video with its label.

    Attributes:
        path: Path of the video.
        family: Family of the transition or negative.
        label: The labeled transition; None for a negative.
        seconds: Duration in seconds.
        events: Number of events in a negative that could be mistaken for a transition; 0 for a transition.
        look: Details of how the transition was composed.
        held_back: Whether its family is held out from detector development.
    """

    path: Path
    family: str
    label: LabeledTransition | None
    seconds: float
    events: int = 0
    look: str = ""
    held_back: bool = False


def build_transitions(
    takes: Sequence[Path],
    folder: Path,
    *,
    count: int,
    seed: int = 0,
    families: Sequence[str] = (*TRANSITION_FAMILIES, *NEGATIVE_FAMILIES),
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[ComposedTransition]:
    """Compose videos of each family (H.264, CRF 18 to 32); videos from an earlier call with equal settings are reused.

    Args:
        takes: Single-shot videos, and photographs.
        folder: Output folder.
        count: Number of videos per family.
        seed: Random seed.
        families: Families of transitions and of negatives.
        on_progress: Callback that receives (videos written, total number of videos).
    """
    record = folder / _LABELS
    settings = {"takes": [path.name for path in takes], "count": count, "seed": seed, "families": list(families)}
    if not record.is_file() or read_json(record)["settings"] != settings:
        folder.mkdir(parents=True, exist_ok=True)
        rows = _compose(TakeReader(takes), families, folder, count, seed, on_progress)
        write_text(record, json.dumps({"settings": settings, "videos": rows}, indent=1) + "\n")
    return [
        ComposedTransition(
            folder / row["file"],
            row["family"],
            LabeledTransition(**row["label"]) if row["label"] else None,
            row["seconds"],
            row["events"],
            row["look"],
            row["family"] in TRANSITION_FAMILIES and TRANSITION_FAMILIES[row["family"]].held_back,
        )
        for row in read_json(record)["videos"]
    ]


def _compose(
    takes: TakeReader,
    families: Sequence[str],
    folder: Path,
    count: int,
    seed: int,
    on_progress: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    jobs = [(family, number) for family in families for number in range(count)]
    rows: list[dict[str, Any]] = []
    for done, (family, number) in enumerate(jobs, start=1):
        own = zlib.crc32(f"{seed}/{family}/{number}".encode())
        random = np.random.default_rng(own)
        rate, crf = float(random.choice(_RATES)), int(random.integers(18, 33))
        file = f"{family.replace(' ', '-')}-{number:03d}.mp4"
        row: dict[str, Any] = {"file": file, "family": family, "label": None, "events": 0, "look": ""}
        if family in TRANSITION_FAMILIES:
            made = make_transition(takes, family, seed=own, rate=rate)
            row |= {"label": asdict(LabeledTransition(made.kind, made.start, made.end)), "look": made.look}
            pictures = made.pictures
        else:
            negative = make_negative(takes, family, seed=own)
            row["events"], pictures = negative.events, negative.pictures
        write_video(folder / file, pictures, rate=rate, crf=crf, made_of="composed transitions")
        rows.append({**row, "seconds": len(pictures) / rate})
        on_progress(done, len(jobs))
    return rows


def score_families(
    videos: Sequence[ComposedTransition], cuts: Mapping[Path, Sequence[Cut | DetectedCut]]
) -> dict[str, Any]:
    """Score every family, all transitions, and false detections in negatives; return JSON values.

    Args:
        videos: The composed videos.
        cuts: Detected cuts by video.
    """
    families: dict[str, Any] = {}
    total = TransitionScores()
    negatives = {"false": 0, "events": 0, "minutes": 0.0}
    for family in dict.fromkeys(video.family for video in videos):
        own = [video for video in videos if video.family == family]
        pairs = [(cuts[video.path], [video.label] if video.label else []) for video in own]
        scores = score_transitions(pairs)
        if own[0].label is not None:
            families[family] = scores.to_dict()
            total += scores
            continue
        row = {
            "false": scores.found.false_positives,
            "events": sum(video.events for video in own),
            "minutes": sum(video.seconds for video in own) / 60,
        }
        families[family] = row | _rates(row)
        negatives = {name: negatives[name] + row[name] for name in negatives}
    return {"families": families, "all": total.to_dict(), "negatives": negatives | _rates(negatives)}


def _rates(row: Mapping[str, float]) -> dict[str, float]:
    return {
        "false in ten minutes": 10 * row["false"] / row["minutes"] if row["minutes"] else 0.0,
        "false in 100 events": 100 * row["false"] / row["events"] if row["events"] else 0.0,
    }


def summarize_families(scores: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return table rows: family, F1, correct / false / missed, extent and fraction of correct kinds; for negatives, the
    false detections and their rate."""
    rows = []
    for name, row in {**scores["families"], "all transitions": scores["all"]}.items():
        if "f1" in row:
            counts = " / ".join(str(count) for count in row["right, false, missed"])
            rows.append((name, f"{row['f1']:.3f}", counts, f"{row['extent']:.2f}", f"{row['kinds_right']:.2f}"))
        else:
            rate = f"{row['false in ten minutes']:.1f} in 10 min"
            rows.append((name, "", f"{row['false']} false of {row['events']}", rate, ""))
    row = scores["negatives"]
    rate = f"{row['false in ten minutes']:.1f} in 10 min"
    rows.append(("all negatives", "", f"{row['false']} false of {row['events']}", rate, ""))
    return rows


def summarize_kinds(scores: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return table rows from `TransitionScores.to_dict`: a kind, its number of labels, and its F1."""
    labels: Counter[str] = Counter()
    for pair, count in scores["confusion"].items():
        labels[pair.partition(" as ")[0]] += count
    return [
        (kind, str(labels[kind]), f"{scores['kinds'][kind]:.3f}") for kind in TRANSITIONS if kind in scores["kinds"]
    ]


def summarize_confusion(scores: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return table headings and rows from `TransitionScores.to_dict`: the detected kinds for each labeled kind."""
    pairs = {tuple(pair.split(" as ")): count for pair, count in scores["confusion"].items()}
    kinds = [kind for kind in TRANSITIONS if any(pair[0] == kind for pair in pairs)]
    found = [kind for kind in (*TRANSITIONS, MISSED) if any(pair[1] == kind for pair in pairs)]
    rows = [[true, *(str(pairs.get((true, kind), 0)) for kind in found)] for true in kinds]
    return ["labeled", *found], rows
