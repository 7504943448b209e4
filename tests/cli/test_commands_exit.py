"""Which error ends a command with which status."""

from __future__ import annotations

import pytest

from vidkin import errors
from vidkin.cli.commands import Status, status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidArgumentError("x"), 2),
        (errors.UnknownExtractorError("x"), 2),
        (errors.CollectionMismatchError("x"), 2),
        (errors.MediaError("a.mp4", "x"), 3),
        (errors.CollectionNotFoundError("x"), 3),
        (errors.CollectionLockedError("x"), 3),
        (errors.NotIndexedError("x"), 3),
        (errors.WeightsUnavailableError("x"), 3),
        (errors.MissingPartError("x"), 3),
    ],
)
def test_errors_have_statuses(error: errors.VidkinError, status: int) -> None:
    assert status_of(error) == status


def test_statuses_are_those_of_the_design() -> None:
    assert {status.name: status.value for status in Status} == {
        "DONE": 0,
        "SOME_FAILED": 1,
        "USAGE": 2,
        "NOTHING_USABLE": 3,
        "INTERRUPTED": 130,
    }
