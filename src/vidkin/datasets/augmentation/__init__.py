"""Augmentations of image batches, as pure functions of (images, seed)."""

from vidkin.datasets.augmentation.clip_views import (
    LEAST_SHARED,
    OPERATIONS,
    StrongSettings,
    TemporalEdit,
    TemporalSettings,
    rand_augment,
    strong_view,
    weak_view,
)
from vidkin.datasets.augmentation.geometry import (
    WarpSettings,
    add_borders,
    film_screen,
    picture_in_picture,
    random_warp,
    reframe,
    split_screen,
    stretch,
    video_in_video,
    warp,
)
from vidkin.datasets.augmentation.overlays import add_caption, add_logo, add_sticker, lay_over
from vidkin.datasets.augmentation.pairs import EditSettings, PairSettings, edit_images, make_pairs, to_float

__all__ = [
    "LEAST_SHARED",
    "OPERATIONS",
    "EditSettings",
    "PairSettings",
    "StrongSettings",
    "TemporalEdit",
    "TemporalSettings",
    "WarpSettings",
    "add_borders",
    "add_caption",
    "add_logo",
    "add_sticker",
    "edit_images",
    "film_screen",
    "lay_over",
    "make_pairs",
    "picture_in_picture",
    "rand_augment",
    "random_warp",
    "reframe",
    "split_screen",
    "stretch",
    "strong_view",
    "to_float",
    "video_in_video",
    "warp",
    "weak_view",
]
