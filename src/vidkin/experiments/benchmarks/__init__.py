"""Public benchmarks of video retrieval: describe the videos, score all pairs, and print published rows beside."""
