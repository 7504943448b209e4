"""The comparison of shot detectors."""
