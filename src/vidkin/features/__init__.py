"""Room features: frames in, regional descriptors out."""

from vidkin.features.frame_features import FrameExtractor, FrameFeatures

__all__ = ["FrameExtractor", "FrameFeatures"]
