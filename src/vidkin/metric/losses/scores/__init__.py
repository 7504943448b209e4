"""Losses on scores [N, M] with relevance [N, M]."""
