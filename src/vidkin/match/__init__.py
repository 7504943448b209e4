"""Find the stretches that two videos share, the pose in which they match, and a score."""

from vidkin.match.compare import MapWindow, compare
from vidkin.match.engine import Edge, EdgeSegment, Effort, Engine, MatchQuery, View, compare_candidates, sequence
from vidkin.match.frame_map import frame_map, levels
from vidkin.match.lines import AlignedLine, find_lines
from vidkin.match.measure import NUMBERS, Measured, Sequenced
from vidkin.match.pose import WHOLE, Box, Pose
from vidkin.match.scorer import VerifiedScorer
from vidkin.match.shortlist import Gallery, GalleryCandidate, shortlist
from vidkin.match.verify import Verifier, read_verifier

__all__ = [
    "NUMBERS",
    "WHOLE",
    "AlignedLine",
    "Box",
    "Edge",
    "EdgeSegment",
    "Effort",
    "Engine",
    "Gallery",
    "GalleryCandidate",
    "MapWindow",
    "MatchQuery",
    "Measured",
    "Pose",
    "Sequenced",
    "VerifiedScorer",
    "Verifier",
    "View",
    "compare",
    "compare_candidates",
    "find_lines",
    "frame_map",
    "levels",
    "read_verifier",
    "sequence",
    "shortlist",
]
