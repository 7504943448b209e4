"""What ``import vidkin`` offers."""

from __future__ import annotations

import pytest

import vidkin


@pytest.mark.parametrize(
    "name",
    ["CollectionNotFoundError", "DuplicateGroup", "DuplicateMember", "InvalidArgumentError", "MediaError"],
)
def test_what_a_caller_unpacks_or_catches_is_public(name: str) -> None:
    assert name in vidkin.__all__
    assert getattr(vidkin, name).__name__ == name
