"""Detections and critical clips against their labels."""
