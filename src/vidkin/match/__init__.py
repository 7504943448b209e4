"""Which stretches of one video are which stretches of another, in which pose, how surely."""

from vidkin.match.frame_map import frame_map, levels
from vidkin.match.lines import AlignedLine, find_lines
from vidkin.match.measure import NUMBERS, Measured, Sequenced, measure
from vidkin.match.pose import Pose
from vidkin.match.verify import Verifier, read_verifier

__all__ = [
    "NUMBERS",
    "AlignedLine",
    "Measured",
    "Pose",
    "Sequenced",
    "Verifier",
    "find_lines",
    "frame_map",
    "levels",
    "measure",
    "read_verifier",
]
