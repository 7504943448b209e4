"""Encoders of clips and images: built, trained step by step, stored, exported, used as extractors."""

from vidkin.models.clip_encoder import ClipEncoder
from vidkin.models.config import EncoderConfig, EncoderKind
from vidkin.models.encoder import Encoder
from vidkin.models.export import export_model
from vidkin.models.extractor import ClipModelExtractor, ModelExtractor, open_model_extractor
from vidkin.models.frame_model import FrameEncoderModel
from vidkin.models.frame_network import SmallNetwork
from vidkin.models.image_networks import DeepRankingNetwork, ImageEncoder
from vidkin.models.model_folder import (
    ModelInfo,
    build_model,
    load_model,
    model_digest,
    read_model_info,
    save_model,
)
from vidkin.models.two_head import HeadOutputs, TwoHeadNetwork
from vidkin.models.volume_networks import DeepSBDNetwork, VideoNetwork

__all__ = [
    "ClipEncoder",
    "ClipModelExtractor",
    "DeepRankingNetwork",
    "DeepSBDNetwork",
    "Encoder",
    "EncoderConfig",
    "EncoderKind",
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
    "open_model_extractor",
    "read_model_info",
    "save_model",
]
