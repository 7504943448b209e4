"""The default detector: frame vectors at changes of the picture, and a network for transitions."""

from vidkin.shots.cuts.detector import CutDetector
from vidkin.shots.cuts.gradual_numbers import GRADUAL_NUMBERS
from vidkin.shots.cuts.hard_numbers import HARD_NUMBERS
from vidkin.shots.cuts.model import CutModel
from vidkin.shots.cuts.proposals import GRADUAL_TYPES, Proposal, ProposalMaker
from vidkin.shots.cuts.rules import CutRules, decide
from vidkin.shots.cuts.scoring import ProposalScore

__all__ = [
    "GRADUAL_NUMBERS",
    "GRADUAL_TYPES",
    "HARD_NUMBERS",
    "CutDetector",
    "CutModel",
    "CutRules",
    "Proposal",
    "ProposalMaker",
    "ProposalScore",
    "decide",
]
