"""Tests of public benchmarks."""
