"""Encoders of clips and images: built, trained step by step, stored, exported, used as extractors."""

from vidkin.models.build import build_model
from vidkin.models.classifier.two_head import HeadOutputs, TwoHeadNetwork
from vidkin.models.config import EncoderConfig, EncoderKind
from vidkin.models.export import export_model
from vidkin.models.extractor import ClipModelExtractor, ModelExtractor, open_model_extractor
from vidkin.models.model_folder import ModelInfo, load_model, model_digest, read_model_info, save_model
from vidkin.models.networks.clip_encoder import ClipEncoder
from vidkin.models.networks.deep_ranking import DeepRankingNetwork
from vidkin.models.networks.encoder import Encoder
from vidkin.models.networks.frame_model import FrameEncoderModel
from vidkin.models.networks.image_encoder import ImageEncoder
from vidkin.models.networks.segment_classifier import DeepSBDNetwork
from vidkin.models.networks.small_network import SmallNetwork
from vidkin.models.networks.video_network import VideoNetwork

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
