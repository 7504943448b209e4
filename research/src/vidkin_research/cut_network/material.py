"""Store composed and real videos as pieces in a working folder. Learning and choosing settings use different
recordings, and the test split is not used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin._base.values import read_json
from vidkin.shots.network import GRID
from vidkin_research.cut_network.pieces import Join, Piece, read_piece, shrink, write_pieces
from vidkin_research.cut_network.stills import little, slides, whips
from vidkin_research.frame_encoder.held_back import is_held_back_clip
from vidkin_research.made import GRADUAL_JOINS, FilmRecipe, compose_film
from vidkin_research.made.footage import Footage, read_footage
from vidkin_research.made.gradual_sequences import compose_gradual
from vidkin_research.made.negatives import NEGATIVE_FAMILIES
from vidkin_research.made.restless import restless_takes
from vidkin_research.made.sequences import compose
from vidkin_research.made.transitions import TRANSITION_FAMILIES
from vidkin_research.shots.composed import build_transitions
from vidkin_research.shots.material import TEST_CLIPS

__all__ = ["Sources", "choose_sources", "join_fades", "prepare"]

logger = logging.getLogger(__name__)

# Number of frames of a composed film, and maximum number read from a real take.
_LENGTH, _LONGEST = 240, 600
_PHOTOGRAPHS = 150
# Luma deviation of a plain background, and the frames up to which one does not divide a fade or two cuts.
_PLAIN, _FADE_GAP, _CUT_GAP = 2.0, 25, 12

_RECIPES: tuple[tuple[float, FilmRecipe], ...] = (
    (0.35, FilmRecipe()),
    (
        0.3,
        FilmRecipe(
            joins={"other": 0.3, "same": 0.4, "reframed": 0.2, "reverse": 0.1},
            disturbances=dict.fromkeys(FilmRecipe().disturbances, 0.05),
            people=0.3,
        ),
    ),
    (0.2, FilmRecipe(joins={}, disturbances=dict.fromkeys(FilmRecipe().disturbances, 0.25))),
    (0.15, FilmRecipe(joins={"other": 0.5, "same": 0.3, "reframed": 0.2}, disturbances={}, close=0.3)),
)


@dataclass(frozen=True, slots=True)
class Sources:
    """Recordings and photographs.

    Attributes:
        clips: Videos of one shot each.
        photographs: Images.
    """

    clips: list[Path] = field(default_factory=list)
    photographs: list[Path] = field(default_factory=list)


def choose_sources(data: Path, left_out: Iterable[str] = ()) -> tuple[Sources, Sources]:
    """Choose the recordings and photographs to learn from, and those used to choose settings.

    Args:
        data: Folder with ``clips``, ``videos``, ``labelled`` and ``photos``.
        left_out: Names of clips that hold cuts.
    """
    learned, chosen = Sources(), Sources()
    cut = set(left_out)
    scenes = read_json(data / "clips" / "clips.json")
    for name, entry in sorted(scenes.items()):
        if name not in cut:
            (chosen if is_held_back_clip(int(entry["scene"])) else learned).clips.append(data / "clips" / name)
    aerial = [path for path in _files(data / "labelled" / "aerial", VIDEO_EXTENSIONS) if path.name not in cut][::5]
    folders = [_files(data / "videos", VIDEO_EXTENSIONS), aerial]
    folders.append(_files(data / "labelled" / "fruit", VIDEO_EXTENSIONS)[::12])
    for paths in folders:
        recordings: dict[Path, list[Path]] = {}
        for path in paths:
            if not path.name.startswith(TEST_CLIPS):
                recordings.setdefault(path.parent / path.stem.partition("-")[0], []).append(path)
        for place, own in enumerate(recordings.values()):
            (chosen if place % 4 == 1 else learned).clips.extend(own)
    for folder in sorted(path for path in (data / "photos").iterdir() if path.is_dir()):
        images = _files(folder, IMAGE_EXTENSIONS)
        parts = ([path for place, path in enumerate(images) if place % 5 in own] for own in ((1, 3, 4), (2,)))
        for sources, part, most in zip((learned, chosen), parts, (_PHOTOGRAPHS, 12), strict=True):
            sources.photographs.extend(filter(_is_readable, part[:: max(1, len(part) // most)]))
    return learned, chosen


def _files(folder: Path, extensions: frozenset[str]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in extensions)


def _is_readable(path: Path) -> bool:
    try:
        Image.open(path).close()
    except OSError:
        return False
    return True


def prepare(
    sources: Sources, work: Path, *, share: float = 1.0, seed: int = 0, groups: Collection[str] | None = None
) -> list[Path]:
    """Compose and read all material that is not stored in the working folder yet, and return its archives.

    Args:
        sources: Takes and photographs to learn from.
        work: Working folder, outside the repository.
        share: Share of the usual number of pieces.
        seed: Seed of what is drawn.
        groups: Names of the archives to make; None makes all.
    """
    work.mkdir(parents=True, exist_ok=True)
    clips = sources.clips

    def many(count: int) -> int:
        return max(1, round(share * count))

    footage: list[Footage] = []

    def read() -> Footage:
        if not footage:
            footage.append(read_footage(clips, sources.photographs, height=GRID[0], width=GRID[1]))
        return footage[0]

    def restless(count: int, *, pans: bool) -> list[Path]:
        folder = work / ("pans" if pans else "restless")
        return restless_takes(clips, sources.photographs, folder, many(count), seed, pans=pans)

    def families(takes: Sequence[Path], name: str, count: int) -> Iterator[Piece]:
        kinds = [kind for kind, family in TRANSITION_FAMILIES.items() if not family.held_back]
        own = build_transitions(takes, work / name, count=many(count), seed=seed, families=[*kinds, *NEGATIVE_FAMILIES])
        for video in own:
            joins = [] if video.label is None else [Join(video.label.kind, video.label.start, video.label.end)]
            yield read_piece(video.path, joins)

    steps: dict[str, Callable[[], Iterator[Piece]]] = {
        "takes": lambda: (read_piece(path, most=_LONGEST) for path in clips),
        "films": lambda: (_film_piece(read(), seed, number) for number in range(many(240))),
        "gradual": lambda: (_gradual_piece(read(), seed, number) for number in range(many(200))),
        "mixed": lambda: (_mixed_piece(read(), seed, number) for number in range(many(110))),
        "families": lambda: families(clips + sources.photographs[::8], "families", 5),
        "little": lambda: (little(sources.photographs, work / "little", seed, number) for number in range(many(160))),
        "restless": lambda: (read_piece(path) for path in restless(30, pans=False) + restless(30, pans=True)),
        "slides": lambda: (slides(seed, number) for number in range(many(60))),
        "whips": lambda: (whips(sources.photographs, work / "whips", seed, number) for number in range(many(100))),
        "families-restless": lambda: families(restless(30, pans=False) + clips[:20], "families-restless", 2),
    }
    stored = []
    for name, make in steps.items():
        if groups is not None and name not in groups:
            continue
        stored.append(work / f"{name}.npz")
        if not stored[-1].is_file():
            write_pieces(stored[-1], [join_fades(piece) for piece in make()])
            logger.info("%s is stored", stored[-1])
    return stored


def _film_piece(footage: Footage, seed: int, number: int) -> Piece:
    random = np.random.default_rng((seed, number, 1))
    recipe = _RECIPES[int(random.choice(len(_RECIPES), p=[share for share, _ in _RECIPES]))][1]
    film = compose_film(footage, _LENGTH, seed=(seed << 20) + number, recipe=recipe)
    kinds = {"same": "jump", **{kind: kind for kind in GRADUAL_JOINS}}
    joins = [Join(kinds.get(join.kind, "hard"), join.start, join.end) for join in film.joins]
    return Piece(*shrink(film.pictures), tuple(joins))


def _gradual_piece(footage: Footage, seed: int, number: int) -> Piece:
    made = compose_gradual(footage, _LENGTH, seed=(seed << 20) + number)
    return Piece(*shrink(made.pictures), _joins(made.hard, made.gradual, made.kinds))


def _mixed_piece(footage: Footage, seed: int, number: int) -> Piece:
    made = compose(footage, _LENGTH, seed=(seed << 20) + number)
    return Piece(*shrink(made.pictures), _joins(made.hard, made.gradual, made.kinds))


def _joins(hard: Sequence[int], gradual: Sequence[tuple[int, int]], kinds: Sequence[str]) -> tuple[Join, ...]:
    joins = [Join("cut", cut, cut) for cut in hard]
    joins += [Join(kind, *span) for span, kind in zip(gradual, kinds, strict=True)]
    return tuple(sorted(joins, key=lambda join: join.start))


def join_fades(piece: Piece) -> Piece:
    """Merge joins around a plain background into one fade, as detectors count them.

    Two fades may be a second apart, two sudden joins half a second.
    """
    contrasts = piece.luma.reshape(len(piece), -1).std(1)
    joined: list[Join] = []
    for join in piece.joins:
        before = joined[-1] if joined else None
        if before is not None and before.end < join.start <= len(contrasts):
            first = before.end + (before.kind in GRADUAL_JOINS)
            is_plain = bool((contrasts[first : join.start] < _PLAIN).all())
            sudden = before.kind not in GRADUAL_JOINS and join.kind not in GRADUAL_JOINS
            fades = before.kind == join.kind == "fade"
            if is_plain and (
                (fades and join.start - first <= _FADE_GAP) or (sudden and join.start - first <= _CUT_GAP)
            ):
                end = join.end if fades else join.start - 1
                if end > before.start:
                    joined[-1] = Join("fade", before.start, end)
                    continue
        joined.append(join)
    return Piece(piece.luma, piece.chroma, tuple(joined))
