"""Films composed of footage and photographs, in which every transition and disturbance is known."""

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
