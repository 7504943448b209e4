"""Data sets with known labels that vidkin generates."""
