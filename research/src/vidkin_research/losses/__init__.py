"""Which loss trains a comparator best without labels: study, page and pictures."""

from vidkin_research.losses.methods import ABLATION, LOSSES, METHODS, SPACE, LossMethod
from vidkin_research.losses.page import as_page
from vidkin_research.losses.pictures import draw_losses
from vidkin_research.losses.study import LossFigures, LossReport, LossStudy, run_loss_study

__all__ = [
    "ABLATION",
    "LOSSES",
    "METHODS",
    "SPACE",
    "LossFigures",
    "LossMethod",
    "LossReport",
    "LossStudy",
    "as_page",
    "draw_losses",
    "run_loss_study",
]
