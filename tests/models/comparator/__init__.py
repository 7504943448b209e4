"""Tests of the comparator."""
