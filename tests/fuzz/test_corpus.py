"""The stored corpus breaks no target."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import CORPUS
from tests.fuzz.targets import TARGETS, run


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_corpus_inputs_are_read_or_refused_with_a_documented_error(name: str) -> None:
    kept = sorted((CORPUS / name).iterdir())
    assert len(kept) >= 3
    for path in kept:
        run(name, path.read_bytes())
