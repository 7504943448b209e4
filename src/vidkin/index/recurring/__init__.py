"""Recurring segments, which several videos of an index share: openings, recaps, bumpers, closings."""
