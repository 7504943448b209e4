"""Public benchmarks of video retrieval: describe videos, score all pairs, and print published rows beside ours."""
