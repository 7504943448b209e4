"""A training run: prepared, followed step by step, stored and resumed."""
