"""Searches and comparisons: candidates, exact scores, segments, sound, and calibration."""
