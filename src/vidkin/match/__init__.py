"""Find the segments two videos share, the relative orientation of matching frames, and a similarity score.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from vidkin._base.registry import lazy_names

if TYPE_CHECKING:
    from vidkin.match.comparison import compare, compare_views
    from vidkin.match.learned import LEARNED, LearnedScorer, VideoComparator
    from vidkin.match.lines import AlignedLine, find_lines
    from vidkin.match.maps import frame_map, levels
    from vidkin.match.measure import NUMBERS, Measured, Sequenced
    from vidkin.match.pose import Pose, find_pose
    from vidkin.match.reviewed import ReviewedScorer, ReviewMeasure
    from vidkin.match.scorer import VerifiedScorer
    from vidkin.match.scorers import KindScorer, available_scorers, finds_segments, open_scorer, scorer_of
    from vidkin.match.verify import Verifier, read_verifier, shipped_verifier
    from vidkin.match.windows import MapWindow, find_windows
else:
    __getattr__ = lazy_names(__name__)

__all__ = [
    "LEARNED",
    "NUMBERS",
    "AlignedLine",
    "KindScorer",
    "LearnedScorer",
    "MapWindow",
    "Measured",
    "Pose",
    "ReviewMeasure",
    "ReviewedScorer",
    "Sequenced",
    "VerifiedScorer",
    "Verifier",
    "VideoComparator",
    "available_scorers",
    "compare",
    "compare_views",
    "find_lines",
    "find_pose",
    "find_windows",
    "finds_segments",
    "frame_map",
    "levels",
    "open_scorer",
    "read_verifier",
    "scorer_of",
    "shipped_verifier",
]
