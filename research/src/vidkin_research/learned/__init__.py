"""Shots by a trained metric: windows of frames, the curve of their distances, and rules fitted on labels."""
