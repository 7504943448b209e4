"""Public benchmarks of video retrieval: describe videos, score all pairs, and compare the results with published
ones."""
