"""Shots as lists, edit decision lists, time lines, thumbnails and pieces."""
