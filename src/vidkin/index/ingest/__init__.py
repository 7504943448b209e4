"""Ingest: turn files on disk into records, features and windows."""
