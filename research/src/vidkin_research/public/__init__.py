"""Public benchmarks of video retrieval: describe videos, score all pairs, and print the results next to published
ones."""
