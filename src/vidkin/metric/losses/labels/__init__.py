"""Losses on embeddings [N, D] with labels, which find their tuples themselves."""
