"""Losses in three shapes: tuples of embeddings, (embeddings, labels), and (scores, relevance)."""

from vidkin.metric.losses.labels.all_quadlets import (
    AllQuadletsLoss,
    all_quadlets_loss,
    all_quadlets_radial_loss,
)
from vidkin.metric.losses.labels.centers import (
    CenterLoss,
    TripletCenterLoss,
    center_loss,
    moved_centers,
    triplet_center_loss,
)
from vidkin.metric.losses.labels.magnet import MagnetLoss, magnet_loss
from vidkin.metric.losses.labels.mined_triplets import (
    BatchAllTripletLoss,
    BatchHardTripletLoss,
    SemiHardTripletLoss,
    batch_all_triplet_loss,
    batch_hard_triplet_loss,
    semi_hard_triplet_loss,
)
from vidkin.metric.losses.scores.average_precision import SmoothAPLoss, SupAPLoss, smooth_ap_loss, sup_ap_loss
from vidkin.metric.losses.scores.blackbox import BlackBoxAPLoss, blackbox_ap_loss
from vidkin.metric.losses.scores.contrastive import (
    InfoNCELoss,
    SelfHardNegativeLoss,
    hard_negative_loss,
    info_nce_loss,
    self_hard_negative_loss,
    self_similarity_loss,
)
from vidkin.metric.losses.scores.hierarchical import HierarchicalAPLoss, hierarchical_ap_loss
from vidkin.metric.losses.scores.pairwise import (
    CircleLoss,
    ContrastiveLoss,
    ScoreTripletLoss,
    circle_loss,
    contrastive_loss,
    score_triplet_loss,
)
from vidkin.metric.losses.scores.quad_linear import (
    FrameQuadLinearAPLoss,
    QuadLinearAPLoss,
    frame_quad_linear_ap_loss,
    quad_linear_ap_loss,
    quad_linear_step,
)
from vidkin.metric.losses.scores.quantized import FastAPLoss, QuantizedAPLoss, fast_ap_loss, quantized_ap_loss
from vidkin.metric.losses.scores.regression import (
    MAELoss,
    MSELoss,
    SimilarityRegularizer,
    mae_loss,
    mse_loss,
    similarity_regularizer,
)
from vidkin.metric.losses.tuples.angular import AngularLoss, angular_loss, angular_quadlet_loss
from vidkin.metric.losses.tuples.quadlets import (
    QuadletLoss,
    RadialLoss,
    TripletLoss,
    quadlet_loss,
    radial_loss,
    triplet_loss,
)
from vidkin.metric.losses.tuples.quadruplets import (
    QuadrupletLoss,
    QuadrupletwiseLoss,
    adaptive_margins,
    quadruplet_loss,
    quadrupletwise_equality,
    quadrupletwise_inequality,
    quadrupletwise_loss,
)

__all__ = [
    "AllQuadletsLoss",
    "AngularLoss",
    "BatchAllTripletLoss",
    "BatchHardTripletLoss",
    "BlackBoxAPLoss",
    "CenterLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "FastAPLoss",
    "FrameQuadLinearAPLoss",
    "HierarchicalAPLoss",
    "InfoNCELoss",
    "MAELoss",
    "MSELoss",
    "MagnetLoss",
    "QuadLinearAPLoss",
    "QuadletLoss",
    "QuadrupletLoss",
    "QuadrupletwiseLoss",
    "QuantizedAPLoss",
    "RadialLoss",
    "ScoreTripletLoss",
    "SelfHardNegativeLoss",
    "SemiHardTripletLoss",
    "SimilarityRegularizer",
    "SmoothAPLoss",
    "SupAPLoss",
    "TripletCenterLoss",
    "TripletLoss",
    "adaptive_margins",
    "all_quadlets_loss",
    "all_quadlets_radial_loss",
    "angular_loss",
    "angular_quadlet_loss",
    "batch_all_triplet_loss",
    "batch_hard_triplet_loss",
    "blackbox_ap_loss",
    "center_loss",
    "circle_loss",
    "contrastive_loss",
    "fast_ap_loss",
    "frame_quad_linear_ap_loss",
    "hard_negative_loss",
    "hierarchical_ap_loss",
    "info_nce_loss",
    "mae_loss",
    "magnet_loss",
    "moved_centers",
    "mse_loss",
    "quad_linear_ap_loss",
    "quad_linear_step",
    "quadlet_loss",
    "quadruplet_loss",
    "quadrupletwise_equality",
    "quadrupletwise_inequality",
    "quadrupletwise_loss",
    "quantized_ap_loss",
    "radial_loss",
    "score_triplet_loss",
    "self_hard_negative_loss",
    "self_similarity_loss",
    "semi_hard_triplet_loss",
    "similarity_regularizer",
    "smooth_ap_loss",
    "sup_ap_loss",
    "triplet_center_loss",
    "triplet_loss",
]
