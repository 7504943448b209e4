"""Public video retrieval benchmarks: extract features, score all pairs, and compare with published results."""
