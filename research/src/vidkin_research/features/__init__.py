"""Classical image features with their published distances."""

from vidkin_research.features.color import ColorHistogram, ColorSpace
from vidkin_research.features.extractor import ImageFeatureExtractor, open_image_extractor
from vidkin_research.features.feature import Image, ImageFeature
from vidkin_research.features.fisher import FisherVectors, improved_fisher_vector
from vidkin_research.features.gabor import describe_patches
from vidkin_research.features.hashed import HashedHistograms, consistent_samples, hash_agreement
from vidkin_research.features.hog import GradientHistogram, GradientLayout
from vidkin_research.features.storage import (
    BilinearSimilarity,
    available_features,
    feature_digest,
    learn_bilinear,
    load_feature,
    open_feature,
    save_feature,
)
from vidkin_research.features.texture import TextonPyramid, WaveletSignature
from vidkin_research.features.words import VisualWords

__all__ = [
    "BilinearSimilarity",
    "ColorHistogram",
    "ColorSpace",
    "FisherVectors",
    "GradientHistogram",
    "GradientLayout",
    "HashedHistograms",
    "Image",
    "ImageFeature",
    "ImageFeatureExtractor",
    "TextonPyramid",
    "VisualWords",
    "WaveletSignature",
    "available_features",
    "consistent_samples",
    "describe_patches",
    "feature_digest",
    "hash_agreement",
    "improved_fisher_vector",
    "learn_bilinear",
    "load_feature",
    "open_feature",
    "open_image_extractor",
    "save_feature",
]
