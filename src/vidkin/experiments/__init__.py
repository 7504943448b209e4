"""Room experiments: what the tables of a paper need, run and stored."""
