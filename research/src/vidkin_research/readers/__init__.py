"""Readers for public image and video sets in their published layouts."""
