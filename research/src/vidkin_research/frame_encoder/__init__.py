"""Distill a network that embeds a frame as one vector: images, edits, teacher embeddings, training and evaluation.

The steps are commands of ``python -m vidkin_research.frame_encoder``; each can be resumed after an interruption.
"""
