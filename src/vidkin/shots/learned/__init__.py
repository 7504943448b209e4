"""Detectors made of trained clip encoders, and their training."""
