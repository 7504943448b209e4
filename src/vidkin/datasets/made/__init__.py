"""Data sets that vidkin makes itself, with known answers."""
