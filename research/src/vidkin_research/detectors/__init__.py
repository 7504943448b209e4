"""Detectors from publications and other tools, for comparison."""
