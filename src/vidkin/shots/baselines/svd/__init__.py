"""SVD-SBD: segment selection, singular value decomposition, pattern matching."""
