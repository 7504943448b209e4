"""Shots as lists, edit decision lists, timelines, thumbnails and pieces."""
