"""Distill a network that describes a frame by one vector: images, edits, teacher vectors, training and evaluation.

The steps are commands of ``python -m vidkin_research.frame_encoder``; each resumes after an interruption.
"""
