"""The examples in the docstrings of measures and samplers do what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["measures.streaming", "sampling.retrieval", "sampling.batches"])
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(f"vidkin.metric.{name}")
    result = doctest.testmod(module)
    assert result.attempted >= 2
    assert result.failed == 0
