"""Queries: features of files and pictures, and videos of the index read again."""
