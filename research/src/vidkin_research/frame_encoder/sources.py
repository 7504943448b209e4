"""Sources of the training images, with licenses: Debian packages and folders of shared data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FOLDERS", "PACKAGES", "Folder", "Package"]


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package with images for training.

    Attributes:
        name: Name of the package in Debian 12.
        terms: Licenses of its images, as stated in its copyright file.
        limit: Maximum number of images, chosen by a checksum of their names.
        tiles: Maximum number of separate images into which a large image is cut.
        short_side: Minimum shorter side of images in pixels.
        left_out: Images whose paths contain one of these strings are left out.
    """

    name: str
    terms: str
    limit: int = 3000
    tiles: int = 1
    short_side: int = 96
    left_out: tuple[str, ...] = ()


PACKAGES = (
    Package("tuxpaint-stamps-default", "GPL-2; stamps partly in the public domain"),
    Package(
        "openclipart-png",
        "public domain dedication of each author",
        limit=3500,
        left_out=("/shapes/stars/", "/icons/flat-theme/action/", "/special/gradients/"),
    ),
    Package("gcompris-qt-data", "GPL-3+, CC-BY-SA 2.0 to 4.0, CC-BY, CC0, public domain, GFDL (each file listed)"),
    Package("gnome-backgrounds", "CC-BY-SA 2.0 and 3.0, CC-BY 2.0", tiles=16),
    Package("mate-backgrounds", "GPL-2+, CC-BY-SA-4.0", tiles=16),
    Package("plasma-workspace-wallpapers", "GPL-2+ (LGPL-3 in the metadata of some)", tiles=16, short_side=700),
    Package("desktop-base", "GPL-2+, CC-BY-SA-3.0", limit=40, tiles=4, short_side=700),
    Package("ukui-wallpapers", "CC-BY-SA-3.0", tiles=16),
    Package("lomiri-wallpapers-16.04", "CC-BY-4.0, CC-BY-SA 3.0 and 4.0, CC0", tiles=16),
    Package("lomiri-wallpapers-20.04", "CC-BY-4.0, CC-BY-SA 3.0 and 4.0, CC0", tiles=16),
    Package("sway-backgrounds", "Expat", limit=4, tiles=8),
    Package(
        "stellarium-data",
        "GPL-2+, CC-BY 3.0, CC-BY-SA 3.0, Free Art License, statements of observatories (each file listed)",
        limit=900,
    ),
    Package("supertuxkart-data", "CC-BY-SA 3.0 and 4.0, CC0, CC-BY 3.0, GPL (each file listed)", limit=2200),
    Package("wesnoth-1.16-data", "GPL-2+", limit=1500, short_side=160),
    Package("kgeography-data", "GPL-2+, GFDL-1.2+, CC0", limit=600),
    Package("ktuberling-data", "GPL-2+, LGPL-2.1+, GFDL-1.2+, CC0, CC-BY"),
)
"""Packages with the licenses of their images. The images themselves are not part of the repository or of any wheel."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in the shared data.

    Attributes:
        name: Path relative to the data folder.
        terms: License and origin.
        frames: Frames per second to sample from videos; 0 for a folder of photographs.
        most: Maximum number of frames per video.
    """

    name: str
    terms: str
    frames: float = 0.0
    most: int = 0


FOLDERS = (
    Folder("photos/flowers/train", "CC BY 2.0, each by its Flickr author (TensorFlow's flower_photos)"),
    Folder("photos/clothing", "CC0, alexeygrigorev/clothing-dataset-small"),
    Folder("labelled/grocery/train", "MIT, marcusklasson/GroceryStoreDataset"),
    Folder("clips", "Apache-2.0, MIT or BSD, see clips.json", frames=2.0, most=16),
    Folder("videos", "CC BY 4.0 (intel-iot-devkit), CC0 (mdn), BSD (ThreatExchange)", frames=1.0, most=40),
    Folder("labelled/aerial", "CC0, DroneDetectionThesis", frames=0.25, most=2),
    Folder("labelled/fruit", "CC BY-SA 4.0, Fruits-360", frames=8.0, most=2),
)
