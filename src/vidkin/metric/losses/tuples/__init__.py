"""Losses on tuples of embeddings, each member [B, D]."""
