"""Extractors, which turn frames into regional descriptors.

The names and contracts of extractors are defined here; the extractors themselves are imported on first use.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names
from vidkin.features.contracts import (
    ClipExtractor,
    ClipPlan,
    ExtractorFactory,
    FrameExtractor,
    absolute_name,
    available_extractors,
    default_extractor,
    open_extractor,
    register_extractor,
)

if TYPE_CHECKING:
    from vidkin.features.backbone import BackboneExtractor, PooledNetwork, open_pooled_network
    from vidkin.features.background import background_frames
    from vidkin.features.classical import ClassicalExtractor
    from vidkin.features.content_boxes import (
        BOX_NETWORK_FILE,
        BOX_NUMBERS,
        BoxCandidates,
        BoxNetwork,
        find_box_candidates,
        find_content_boxes,
        overlap,
    )
    from vidkin.features.fitting import (
        FITTING_EDITS,
        DescribesImages,
        fit_edit_whitening,
        fit_image_whitening,
        pictures_of,
    )
    from vidkin.features.frame_encoder import (
        FrameEncoder,
        FrameEncoderSettings,
        export_frame_encoder,
        load_frame_encoder,
        save_frame_encoder,
    )
    from vidkin.features.frame_extractor import NETWORK_FILE, FrameEncoderExtractor
    from vidkin.features.information import bar_boxes, frame_information, look_at, make_thumbnails, small_luma
    from vidkin.features.networks import region_max_pool
    from vidkin.features.onnx import OnnxExtractor
    from vidkin.features.pretrained import import_timm, import_torchvision, torchvision_stages
    from vidkin.features.sessions import (
        SquareEncoder,
        has_cuda,
        open_square_encoder,
        resolve_device,
        set_device,
        shipped_encoder,
    )
    from vidkin.features.sound import Hearing, SoundDescriber, describe_sound
    from vidkin.features.views import (
        CROPS,
        Phase,
        Silence,
        ViewPlan,
        describe_file,
        describe_views,
        features_of_views,
    )
    from vidkin.features.whitening import Whitening, fit_whitening, read_safetensors
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "BOX_NETWORK_FILE",
    "BOX_NUMBERS",
    "CROPS",
    "FITTING_EDITS",
    "NETWORK_FILE",
    "BackboneExtractor",
    "BoxCandidates",
    "BoxNetwork",
    "ClassicalExtractor",
    "ClipExtractor",
    "ClipPlan",
    "DescribesImages",
    "ExtractorFactory",
    "FrameEncoder",
    "FrameEncoderExtractor",
    "FrameEncoderSettings",
    "FrameExtractor",
    "Hearing",
    "OnnxExtractor",
    "Phase",
    "PooledNetwork",
    "Silence",
    "SoundDescriber",
    "SquareEncoder",
    "ViewPlan",
    "Whitening",
    "absolute_name",
    "available_extractors",
    "background_frames",
    "bar_boxes",
    "default_extractor",
    "describe_file",
    "describe_sound",
    "describe_views",
    "export_frame_encoder",
    "features_of_views",
    "find_box_candidates",
    "find_content_boxes",
    "fit_edit_whitening",
    "fit_image_whitening",
    "fit_whitening",
    "frame_information",
    "has_cuda",
    "import_timm",
    "import_torchvision",
    "load_frame_encoder",
    "look_at",
    "make_thumbnails",
    "open_extractor",
    "open_pooled_network",
    "open_square_encoder",
    "overlap",
    "pictures_of",
    "read_safetensors",
    "region_max_pool",
    "register_extractor",
    "resolve_device",
    "save_frame_encoder",
    "set_device",
    "shipped_encoder",
    "small_luma",
    "torchvision_stages",
]
