"""Room features: frames in, regional descriptors out."""

from vidkin.features.frame_features import FrameExtractor, FrameFeatures
from vidkin.features.information import bar_boxes, frame_information
from vidkin.features.registry import (
    ExtractorFactory,
    available_extractors,
    better_extractor_hint,
    open_extractor,
    register_extractor,
)
from vidkin.features.whitening import Whitening, fit_whitening

__all__ = [
    "ExtractorFactory",
    "FrameExtractor",
    "FrameFeatures",
    "Whitening",
    "available_extractors",
    "bar_boxes",
    "better_extractor_hint",
    "fit_whitening",
    "frame_information",
    "open_extractor",
    "register_extractor",
]
