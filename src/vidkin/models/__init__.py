"""Clip and image encoders and video comparators: build, save, export, and use them as extractors.

Names are imported on first use, so that opening a stored model does not import torch; building or training one does.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.models.comparator import Comparator, build_comparator
    from vidkin.models.comparator_extractor import (
        EXTRACTOR_WEIGHTS_FILE,
        ComparatorExtractor,
        measure_unrelated,
        read_comparator_info,
    )
    from vidkin.models.comparator_folder import comparator_digest, load_comparator, save_comparator
    from vidkin.models.config import ComparatorConfig, EncoderConfig, EncoderKind, Padding, Remainder
    from vidkin.models.encoder import ClipEncoder, Encoder, model_digest
    from vidkin.models.export import ExportError, export_model
    from vidkin.models.extractor import (
        ClipModelExtractor,
        EncoderNetwork,
        ModelExtractor,
        encoder_input,
        open_encoder,
        open_model_extractor,
    )
    from vidkin.models.frame_network import FrameEncoderModel, SmallNetwork
    from vidkin.models.image_networks import DeepRankingNetwork, ImageEncoder
    from vidkin.models.model_folder import build_model, load_model, save_model
    from vidkin.models.randomness import random_state, restore_random_state, seeded
    from vidkin.models.stored import ModelInfo, read_model_info
    from vidkin.models.two_head import HeadOutputs, TwoHeadNetwork
    from vidkin.models.volume_networks import DeepSBDNetwork, VideoNetwork
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "EXTRACTOR_WEIGHTS_FILE",
    "ClipEncoder",
    "ClipModelExtractor",
    "Comparator",
    "ComparatorConfig",
    "ComparatorExtractor",
    "DeepRankingNetwork",
    "DeepSBDNetwork",
    "Encoder",
    "EncoderConfig",
    "EncoderKind",
    "EncoderNetwork",
    "ExportError",
    "FrameEncoderModel",
    "HeadOutputs",
    "ImageEncoder",
    "ModelExtractor",
    "ModelInfo",
    "Padding",
    "Remainder",
    "SmallNetwork",
    "TwoHeadNetwork",
    "VideoNetwork",
    "build_comparator",
    "build_model",
    "comparator_digest",
    "encoder_input",
    "export_model",
    "load_comparator",
    "load_model",
    "measure_unrelated",
    "model_digest",
    "open_encoder",
    "open_model_extractor",
    "random_state",
    "read_comparator_info",
    "read_model_info",
    "restore_random_state",
    "save_comparator",
    "save_model",
    "seeded",
]
