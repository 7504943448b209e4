"""Readers of public sets of photographs for fine-grained classification, in their published layouts."""
