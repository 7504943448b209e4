"""Readers of public data sets and of labeled folders."""
