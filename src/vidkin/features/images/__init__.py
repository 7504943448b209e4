"""Classical features of whole pictures, with their published distances."""

from vidkin.features.images.color import ColorHistogram, ColorSpace
from vidkin.features.images.extractor import ImageFeatureExtractor, open_image_extractor
from vidkin.features.images.feature import Image, ImageFeature
from vidkin.features.images.fisher import FisherVectors, improved_fisher_vector
from vidkin.features.images.gabor import describe_patches
from vidkin.features.images.hashed import HashedHistograms, consistent_samples, hash_agreement
from vidkin.features.images.hog import GradientHistogram, GradientLayout
from vidkin.features.images.oasis import BilinearSimilarity, learn_bilinear
from vidkin.features.images.storage import (
    available_features,
    feature_digest,
    load_feature,
    open_feature,
    save_feature,
)
from vidkin.features.images.textons import TextonPyramid
from vidkin.features.images.wavelet import WaveletSignature
from vidkin.features.images.words import VisualWords

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
