"""Public benchmarks of video retrieval, read from the annotation files that their authors publish."""
