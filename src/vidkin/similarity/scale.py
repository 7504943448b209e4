"""Three reference points on the common scale of all visual and sound scores.

1 means identical, 0 nothing in common. Code that uses one of these values as a threshold or default must use its name.
"""

UNRELATED = 0.2
"""Score below which nearly all unrelated videos lie."""

EXCERPT = 0.4
"""Minimum score of matching parts that count as the same footage, even if the rest of the videos differs."""

SURE = 0.7
"""Minimum score at which two videos certainly show the same footage, or contain the same sound recording."""
