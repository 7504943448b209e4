"""Encoders of clips and images: built, trained step by step, stored, exported, used as extractors.

Names are imported when they are first used: what opens a stored model needs no torch, what builds or trains one does.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.models.config import EncoderConfig, EncoderKind
    from vidkin.models.encoder import ClipEncoder, Encoder, model_digest
    from vidkin.models.export import export_model
    from vidkin.models.extractor import (
        ClipModelExtractor,
        EncoderNetwork,
        ModelExtractor,
        open_encoder,
        open_model_extractor,
    )
    from vidkin.models.frame_network import FrameEncoderModel, SmallNetwork
    from vidkin.models.image_networks import DeepRankingNetwork, ImageEncoder
    from vidkin.models.model_folder import build_model, load_model, save_model
    from vidkin.models.stored import ModelInfo, read_model_info
    from vidkin.models.two_head import HeadOutputs, TwoHeadNetwork
    from vidkin.models.volume_networks import DeepSBDNetwork, VideoNetwork
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "ClipEncoder",
    "ClipModelExtractor",
    "DeepRankingNetwork",
    "DeepSBDNetwork",
    "Encoder",
    "EncoderConfig",
    "EncoderKind",
    "EncoderNetwork",
    "FrameEncoderModel",
    "HeadOutputs",
    "ImageEncoder",
    "ModelExtractor",
    "ModelInfo",
    "SmallNetwork",
    "TwoHeadNetwork",
    "VideoNetwork",
    "build_model",
    "export_model",
    "load_model",
    "model_digest",
    "open_encoder",
    "open_model_extractor",
    "read_model_info",
    "save_model",
]
