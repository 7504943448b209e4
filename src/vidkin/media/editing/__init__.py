"""Edits that make copies of a video as people make them."""
