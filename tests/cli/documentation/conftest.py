"""Code blocks of the documentation use what vidkin-research brings, too."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="package")
def _product_alone() -> None:
    """Nothing is hidden from these tests."""
