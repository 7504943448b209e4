"""Proofs that nothing of a file is lost when it is removed."""
