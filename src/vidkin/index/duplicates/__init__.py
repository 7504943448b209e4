"""Copies within an index: which pairs hold the same material, which groups they make, which file to keep."""
