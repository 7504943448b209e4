"""Distillation of one vector for a frame: pictures, edited crops, the teacher's vectors, training and measuring.

The steps are commands of ``python -m vidkin_research.frame_encoder``; each resumes where it was stopped.
"""
