"""What scores mean: three points of the one scale that all scorers share, of the picture and of the sound.

1 is the same, 0 nothing in common. What compares a score with one of these points, or has it as a default, names it.
"""

UNRELATED = 0.2
"""Score that nearly all unrelated videos stay below."""

EXCERPT = 0.4
"""Score from which matching stretches of two videos count as the same footage, where the rest of them may differ."""

SURE = 0.7
"""Score from which two videos surely show the same footage, or sound like the same recording."""
