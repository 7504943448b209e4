"""Comparison of losses for frame encoders and verifiers, on three levels of similarity and unseen footage."""
