"""Rows of the comparison: names and published results."""

from __future__ import annotations

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.training import available_objectives
from vidkin_research.retrieval.methods import METHODS, method_named


def test_every_method_has_its_own_name_and_known_objectives() -> None:
    names = [method.name for method in METHODS]
    assert len(set(names)) == len(names)
    assert {term.name for method in METHODS for term in method.objectives} <= set(available_objectives())
    assert [method.name for method in METHODS if not method.objectives] == ["backbone", "untrained"]


def test_both_variants_of_radial_are_next_to_the_published_result() -> None:
    assert method_named("radial").published == method_named("radial_detached").published == (60.70, 75.80)
    assert [term.name for term in method_named("radial_detached").objectives] == ["radial_detached"]


def test_error_for_an_unknown_method_lists_all_methods() -> None:
    with pytest.raises(InvalidArgumentError, match=r"a method must be one of backbone, untr.*, got 'radial2'"):
        method_named("radial2")
