"""Readers of public data sets and of labelled folders."""
