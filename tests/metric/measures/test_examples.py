"""Doctests of measures and samplers."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["measures.streaming", "sampling.retrieval", "sampling.batches"])
def test_docstring_examples_are_correct(name: str) -> None:
    module = importlib.import_module(f"vidkin.metric.{name}")
    result = doctest.testmod(module)
    assert result.attempted >= 2
    assert result.failed == 0
