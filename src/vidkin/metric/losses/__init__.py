"""Losses in two shapes only: tuples of embeddings, or (scores [N, M], relevance [N, M])."""

from vidkin.metric.losses.average_precision import SmoothAPLoss, SupAPLoss, smooth_ap_loss, sup_ap_loss
from vidkin.metric.losses.blackbox import BlackBoxAPLoss, blackbox_ap_loss
from vidkin.metric.losses.contrastive import (
    InfoNCELoss,
    SelfHardNegativeLoss,
    hard_negative_loss,
    info_nce_loss,
    self_hard_negative_loss,
    self_similarity_loss,
)
from vidkin.metric.losses.hierarchical import HierarchicalAPLoss, hierarchical_ap_loss
from vidkin.metric.losses.pairwise import (
    CircleLoss,
    ContrastiveLoss,
    ScoreTripletLoss,
    circle_loss,
    contrastive_loss,
    score_triplet_loss,
)
from vidkin.metric.losses.quad_linear import (
    FrameQuadLinearAPLoss,
    QuadLinearAPLoss,
    frame_quad_linear_ap_loss,
    quad_linear_ap_loss,
    quad_linear_step,
)
from vidkin.metric.losses.quantized import FastAPLoss, QuantizedAPLoss, fast_ap_loss, quantized_ap_loss
from vidkin.metric.losses.regression import (
    MAELoss,
    MSELoss,
    SimilarityRegularizer,
    mae_loss,
    mse_loss,
    similarity_regularizer,
)

__all__ = [
    "BlackBoxAPLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "FastAPLoss",
    "FrameQuadLinearAPLoss",
    "HierarchicalAPLoss",
    "InfoNCELoss",
    "MAELoss",
    "MSELoss",
    "QuadLinearAPLoss",
    "QuantizedAPLoss",
    "ScoreTripletLoss",
    "SelfHardNegativeLoss",
    "SimilarityRegularizer",
    "SmoothAPLoss",
    "SupAPLoss",
    "blackbox_ap_loss",
    "circle_loss",
    "contrastive_loss",
    "fast_ap_loss",
    "frame_quad_linear_ap_loss",
    "hard_negative_loss",
    "hierarchical_ap_loss",
    "info_nce_loss",
    "mae_loss",
    "mse_loss",
    "quad_linear_ap_loss",
    "quad_linear_step",
    "quantized_ap_loss",
    "score_triplet_loss",
    "self_hard_negative_loss",
    "self_similarity_loss",
    "similarity_regularizer",
    "smooth_ap_loss",
    "sup_ap_loss",
]
