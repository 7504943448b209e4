"""Segments that several videos of an index share: openings, recaps, bumpers, closings."""
