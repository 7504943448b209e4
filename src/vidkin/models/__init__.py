"""Room models: encoders of clips and pictures, made, saved, loaded, exported, and used as extractors."""

from vidkin.models.building import build_model
from vidkin.models.clip_encoder import ClipEncoder
from vidkin.models.config import EncoderConfig, EncoderKind
from vidkin.models.deep_ranking import DeepRankingNetwork
from vidkin.models.deep_sbd import DeepSBDNetwork
from vidkin.models.encoder import Encoder
from vidkin.models.exporting import export_model
from vidkin.models.extractor import ClipModelExtractor, ModelExtractor, open_model_extractor
from vidkin.models.image_encoder import ImageEncoder
from vidkin.models.saving import ModelInfo, load_model, model_digest, read_model_info, save_model
from vidkin.models.small_network import SmallNetwork
from vidkin.models.video_network import VideoNetwork

__all__ = [
    "ClipEncoder",
    "ClipModelExtractor",
    "DeepRankingNetwork",
    "DeepSBDNetwork",
    "Encoder",
    "EncoderConfig",
    "EncoderKind",
    "ImageEncoder",
    "ModelExtractor",
    "ModelInfo",
    "SmallNetwork",
    "VideoNetwork",
    "build_model",
    "export_model",
    "load_model",
    "model_digest",
    "open_model_extractor",
    "read_model_info",
    "save_model",
]
