"""Detectors from publications and other tools, to compare with."""
