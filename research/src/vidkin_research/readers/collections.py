"""Public collections used in the publications, with folder, published number of items, and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vidkin.errors import InvalidArgumentError

__all__ = ["PUBLIC_COLLECTIONS", "PublicCollection", "public_collection"]


@dataclass(frozen=True, kw_only=True)
class PublicCollection:
    """A public collection.

    Attributes:
        name: Name of the collection, of its reader, and of its folder in the data folder.
        video: Whether its items are videos.
        items: Published number of items.
        classes: Published number of subcategories.
        has_categories: Whether it has two levels of labels, as quadlets require.
        where: Where to get it.
        options: Options of its reader.
        about: Short description.
    """

    name: str
    video: bool = False
    items: int
    classes: int
    has_categories: bool = False
    where: str
    options: Mapping[str, Any] = field(default_factory=dict)
    about: str


_HELD = {"validation": 0.1}

PUBLIC_COLLECTIONS: tuple[PublicCollection, ...] = (
    PublicCollection(
        name="pet",
        items=7349,
        classes=37,
        has_categories=True,
        where="www.robots.ox.ac.uk/~vgg/data/pets",
        options=_HELD,
        about="photographs of 25 dog breeds and 12 cat breeds (CnD)",
    ),
    PublicCollection(
        name="head_pose",
        items=1890,
        classes=270,
        has_categories=True,
        where="robotics.csie.ncku.edu.tw/Databases/FaceDetect_PoseEstimate.htm",
        about="heads of 90 people facing front, left or right (FcP)",
    ),
    PublicCollection(
        name="zappos",
        items=50025,
        classes=21,
        has_categories=True,
        where="vision.cs.utexas.edu/projects/finegrained/utzap50k",
        about="catalog photographs of shoes in 4 categories and 21 types (FtW)",
    ),
    PublicCollection(
        name="vb100",
        video=True,
        items=307,
        classes=21,
        has_categories=True,
        where="VB100 (Ge et al. 2016) as birds/SPECIES/*.mp4, and your own dog videos as dogs/BREED/*.mp4, because "
        "those of the paper are not public",
        options={**_HELD, "species": 12},
        about="videos of 12 bird species and 9 dog breeds (Dog-Birds)",
    ),
    PublicCollection(
        name="flowers102",
        items=8189,
        classes=102,
        where="www.robots.ox.ac.uk/~vgg/data/flowers/102",
        about="photographs of 102 flower species",
    ),
    PublicCollection(
        name="aircraft",
        items=10000,
        classes=100,
        where="www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft",
        about="photographs of 100 aircraft variants",
    ),
    PublicCollection(
        name="nabirds",
        items=48562,
        classes=555,
        where="dl.allaboutbirds.org/nabirds",
        about="photographs of North American birds",
    ),
    PublicCollection(
        name="cars",
        items=16185,
        classes=196,
        where="ai.stanford.edu/~jkrause/cars/car_dataset.html",
        about="photographs of 196 cars by make, model and year",
    ),
    PublicCollection(
        name="dogs",
        items=20580,
        classes=120,
        where="vision.stanford.edu/aditya86/ImageNetDogs",
        about="photographs of 120 dog breeds",
    ),
)
"""The sets of the Radial loss paper, then those of the two-head classifier."""


def public_collection(name: str) -> PublicCollection:
    """Find a collection by name.

    Raises:
        InvalidArgumentError: The name is unknown; the message lists the known names.
    """
    for collection in PUBLIC_COLLECTIONS:
        if collection.name == name:
            return collection
    raise InvalidArgumentError(
        f"a public collection must be one of {', '.join(each.name for each in PUBLIC_COLLECTIONS)}, got {name!r}"
    )
