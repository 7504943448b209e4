"""Edits of whole clips, the same for all frames of a clip or moving through it: pure functions of (clip, generator).

A clip is [T, 3, H, W] floating point with values in 0..1, square unless it says otherwise.
"""
