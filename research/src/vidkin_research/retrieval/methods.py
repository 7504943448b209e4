"""The methods of `vidkin benchmark fgvr` and `fgir`, as training objectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vidkin.errors import InvalidArgumentError
from vidkin.training.recipe import ObjectiveRecipe

__all__ = ["METHODS", "Method", "MethodInput", "method_named"]

MethodInput = Literal["frozen", "features", "pixels"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """One row of the comparison.

    Attributes:
        name: Short name, used in file names.
        title: Name in tables.
        input: ``features``: an encoder's head on features from the frozen network. ``pixels``: C3D. ``frozen``: the
            features themselves.
        objectives: Loss terms with the published constants; empty for a method without training.
        published: Published QP in percent, on the videos and averaged over the source's three image sets; None if not
            published.
        ours: Whether the method is ours rather than from the source.
    """

    name: str
    title: str
    input: MethodInput = "features"
    objectives: tuple[ObjectiveRecipe, ...] = ()
    published: tuple[float | None, float | None] = (None, None)
    ours: bool = False


def _method(
    name: str,
    title: str,
    *terms: str,
    published: tuple[float | None, float | None] = (None, None),
    ours: bool = False,
    input: MethodInput = "features",
) -> Method:
    return Method(
        name=name,
        title=title,
        input=input,
        objectives=tuple(ObjectiveRecipe(name=term) for term in terms),
        published=published,
        ours=ours,
    )


METHODS: tuple[Method, ...] = (
    _method("backbone", "Frozen features, no encoder", input="frozen"),
    _method("untrained", "Untrained encoder"),
    _method("c3d", "3D-CNN", "classification", published=(25.89, None), input="pixels"),
    _method("classification", "Softmax, same encoder", "classification"),
    _method("triplet", "Triplet", "triplet", published=(46.62, 60.80)),
    _method("quadruplet1", "Quadruplet-1", "quadruplet1", published=(51.20, 65.01)),
    _method("quadruplet2a", "Quadruplet-2a", "quadruplet2a", published=(50.90, 66.81)),
    _method("quadruplet2b", "Quadruplet-2b", "quadruplet2b", published=(50.85, 56.30)),
    _method("quadlet", "Quadlet", "quadlet", published=(52.42, 73.16)),
    _method("radial", "Radial, published gradient", "radial", published=(60.70, 75.80)),
    _method("radial_detached", "Radial, no gradient through R", "radial_detached", published=(60.70, 75.80)),
    _method("angular", "Angular, quadlet form", "angular"),
    _method("all_quadlets", "All quadlets of a batch", "all_quadlets", ours=True),
    _method("hierarchical_ap", "Hierarchical AP", "hierarchical_ap", ours=True),
    _method("quadlets_and_ap", "All quadlets + hierarchical AP", "all_quadlets", "hierarchical_ap", ours=True),
    Method(
        name="combined",
        title="All quadlets + hierarchical AP + .3 Radial",
        objectives=(
            ObjectiveRecipe(name="all_quadlets"),
            ObjectiveRecipe(name="hierarchical_ap"),
            ObjectiveRecipe(name="radial_detached", weight=0.3),
        ),
        ours=True,
    ),
)
"""All methods in table order: untrained features, the source's methods, our methods."""


def method_named(name: str) -> Method:
    """Find a method by name.

    Raises:
        InvalidArgumentError: The name is unknown; the message lists the known names.
    """
    for method in METHODS:
        if method.name == name:
            return method
    raise InvalidArgumentError(f"a method must be one of {', '.join(method.name for method in METHODS)}, got {name!r}")
