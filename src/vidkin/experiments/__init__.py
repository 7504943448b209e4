"""The experiments behind the tables of a paper, run and stored."""
