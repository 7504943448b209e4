"""Readers of public sets of images, in their published layouts."""
