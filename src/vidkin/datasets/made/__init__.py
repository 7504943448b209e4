"""Data sets that vidkin generates, with known labels."""
