"""Compose films from scenes, with every kind of join, including joins within a scene, and look-alike disturbances."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin_research.made.disturbances import DISTURBANCES, disturb
from vidkin_research.made.footage import Footage
from vidkin_research.made.scene_maker import SceneMaker
from vidkin_research.made.scenes import Framing, Scene, ShotPictures

__all__ = ["GRADUAL_JOINS", "HARD_JOINS", "SCENE_DISTURBANCES", "Film", "FilmRecipe", "Join", "compose_film"]

HARD_JOINS = ("other", "same", "reframed", "reverse")
GRADUAL_JOINS = ("dissolve", "fade", "wipe")
SCENE_DISTURBANCES = ("fast", "walkers", "hand-held", "whip pan", "turntable")
"""Distractors that are part of the scene, unlike `DISTURBANCES`, which are applied to its frames."""

MIN_CHANGE = 0.08
"""Minimum structural change at a join within a scene: 1 - correlation of downscaled luma."""

# Maximum number of frames of dissolves and wipes.
_MAX_MIX = 30
_TRIES = 6


@dataclass(frozen=True, slots=True)
class Join:
    """A join between two shots.

    Attributes:
        kind: One of `HARD_JOINS` or `GRADUAL_JOINS`.
        start: First frame of the transition; for a hard cut, the first frame of the new shot.
        end: Last frame of the transition; for a hard cut, ``start``.
    """

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """The frames of a film, with its joins.

    Attributes:
        pictures: [T, 3, H, W] uint8, luma and chroma.
        joins: Joins in frame order.
    """

    pictures: NDArray[np.uint8]
    joins: tuple[Join, ...]

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def hard(self) -> tuple[int, ...]:
        """First frames of new shots after hard cuts."""
        return tuple(join.start for join in self.joins if join.kind in HARD_JOINS)

    @property
    def gradual(self) -> tuple[tuple[int, int], ...]:
        """First and last frame of each gradual transition."""
        return tuple((join.start, join.end) for join in self.joins if join.kind in GRADUAL_JOINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmRecipe:
    """Settings from which a film is composed.

    Attributes:
        joins: Relative frequency of each kind of join. Empty makes a film of one shot.
        disturbances: Probability that a shot has a disturbance, by kind.
        shortest: Minimum number of frames of a shot.
        near_ends: Probability that the first and last cuts are two to five frames from the ends.
        close: Probability that a shot has only three frames.
        people: Probability that a new scene shows people in front of a fixed camera.
    """

    joins: Mapping[str, float] = field(
        default_factory=lambda: {
            "other": 0.25,
            "same": 0.2,
            "reframed": 0.2,
            "reverse": 0.1,
            "dissolve": 0.1,
            "fade": 0.09,
            "wipe": 0.06,
        }
    )
    disturbances: Mapping[str, float] = field(
        default_factory=lambda: dict.fromkeys((*SCENE_DISTURBANCES, *DISTURBANCES), 0.08)
    )
    shortest: int = 8
    near_ends: float = 0.3
    close: float = 0.06
    people: float = 0.0

    def __post_init__(self) -> None:
        for given, known in (
            (self.joins, (*HARD_JOINS, *GRADUAL_JOINS)),
            (self.disturbances, (*SCENE_DISTURBANCES, *DISTURBANCES)),
        ):
            unknown = sorted(set(given) - set(known))
            if unknown:
                raise InvalidArgumentError(
                    f"joins and disturbances must be among {', '.join(known)}, got {unknown[0]!r}"
                )


def compose_film(footage: Footage, length: int, *, seed: int, recipe: FilmRecipe | None = None) -> Film:
    """Compose a film of ``length`` frames; the same seed gives the same film.

    Raises:
        InvalidArgumentError: The length is below 2.
    """
    if length < 2:
        raise InvalidArgumentError(f"length must be at least 2 frames, got {length}")
    return _FilmComposer(footage, np.random.default_rng(seed), recipe or FilmRecipe(), length).compose()


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """Content of a shot: a scene from a start time, with a framing."""

    scene: Scene
    start: float
    framing: Framing
    lasting: tuple[str, ...] = ()

    def pictures(self, first: int, length: int) -> ShotPictures:
        return self.scene.pictures(self.start + first + np.arange(length, dtype=np.float64), self.framing)

    def later(self, frames: float) -> _View:
        return replace(self, start=self.start + frames)


class _FilmComposer:
    def __init__(self, footage: Footage, random: np.random.Generator, recipe: FilmRecipe, length: int) -> None:
        self._maker = SceneMaker(footage, random)
        self._random, self._recipe, self._length = random, recipe, length
        self._joins: list[Join] = []

    def compose(self) -> Film:
        lengths = self._shot_lengths()
        kinds = ["", *(self._kind(length, before) for before, length in itertools.pairwise(lengths))]
        view = other = self._new_view()
        shots: list[ShotPictures] = []
        going: ShotPictures = np.zeros((0, 0, 0, 0), np.float32)
        for number, (kind, length) in enumerate(zip(kinds, lengths, strict=True)):
            begin, following = sum(lengths[:number]), view
            if kind in GRADUAL_JOINS:
                following, other = self._new_view(), view
            elif kind:
                kind, following, other = self._following(kind, view, other, lengths[number - 1])
                self._joins.append(Join(kind, begin, begin))
            # During a dissolve or wipe, the previous shot continues, including its disturbance.
            mixed = kinds[number + 1 : number + 2] in (["dissolve"], ["wipe"])
            shot = following.pictures(0, length + (_MAX_MIX if mixed else 0))
            for name in following.lasting:
                shot = disturb(shot, name, self._random)
            if kind == "fade":
                self._fade(shots[-1], shot[:length], begin)
            elif kind in GRADUAL_JOINS:
                self._mix(kind, going, shot[:length], begin)
            shots.append(shot[:length])
            view, going = following, shot[length:]
        pictures = np.concatenate(shots)[: self._length]
        pictures += self._random.normal(size=pictures.shape[-2:]).astype(np.float32) * self._random.uniform(0, 2)
        joins = sorted(self._joins, key=lambda join: join.start)
        return Film(pictures.clip(0, 255).astype(np.uint8), tuple(joins))

    def _shot_lengths(self) -> list[int]:
        random, recipe, rest = self._random, self._recipe, self._length
        if not recipe.joins:
            return [rest]
        first = int(random.integers(2, 6)) if random.random() < recipe.near_ends else 0
        last = int(random.integers(2, 6)) if random.random() < recipe.near_ends else 0
        if first + last + 2 > rest:
            first, last = rest // 2, 0
        lengths = [first] if first else []
        rest -= first + last
        while rest > 0:
            length = (
                3
                if random.random() < recipe.close
                else int(np.exp(random.uniform(np.log(recipe.shortest), np.log(100))))
            )
            length = length if rest - length >= 3 else rest
            lengths.append(length)
            rest -= length
        return [*lengths, last] if last else lengths

    def _kind(self, length: int, before: int) -> str:
        kinds = list(self._recipe.joins)
        weights = np.array([self._recipe.joins[kind] for kind in kinds], float)
        kind = str(self._random.choice(kinds, p=weights / weights.sum()))
        if kind in GRADUAL_JOINS and (length < 10 or before < 10):
            hard = [name for name in kinds if name in HARD_JOINS]
            return str(self._random.choice(hard)) if hard else "other"
        return kind

    def _new_view(self) -> _View:
        random, chances = self._random, self._recipe.disturbances
        kind = "any"
        for name in SCENE_DISTURBANCES:
            if random.random() < chances.get(name, 0):
                kind = name
        if self._recipe.people and random.random() < self._recipe.people:
            kind = "people"
        scene = self._maker.scene(kind)
        start = 0.0 if kind == "whip pan" else float(random.uniform(0, 200))
        framing = self._maker.framing(
            widest=1.0 if kind == "turntable" else 0.95, closest=1.0 if kind == "turntable" else 0.35
        )
        lasting = tuple(name for name in DISTURBANCES if random.random() < chances.get(name, 0))
        return _View(scene, start, framing, lasting)

    def _following(self, kind: str, view: _View, other: _View, length: int) -> tuple[str, _View, _View]:
        """Return the actual kind of join, the view after a hard join, and the view that a reverse shot returns to."""
        if kind == "reverse" and other is not view:
            following = other.later(float(self._random.uniform(5, 120)))
            if self._change(view, length, following) >= MIN_CHANGE:
                return kind, following, view.later(length)
        if kind in ("same", "reframed", "reverse"):
            for _ in range(_TRIES):
                later = view.later(length + float(self._random.uniform(8, 250)))
                if kind != "same":
                    later = replace(later, framing=self._maker.reframe(view.framing))
                if self._change(view, length, later) >= MIN_CHANGE:
                    return ("same" if kind == "same" else kind), later, view.later(length)
        return "other", self._new_view(), view.later(length)

    def _change(self, view: _View, length: int, following: _View) -> float:
        """Return 1 - correlation of the downscaled luma before and after the join."""
        before, after = view.pictures(length - 1, 1)[0, 0], following.pictures(0, 1)[0, 0]
        rows = np.linspace(0, before.shape[0] - 1, 36).astype(int)[:, None]
        columns = np.linspace(0, before.shape[1] - 1, 64).astype(int)[None]
        one, two = (picture[rows, columns] - picture.mean() for picture in (before, after))
        norm = np.sqrt((one * one).sum() * (two * two).sum())
        return 1.0 - float((one * two).sum() / norm) if norm > 1e-3 else 0.0

    def _mix(self, kind: str, going: ShotPictures, shot: ShotPictures, begin: int) -> None:
        """Dissolve or wipe from the previous shot, which continues meanwhile."""
        random = self._random
        span = int(random.integers(3, min(_MAX_MIX + 1, len(shot) - 4)))
        course = ((np.arange(span) + 1) / (span + 1)).astype(np.float32)
        if kind == "dissolve":
            if random.random() < 0.3:
                course = course**2 * (3 - 2 * course)
            part = course[:, None, None, None]
            shot[:span] = going[:span] * (1 - part) + shot[:span] * part
        else:
            for old, new, part in zip(going, shot, course, strict=False):
                # The area [H, W] that shows the new shot, growing from a side, along the diagonal or from the middle.
                shape = new.shape[1:]
                down = ((np.arange(shape[0]) + 0.5) / shape[0])[:, None]
                across = ((np.arange(shape[1]) + 0.5) / shape[1])[None]
                fields = (
                    across + 0 * down,
                    1 - across + 0 * down,
                    down + 0 * across,
                    1 - down + 0 * across,
                    (down + across) / 2,
                    np.hypot(down - 0.5, across - 0.5) / 0.71,
                )
                area: NDArray[np.bool_] = fields[int(begin) % len(fields)] < float(part)
                np.copyto(new, old, where=~area)
        self._joins.append(Join(kind, begin, begin + span - 1))

    def _fade(self, before: ShotPictures, after: ShotPictures, begin: int) -> None:
        """Fade out to a plain background and back in; the background holds for a moment at the start of the new shot.

        If too few frames of the previous shot are free of other transitions, this becomes a hard cut.
        """
        random = self._random
        free = begin - 5 - max((join.end for join in self._joins), default=-1)
        if free < 4:
            self._joins.append(Join("other", begin, begin))
            return
        ground = np.full((3, 1, 1), _NEUTRAL, np.float32)
        ground[0] = 16.0 if random.random() < 0.7 else 235.0 if random.random() < 0.7 else random.uniform(16, 235)
        out = int(random.integers(3, min(40, free)))
        room = len(after) - 4
        hold = int(random.integers(0, max(1, min(24, room // 2))))
        into = int(random.integers(3, max(4, min(40, room - hold))))
        course = ((np.arange(out) + 1) / out).astype(np.float32)[:, None, None, None]
        before[-out:] = before[-out:] * (1 - course) + ground * course
        after[:hold] = ground
        course = (np.arange(into) / into).astype(np.float32)[:, None, None, None]
        after[hold : hold + into] = ground * (1 - course) + after[hold : hold + into] * course
        # The background holds for less than a second, so both fades count as one transition.
        self._joins.append(Join("fade", begin - out, begin + hold + into - 1))


_NEUTRAL = 128.0
