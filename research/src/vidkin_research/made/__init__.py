"""Films composed from footage and photographs, with ground truth for every transition and disturbance."""

from vidkin_research.made.film import (
    GRADUAL_JOINS,
    HARD_JOINS,
    SCENE_DISTURBANCES,
    Film,
    FilmRecipe,
    Join,
    compose_film,
)

__all__ = [
    "GRADUAL_JOINS",
    "HARD_JOINS",
    "SCENE_DISTURBANCES",
    "Film",
    "FilmRecipe",
    "Join",
    "compose_film",
]
