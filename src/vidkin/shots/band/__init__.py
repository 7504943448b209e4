"""The default detector: the band of self-similarity, read by a small network."""
