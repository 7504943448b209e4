"""Augmentations on batches of images, as pure functions of (images, seed)."""

from vidkin.datasets.augmentation.geometry import WarpSettings, random_warp
from vidkin.datasets.augmentation.pairs import EditSettings, PairSettings, edit_images, make_pairs, to_float

__all__ = [
    "EditSettings",
    "PairSettings",
    "WarpSettings",
    "edit_images",
    "make_pairs",
    "random_warp",
    "to_float",
]
