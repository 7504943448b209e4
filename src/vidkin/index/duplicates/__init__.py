"""Duplicates within an index: matching pairs, groups of copies, and which file to keep."""
