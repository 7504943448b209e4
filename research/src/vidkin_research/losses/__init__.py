"""Comparison of losses for training a comparator without labels: study, page and plots."""

from vidkin_research.losses.methods import ABLATION, LOSSES, METHODS, SPACE, SWEEPS, LossMethod
from vidkin_research.losses.page import as_page
from vidkin_research.losses.pictures import draw_losses
from vidkin_research.losses.published import PublishedRun, PublishedStudy, published_page, run_published_study
from vidkin_research.losses.study import LossFigures, LossReport, LossStudy, run_loss_study

__all__ = [
    "ABLATION",
    "LOSSES",
    "METHODS",
    "SPACE",
    "SWEEPS",
    "LossFigures",
    "LossMethod",
    "LossReport",
    "LossStudy",
    "PublishedRun",
    "PublishedStudy",
    "as_page",
    "draw_losses",
    "published_page",
    "run_loss_study",
    "run_published_study",
]
