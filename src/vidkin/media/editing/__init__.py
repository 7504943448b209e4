"""Edits that turn a video into copies like those people make."""
