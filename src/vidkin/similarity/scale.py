"""Three reference points on the scale that all scores share, of frames and of sound.

1 means identical, 0 nothing in common. Code that compares a score with one of these points, or uses it as a default,
refers to it by name.
"""

UNRELATED = 0.2
"""Score that nearly all unrelated videos stay below."""

EXCERPT = 0.4
"""Score from which matching stretches of two videos count as the same footage, even if the rest differs."""

SURE = 0.7
"""Score from which two videos surely show the same footage, or have the same recorded sound."""
