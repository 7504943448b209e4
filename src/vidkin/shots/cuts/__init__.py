"""The default detector: frame vectors where the picture moves, and a network that knows transitions."""

from vidkin.shots.cuts.detector import CutDetector
from vidkin.shots.cuts.model import CutModel
from vidkin.shots.cuts.proposals import GRADUAL_NUMBERS, GRADUAL_TYPES, HARD_NUMBERS, Proposal, ProposalMaker
from vidkin.shots.cuts.rules import CutRules, WeightedSum, decide

__all__ = [
    "GRADUAL_NUMBERS",
    "GRADUAL_TYPES",
    "HARD_NUMBERS",
    "CutDetector",
    "CutModel",
    "CutRules",
    "Proposal",
    "ProposalMaker",
    "WeightedSum",
    "decide",
]
